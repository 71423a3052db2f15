"""The nouns that everybody shares: a sample, its responses, what they took."""

from typing import Literal

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens; None where the model didn't say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None

    def __add__(self, other: "Usage") -> "Usage":
        """Add what is known; a sum is unknown only where both parts are."""
        return Usage(
            input_tokens=_sum(self.input_tokens, other.input_tokens),
            output_tokens=_sum(self.output_tokens, other.output_tokens),
            cached_tokens=_sum(self.cached_tokens, other.cached_tokens),
        )


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long a response took; None where it wasn't measured."""

    latency_e2e_ms: float | None = None
    latency_model_ms: float | None = None
    timed_out: bool = False


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation before the task."""

    role: Literal["system", "user", "assistant"]
    content: str


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What the system under test said."""

    text: str
    timing: Timing = Timing()
    usage: Usage = Usage()


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """A task with its context, its reference and its responses."""

    task: str
    response: Response
    response_b: Response | None = None
    id: str = ""
    reference: str | None = None
    context: str | None = None
    messages: tuple[Turn, ...] = ()


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
