"""The values that all rooms share: a sample, its responses, their timing and usage."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens; None where the model doesn't report them.

    Of the input, ``cached_tokens`` were read from a provider's cache of prompts, and
    ``written_tokens`` were written into it, where a provider reports that.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | msgspec.UnsetType = msgspec.UNSET

    def __add__(self, other: "Usage") -> "Usage":
        """Add what is known; a sum is unknown only where both parts are."""
        return added_usage((self, other))


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long a response took; None where it wasn't measured.

    ``attempts`` were made at the response, the last of which took ``latency_attempt_ms``.
    ``cached`` marks times that were measured when the response was made for an earlier run: they
    are kept, and never mixed with what this run measured.
    """

    latency_e2e_ms: float | None = None
    latency_model_ms: float | None = None
    timed_out: bool = False
    cached: bool = False
    attempts: int | None = None
    latency_attempt_ms: float | None = None


class Turn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of the conversation before the task."""

    role: Literal["system", "user", "assistant"]
    content: str


EMPTY: Final = "the response is empty"
"""Why a response without a word isn't judged."""

# Letters and symbols that show nothing, next to all that are no print at all.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def emptiness(text: str) -> str | None:
    """Return why there is nothing to judge; None where a character of the text is seen (D2)."""
    for char in text:
        if char.isprintable() and not char.isspace() and not _is_blank(char):
            return None
    return EMPTY


def _is_blank(char: str) -> bool:
    selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return selector or char in _BLANK


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A response of the system under test; ``error`` says why there is none."""

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
    scenario: str | None = None

    @property
    def failure(self) -> str | None:
        """Why there is nothing to judge: a response failed, is empty or came too late."""
        for each in (self.response, self.response_b):
            if each is not None and not each.answered:
                return each.error or "timed out"
        return None

    @property
    def texts(self) -> tuple[str, ...]:
        """All the material: every text that a judge is shown."""
        turns = [turn.content for turn in self.messages]
        second = None if self.response_b is None else self.response_b.text
        texts = (self.task, self.context, self.reference, *turns, self.response.text, second)
        return tuple([text for text in texts if text is not None])


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
    checks: tuple[dict[str, Any], ...] | msgspec.UnsetType = msgspec.UNSET
    """The row's own checks (D4); not stored where it has none."""

    def sample(self, response: Response) -> Sample:
        """Return the sample with its response."""
        return Sample(
            id=self.id,
            task=self.task,
            reference=self.reference,
            context=self.context,
            messages=self.messages,
            scenario=self.scenario,
            response=response,
            response_b=self.response_b,
        )


def added_usage(parts: Sequence[Usage]) -> Usage:
    """Return the sum of what is known; it is unknown only where all parts are."""
    if len(parts) == 1:
        return parts[0]
    written = [each.written_tokens for each in parts if each.written_tokens is not msgspec.UNSET]
    return Usage(
        input_tokens=_sum([each.input_tokens for each in parts]),
        output_tokens=_sum([each.output_tokens for each in parts]),
        cached_tokens=_sum([each.cached_tokens for each in parts]),
        written_tokens=sum(written) if written else msgspec.UNSET,
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
