"""What a provider of batches has to offer, and what the adapters share."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.models.http import HttpCall, HttpClient, decode, read_json
from jurybox.models.model_errors import quoted

T = TypeVar("T")

_PAGE: Final = 100
_MOST_PAGES: Final = 100
# The provider's clock and ours may differ by this many seconds.
_SKEW: Final = 600.0


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says of a batch.

    Attributes:
        state: ``refused`` where none of its requests will ever be tried.
        answered: how many requests are done, where the provider says so.
        problem: why it was refused.
        too_much: whether fewer requests at once might have been taken.
        places: the paths of the results.

    """

    state: Literal["open", "ended", "refused"]
    answered: int | None = None
    problem: str = ""
    too_much: bool = False
    places: tuple[str, ...] = ()


class BatchProvider(Protocol):
    """How a provider takes batches; every call raises `ModelError` where it fails."""

    def line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as a batch holds it."""
        ...

    async def submit(self, client: HttpClient, lines: Sequence[bytes], mark: str) -> str:
        """Submit a batch, with ``mark`` where the provider has room for it; return its id."""
        ...

    async def find(self, client: HttpClient, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the ids of batches that may be the one with that mark."""
        ...

    async def status(self, client: HttpClient, batch_id: str) -> BatchStatus:
        """Return how far a batch is."""
        ...

    def answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        ...


class _Page(msgspec.Struct):
    data: list[Any]
    has_more: bool = False


async def listed_batches(
    client: HttpClient, path: str, cursor: str, since: str
) -> list[dict[str, Any]]:
    """Return a provider's batches since a time, and those that don't say when they were made.

    Other programs have batches there too, so each row may look as it likes.

    Raises:
        ModelError: nothing on a page can be read, so ours may be behind it.

    """
    oldest = datetime.fromisoformat(since).timestamp() - _SKEW
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        query = urlencode({"limit": _PAGE, **after})
        page = decode(await client.send(HttpCall(path=f"{path}?{query}")), _Page)
        listed = [each for each in page.data if _is_batch(each)]
        if page.data and not listed:
            raise ModelError("unreadable", "the list of batches can't be read", retry=True)
        young = [each for each in listed if _created(each.get("created_at")) >= oldest]
        found += young
        # The newest come first.
        if not page.has_more or not young:
            break
        after = {cursor: listed[-1]["id"]}
    return found


def _is_batch(row: object) -> bool:
    match row:
        case {"id": str()}:
            return True
        case _:
            return False


def _created(value: object) -> float:
    """Return a time that is given in seconds or in words; the future where it is unknown."""
    if isinstance(value, int | float):
        return value
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return math.inf


def read_line(line: bytes, kind: type[T]) -> T:
    """Read one line of the results.

    Raises:
        ModelError: it isn't of this kind.

    """
    try:
        return read_json(line, kind)
    except (ValueError, RecursionError) as error:
        what = f"the answer can't be read: {quoted(str(error))}"
        raise ModelError("unreadable", what, retry=True) from None
