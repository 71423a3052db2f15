"""What the engine needs from outside, as small as it can be said."""

from typing import Protocol

from jurybox.judging.exchange import FailureKind, ModelReply, ModelRequest


class ModelTrouble(Exception):  # noqa: N818 - trouble is expected, and most of it passes
    """One attempt at a request came to nothing.

    Attributes:
        kind: what went wrong, as a failure would say it.
        retry: whether the same request may succeed later.
        retry_after: how many seconds the endpoint asked to wait, where it said so.
        everybody: whether every other request to this model would fare the same; trouble that may
            pass counts as such only while the endpoint has never answered.

    """

    def __init__(
        self,
        kind: FailureKind,
        message: str,
        *,
        retry: bool,
        retry_after: float | None = None,
        everybody: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.retry = retry
        self.retry_after = retry_after
        self.everybody = everybody


class Model(Protocol):
    """A model that can be asked once; retries and limits are the engine's."""

    @property
    def endpoint(self) -> str:
        """What shares one limit: the address for a remote model, the name for a local one."""
        ...

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Make one attempt.

        Raises:
            ModelTrouble: the attempt came to nothing.

        """
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


class Clock(Protocol):
    """Time as an argument, so that waits can be tested without waiting."""

    def now(self) -> float:
        """Return seconds that only ever grow."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...
