"""What the engine needs of a provider that takes many requests at once and answers them later."""

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from jurybox.judging.exchange import FailureKind, ModelReply, ModelRequest
from jurybox.running.ports import ModelTrouble


class LapsedTrouble(ModelTrouble):
    """A request of a batch that ended before anybody tried it: it expired or was cancelled."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(kind, message, retry=True)


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says of a batch.

    Attributes:
        state: ``refused`` where none of its requests will ever be tried.
        answered: how many requests are done with, where it says so.
        problem: why it was refused.
        too_much: whether fewer requests at once might have been taken.
        places: where the answers can be read, as the adapter understands it.

    """

    state: Literal["open", "ended", "refused"]
    answered: int | None = None
    problem: str = ""
    too_much: bool = False
    places: tuple[str, ...] = ()


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One line of what a batch came to; ``name`` is empty where the line can't be read."""

    name: str
    line: bytes


class Results(Protocol):
    """All lines of what a batch came to, to be read as often as one likes."""

    def __iter__(self) -> Iterator[Result]:
        """Yield the lines."""
        ...

    def close(self) -> None:
        """Let go of them."""
        ...


class BatchModel(Protocol):
    """One model of such a provider.

    Every call that asks the provider raises `ModelTrouble` where that came to nothing. ``terms``
    say in which form requests go out; a batch is in one form, and its answers are read in it.
    """

    @property
    def endpoint(self) -> str:
        """The address."""
        ...

    def terms(self) -> str:
        """Return the form that is known to be taken, as text that can be stored."""
        ...

    def line(self, name: str, request: ModelRequest, terms: str) -> bytes:
        """Return a request as it stands in a batch.

        Raises:
            ModelTrouble: it can't be sent.

        """
        ...

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        """Hand over a batch, marked where the provider has room for that; return its name."""
        ...

    async def find(self, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the names of batches that may be the one with that mark."""
        ...

    async def look(self, batch_id: str) -> Look:
        """Return how far a batch is."""
        ...

    async def fetch(self, look: Look) -> Results:
        """Get what an ended batch came to."""
        ...

    def read(self, line: bytes, request: ModelRequest, terms: str) -> ModelReply:
        """Return the reply that a line holds.

        Raises:
            LapsedTrouble: the request was never tried.
            ModelTrouble: there is none.

        """
        ...

    def concede(self, trouble: ModelTrouble, request: ModelRequest, terms: str) -> bool:
        """Learn from a refusal; tell whether the request may be taken in another form."""
        ...
