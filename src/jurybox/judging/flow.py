"""Judging as a conversation without I/O.

A flow is a generator that yields requests and is sent their outcomes. It never waits, reads a clock
or touches a socket, so one implementation serves sync and async callers, and the same flow driven
again over stored replies comes to the same result. The driver retries transport
errors; the flow asks again for bad content.
"""

from collections.abc import Callable, Generator
from itertools import chain
from typing import Any, Generic, Literal, TypeVar

import msgspec

from jurybox.judging.exchange import Failure, ModelReply, ModelRequest, Outcome
from jurybox.sample import Turn

T = TypeVar("T")

Flow = Generator[tuple[ModelRequest, ...], tuple[Outcome, ...], T]


class Defect(msgspec.Struct, frozen=True):
    """What is wrong with a reply, said so that the model can correct it."""

    problem: str


class Answer(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A reply that could be read: ``value`` is what the last of ``replies`` says."""

    value: T
    replies: tuple[ModelReply, ...]


class Unscored(msgspec.Struct, frozen=True, kw_only=True):
    """A question that got no valid answer: never a default score, never 0 (E6)."""

    reason: str
    cause: Literal["defect", "failure"]
    replies: tuple[ModelReply, ...] = ()


class ReaskPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often an invalid reply is asked for again, and whether its defect is shown."""

    reasks: int = 2
    reask_with: Literal["defect", "same"] = "defect"


def ask(
    request: ModelRequest, read: Callable[[str], T | Defect], policy: ReaskPolicy
) -> Flow[Answer[T] | Unscored]:
    """Ask, validate, and on a defect ask again."""
    replies: tuple[ModelReply, ...] = ()
    current = request
    defect = Defect("the model was never asked")
    for _ in range(policy.reasks + 1):
        (outcome,) = yield (current,)
        if isinstance(outcome, Failure):
            return Unscored(reason=outcome.message, cause="failure", replies=replies)
        replies = (*replies, outcome)
        value = read(outcome.text)
        if not isinstance(value, Defect):
            return Answer(value=value, replies=replies)
        defect = value
        if policy.reask_with == "defect":
            current = _with_defect(request, outcome, defect)
    return Unscored(reason=defect.problem, cause="defect", replies=replies)


def _with_defect(request: ModelRequest, reply: ModelReply, defect: Defect) -> ModelRequest:
    """Show the model its last reply and what is wrong with it; earlier ones would only distract."""
    complaint = (
        f"Your reply can't be used: {defect.problem}\n"
        "Reply again, complete and in the required format, on the same material and rubric."
    )
    messages = (
        *request.messages,
        # Some endpoints refuse an empty message.
        Turn(role="assistant", content=reply.text or "(empty)"),
        Turn(role="user", content=complaint),
    )
    return msgspec.structs.replace(request, messages=messages, frame=None, shared=())


def together(*flows: Flow[Any]) -> Flow[tuple[Any, ...]]:
    """Step several flows side by side, with one merged batch of requests per round."""
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
        # A conversation that is stopped half-way stops as a whole.
        for flow in flows:
            flow.close()
    return tuple(results)


def _step(
    waiting: dict[int, tuple[ModelRequest, ...]],
    results: list[Any],
    index: int,
    flow: Flow[Any],
    sent: Any,  # noqa: ANN401 - None begins a flow, and what it is sent has no type for that
) -> None:
    try:
        waiting[index] = flow.send(sent)
    except StopIteration as done:
        waiting.pop(index, None)
        results[index] = done.value
