"""Judging as a conversation without I/O.

A flow is a generator that yields requests and is sent their outcomes. It never waits, reads a clock
or touches a socket, so one implementation serves sync and async callers, and driving a flow again
with stored replies gives the same result. The driver retries transport errors; the flow asks again
after an invalid reply.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from jurybox.rubric.rubric_model import Generation, Protocol
from jurybox.sample import Turn, Usage
from jurybox.text_format import cut

# A long defect would hide why asking again failed.
_LONGEST_DEFECT: Final = 100

FailureKind = Literal["timeout", "unreachable", "rate-limit", "refused", "failed", "unreadable"]


class Frame(msgspec.Struct, frozen=True):
    """The text that prompts of one kind share, before and after the material."""

    before: str
    after: str

    def around(self, material: str) -> str:
        """Return the prompt with this material between the shared beginning and end."""
        return f"{self.before}{material}{self.after}"


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to one model.

    ``schema`` is the JSON schema of the reply, as text. Models without structured output ignore it;
    every reply is validated anyway. ``vote`` distinguishes requests of different votes in a cache,
    even if nothing else differs. ``logprobs`` is the number of alternatives per token to return
    with their probabilities.

    ``frame`` is the text that the only message shares with the messages of other samples. Without a
    frame, ``shared`` may give the positions in the last message after which other requests differ.
    Neither changes the request itself, only the cost of sending and storing it.
    """

    model: str
    generation: Generation
    schema: str | None = None
    vote: int = 0
    logprobs: int = 0
    frame: Frame | None = None
    shared: tuple[int, ...] = ()
    messages: tuple[Turn, ...]

    @property
    def shared_ends(self) -> tuple[int, ...]:
        """The positions in the last message after which other requests may differ.

        A slow model, or a provider with a prompt cache, reads the part before them once.
        """
        return self.shared if self.frame is None else (len(self.frame.before),)


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """A model's reply, word for word, with its timing and usage.

    ``sent`` are the parameters that were actually sent, since some models accept no temperature or
    seed. ``refused`` are those that the endpoint refused. ``latency_ms`` is the time from the first
    of ``attempts`` to the last byte of the answer; ``attempt_ms`` is the time of the last attempt,
    if there were several; ``latency_model_ms`` is the model's own time, if the provider reports it.
    A ``cached`` reply is from an earlier run. ``logprobs`` is JSON in the format of OpenAI's chat
    completions. ``reference`` says where the provider keeps the reply, if it can be fetched again.
    """

    text: str
    usage: Usage = Usage()
    sent: Generation | None = None
    seed_sent: bool = True
    refused: tuple[str, ...] = ()
    model: str | None = None
    fingerprint: str | None = None
    finish_reason: str | None = None
    latency_ms: float | None = None
    attempts: int = 1
    attempt_ms: float | None = None
    latency_model_ms: float | None = None
    logprobs: str | None = None
    cached: bool = False
    reference: str | None = None

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The parameters that the model doesn't support."""
        if self.seed_sent or "seed" in self.refused:
            return ()
        return Generation.__struct_fields__ if self.sent is None else ("seed",)

    def retried(self, attempts: int, latency_ms: float | None) -> "ModelReply":
        """Return the reply with the number of attempts and the total waiting time."""
        return msgspec.structs.replace(
            self,
            latency_ms=latency_ms,
            attempts=attempts - 1 + self.attempts,
            attempt_ms=self.latency_ms if self.attempt_ms is None else self.attempt_ms,
        )


class ReportedModel(msgspec.Struct, frozen=True, array_like=True, order=True):
    """The model and build that the provider reports; empty if it reports none."""

    model: str = ""
    fingerprint: str = ""

    def __str__(self) -> str:
        """Return the model and its build as one string."""
        return " ".join(filter(None, (self.model, self.fingerprint)))


def reported_models(replies: Iterable[ModelReply]) -> tuple[ReportedModel, ...]:
    """Return the models and builds that the providers report, without duplicates."""
    found = (ReportedModel(each.model or "", each.fingerprint or "") for each in replies)
    return tuple(dict.fromkeys(found))


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A request that got no reply after all retries; used in place of the reply.

    ``fatal`` means that every request of the run would fail: the endpoint is unreachable, or
    refuses the key or the model. ``transient`` means that the same request may succeed later, so
    `jurybox resume` repeats it. ``latency_ms`` is the time of all ``attempts``.
    """

    kind: FailureKind
    message: str
    fatal: bool = False
    transient: bool = False
    latency_ms: float | None = None
    attempts: int = 1


Outcome = ModelReply | Failure


T = TypeVar("T")

Flow = Generator[tuple[ModelRequest, ...], tuple[Outcome, ...], T]


class Defect(msgspec.Struct, frozen=True):
    """A defect of a reply, worded so that the model can correct it."""

    problem: str


class Answer(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A valid reply: ``value`` is parsed from the last of ``replies``."""

    value: T
    replies: tuple[ModelReply, ...]


class Unscored(msgspec.Struct, frozen=True, kw_only=True):
    """A question without a valid answer; it gets no score, not even 0.

    The cause is a failure only if no reply came; a reply with a defect comes first.
    """

    reason: str
    cause: Literal["defect", "failure"]
    replies: tuple[ModelReply, ...] = ()


def ask(
    request: ModelRequest, read: Callable[[str], T | Defect], protocol: Protocol
) -> Flow[Answer[T] | Unscored]:
    """Ask, validate, and on a defect ask again, as many times as the protocol allows."""
    replies: tuple[ModelReply, ...] = ()
    current = request
    defect = Defect("the model was never asked")
    for _ in range(protocol.reasks + 1):
        (outcome,) = yield (current,)
        if isinstance(outcome, Failure):
            return _unanswered(outcome, defect, replies)
        replies = (*replies, outcome)
        value = read(outcome.text)
        if not isinstance(value, Defect):
            return Answer(value=value, replies=replies)
        defect = value
        if protocol.reask_with == "defect":
            current = _with_defect(request, outcome, defect)
    return Unscored(reason=defect.problem, cause="defect", replies=replies)


def _unanswered(failure: Failure, defect: Defect, replies: tuple[ModelReply, ...]) -> Unscored:
    """Return why there is no answer; a reply that came and has a defect is the first reason."""
    if not replies:
        return Unscored(reason=failure.message, cause="failure")
    problem = cut(defect.problem.removesuffix("."), _LONGEST_DEFECT)
    reason = f"{problem}; asking again failed: {failure.message}"
    return Unscored(reason=reason, cause="defect", replies=replies)


def _with_defect(request: ModelRequest, reply: ModelReply, defect: Defect) -> ModelRequest:
    """Show the model its last reply and its defect; earlier replies would only distract."""
    complaint = (
        f"Your reply can't be used: {defect.problem}\n"
        "Reply again, in full and in the required format, for the same material and rubric."
    )
    messages = (
        *request.messages,
        # Some endpoints refuse an empty message.
        Turn(role="assistant", content=reply.text or "(empty)"),
        Turn(role="user", content=complaint),
    )
    return msgspec.structs.replace(request, messages=messages, frame=None, shared=())


def together(*flows: Flow[Any]) -> Flow[tuple[Any, ...]]:
    """Run several flows concurrently, with one merged batch of requests per round."""
    results: list[Any] = [None] * len(flows)
    waiting: dict[int, tuple[ModelRequest, ...]] = {}
    try:
        for index, flow in enumerate(flows):
            _step(waiting, results, index, flow, None)
        while waiting:
            outcomes = yield tuple(chain.from_iterable(waiting.values()))
            for index, batch in tuple(waiting.items()):
                mine, outcomes = outcomes[: len(batch)], outcomes[len(batch) :]
                _step(waiting, results, index, flows[index], mine)
    finally:
        # If this flow is closed, close all flows in it.
        for flow in flows:
            flow.close()
    return tuple(results)


def _step(
    waiting: dict[int, tuple[ModelRequest, ...]],
    results: list[Any],
    index: int,
    flow: Flow[Any],
    sent: Any,  # noqa: ANN401 - None starts a flow, which the type of sent values does not allow
) -> None:
    try:
        waiting[index] = flow.send(sent)
    except StopIteration as done:
        waiting.pop(index, None)
        results[index] = done.value


B = TypeVar("B")

VotesNeeded = Callable[[Sequence[B], int], int]
"""The minimum number of further votes, given the votes so far and the size of the jury."""


def run_until_decided(flows: Sequence[Flow[B]], needed: VotesNeeded[B]) -> Flow[tuple[B, ...]]:
    """Run the flows in rounds until no further vote is needed; return the results so far."""
    if len(flows) == 1 and needed((), 1) == 1:
        # Most juries have one vote, which needs no merged batches.
        return ((yield from flows[0]),)
    given: tuple[B, ...] = ()
    try:
        while len(given) < len(flows) and (more := needed(given, len(flows))):
            given += yield from together(*flows[len(given) : len(given) + more])
    finally:
        for flow in flows[len(given) :]:
            flow.close()
    return given


def all_at_once(given: Sequence[object], votes: int) -> int:
    """Require all remaining votes, whatever the votes so far are."""
    return votes - len(given)
