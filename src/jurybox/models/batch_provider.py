"""The interface of a batch provider, when batches are submitted, and how they are listed."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, Protocol, runtime_checkable
from urllib.parse import urlencode

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.http import HttpAnswer, HttpCall, HttpClient, decode
from jurybox.models.negotiation import Accepted, Negotiation

_PAGE: Final = 100
_MOST_PAGES: Final = 100
# The provider's clock and ours may differ by this many seconds.
_SKEW: Final = 600.0


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """When batches are submitted and how they are polled; times in seconds.

    Attributes:
        idle: a batch is submitted when no request has come for this long.
        requests: or when it holds this many; providers take at least 50,000.
        bytes: or this many bytes; providers take at least 200 MB, but here they are in memory.
        first: before the first poll; a local server may answer at once.
        growth: each wait is this many times as long as the one before.
        longest: no wait is longer. Providers take minutes to hours, up to a day.
        patience: how long a provider may be unreachable before submitting is given up.

    """

    idle: float = 2.0
    requests: int = 10_000
    bytes: int = 25_000_000
    first: float = 0.2
    growth: float = 1.6
    longest: float = 60.0
    patience: float = 900.0


class BatchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a batch, as reported by its provider.

    Attributes:
        state: ``refused`` where none of its requests will ever be tried.
        answered: how many requests are done, where the provider says so.
        problem: why it was refused.
        too_large: whether a smaller batch might have been accepted.
        paths: where the results are.

    """

    state: Literal["open", "ended", "refused"]
    answered: int | None = None
    problem: str = ""
    too_large: bool = False
    paths: tuple[str, ...] = ()


@runtime_checkable
class BatchableModel(Protocol):
    """A model whose provider has batches; every call raises `ModelError` where it fails."""

    client: HttpClient
    negotiation: Negotiation

    def payload(self, request: ModelRequest, accepted: Accepted) -> dict[str, object]:
        """Return what is sent, as far as the endpoint accepts it."""
        ...

    def reply(self, answer: HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        """Return the reply in an answer to a payload."""
        ...

    def batch_line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as a batch holds it."""
        ...

    async def submit_batch(self, lines: Sequence[bytes], mark: str) -> str:
        """Submit a batch, with ``mark`` where the provider has room for it; return its id."""
        ...

    async def find_batches(self, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the ids of batches that may be the one with that mark."""
        ...

    async def batch_status(self, batch_id: str) -> BatchStatus:
        """Return the state of a batch."""
        ...

    def batch_answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        ...


class _Page(msgspec.Struct):
    data: list[Any]
    has_more: bool = False


async def listed_batches(
    client: HttpClient, path: str, cursor: str, since: str
) -> list[dict[str, Any]]:
    """Return a provider's batches since a time, and those that don't say when they were made.

    Other programs have batches there too, so a row may have any form.

    Raises:
        ModelError: nothing on a page can be read, so ours may come after it.

    """
    oldest = datetime.fromisoformat(since).timestamp() - _SKEW
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        query = urlencode({"limit": _PAGE, **after})
        page = decode(await client.send(HttpCall(path=f"{path}?{query}")), _Page)
        batches = [each for each in page.data if _is_batch(each)]
        if page.data and not batches:
            raise ModelError("unreadable", "the list of batches can't be read", retry=True)
        recent = [each for each in batches if _created(each.get("created_at")) >= oldest]
        found += recent
        # The newest come first.
        if not page.has_more or not recent:
            break
        after = {cursor: batches[-1]["id"]}
    return found


def _is_batch(row: object) -> bool:
    match row:
        case {"id": str()}:
            return True
        case _:
            return False


def _created(value: object) -> float:
    """Return a time that is given in seconds or as ISO 8601; the future where it is unknown."""
    if isinstance(value, int | float):
        return value
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return math.inf
