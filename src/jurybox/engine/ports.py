"""The interfaces that the engine needs: a model, a clock, a sink."""

from collections.abc import Sequence
from typing import Protocol

from jurybox.engine.records import ExchangeRow, SampleRow
from jurybox.judging.flow import FailureKind, ModelReply, ModelRequest


class ModelError(Exception):
    """One attempt at a request failed.

    Attributes:
        kind: the kind of failure.
        retry: whether the same request may succeed later.
        retry_after: how many seconds the endpoint asked the client to wait; None if it didn't.
        fatal: whether every other request to this model would fail too; with ``retry``, this only
            counts while the endpoint has never answered.

    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retry: bool,
        retry_after: float | None = None,
        fatal: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.retry = retry
        self.retry_after = retry_after
        self.fatal = fatal


class Model(Protocol):
    """A model; the engine adds retries and limits."""

    @property
    def endpoint(self) -> str:
        """The key of a shared limit: the address for a remote model, the name for a local one."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make one attempt."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


class Clock(Protocol):
    """A clock that tests can replace, so that they don't really wait."""

    def now(self) -> float:
        """Return monotonic seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Sink(Protocol):
    """Stores the results of a run."""

    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        """Store finished samples and exchanges, either all of them or none.

        A sample's facets (its index entry) are stored together with it.
        """
        ...
