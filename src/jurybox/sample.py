"""The values that all packages share: a sample, its responses, their timing and usage."""

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Token counts; None if the model doesn't report them.

    ``cached_tokens`` is the part of the input read from the provider's prompt cache, and
    ``written_tokens`` the part written to it, if the provider reports them.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    written_tokens: int | msgspec.UnsetType = msgspec.UNSET


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long a response took; None if not measured.

    ``attempts`` counts the requests made for the response; the last one took
    ``latency_attempt_ms``. ``cached`` marks times measured in an earlier run, which are never mixed
    with this run's.
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
"""The reason why an empty response isn't judged."""

# Invisible letters and symbols, in addition to all unprintable characters.
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def emptiness(text: str) -> str | None:
    """Return why there is nothing to judge; None if the text has a visible character."""
    for char in text:
        if char.isprintable() and not char.isspace() and not _is_blank(char):
            return None
    return EMPTY


def _is_blank(char: str) -> bool:
    selector = "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"
    return selector or char in _BLANK


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A response of the system under test; ``error`` says why it is missing."""

    text: str
    timing: Timing = Timing()
    usage: Usage = Usage()
    error: str | None = None

    @property
    def answered(self) -> bool:
        """Whether there is a response to judge; a late one doesn't count."""
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
        """Why there is nothing to judge: a response failed, is empty or was late."""
        for each in (self.response, self.response_b):
            if each is not None and not each.answered:
                return each.error or "timed out"
        return None

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts that a judge is shown."""
        turns = [turn.content for turn in self.messages]
        second = None if self.response_b is None else self.response_b.text
        texts = (self.task, self.context, self.reference, *turns, self.response.text, second)
        return tuple([text for text in texts if text is not None])


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a dataset: a sample whose response may still be missing."""

    id: str
    task: str
    reference: str | None = None
    context: str | None = None
    messages: tuple[Turn, ...] = ()
    scenario: str | None = None
    metadata: dict[str, Any] = {}
    response: Response | None = None
    response_b: Response | None = None
    checks: tuple[dict[str, Any], ...] = ()

    def sample(self, response: Response) -> Sample:
        """Return the row as a sample with this response."""
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
    """Return the sum of the known counts; a sum is unknown only if all its parts are."""
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
