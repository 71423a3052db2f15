"""The nouns that everybody shares: a sample, its responses, what they took."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens; None where the model didn't say.

    Of the input, ``cached_tokens`` were read from a provider's cache of prompts, and
    ``written_tokens`` were written into it, where a provider tells and charges for that.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | msgspec.UnsetType = msgspec.UNSET

    def __add__(self, other: "Usage") -> "Usage":
        """Add what is known; a sum is unknown only where both parts are."""
        return Usage(
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            cached_tokens=_sum(self.cached_tokens, other.cached_tokens),
            written_tokens=_told(self.written_tokens, other.written_tokens),
        )


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long a response took; None where it wasn't measured.

    ``cached`` marks times that were measured when the response was made for an earlier run: they
    are kept, and never mixed with what this run measured.
    """

    latency_e2e_ms: float | None = None
    latency_model_ms: float | None = None
    timed_out: bool = False
    cached: bool = False


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation before the task."""

    role: Literal["system", "user", "assistant"]
    content: str


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What the system under test said; ``error`` is why it said nothing."""

    text: str
    timing: Timing = Timing()
    usage: Usage = Usage()
    error: str | None = None

    @property
    def answered(self) -> bool:
        """Whether there is anything to judge; what came too late doesn't count (A7)."""
        return self.error is None and not self.timing.timed_out


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its context, its reference and its responses."""

    task: str
    response: Response
    response_b: Response | None = None
    id: str = ""
    reference: str | None = None
    context: str | None = None
    messages: tuple[Turn, ...] = ()


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as a dataset gives it: its response may still have to be made."""

    id: str
    task: str
    reference: str | None = None
    context: str | None = None
    messages: tuple[Turn, ...] = ()
    scenario: str | None = None
    metadata: dict[str, Any] = {}
    response: Response | None = None
    response_b: Response | None = None

    def sample(self, response: Response) -> Sample:
        """Return the sample with its response."""
        return Sample(
            id=self.id,
            task=self.task,
            reference=self.reference,
            context=self.context,
            messages=self.messages,
            response=response,
            response_b=self.response_b,
        )


def added_usage(parts: Sequence[Usage]) -> Usage:
    """Return the sum of what was used; nothing is known of none."""
    # One that is added to nothing is itself.
    return parts[0] if len(parts) == 1 else sum(parts, Usage())


def _told(a: int | msgspec.UnsetType, b: int | msgspec.UnsetType) -> int | msgspec.UnsetType:
    if a is msgspec.UNSET or b is msgspec.UNSET:
        return a if b is msgspec.UNSET else b
    return a + b


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
