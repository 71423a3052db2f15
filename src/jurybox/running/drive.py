"""Running a flow against models: the only place where judging waits for anybody.

A flow yields batches of requests; the driver answers each batch, in order, until the flow returns.
Whatever stops the driver, the flow is closed and nothing goes on in the background.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from jurybox.judging.exchange import ModelRequest, Outcome
from jurybox.judging.flow import Flow

T = TypeVar("T")

Call = Callable[[ModelRequest], Awaitable[Outcome]]
OnExchange = Callable[[ModelRequest, Outcome], None]


async def drive(flow: Flow[T], call: Call, *, on_exchange: OnExchange | None = None) -> T:
    """Run ``flow`` to its end, each of its batches side by side.

    ``on_exchange`` sees every outcome as soon as it is there, in the order of arrival: what was
    paid for is recorded even where another request of the batch breaks everything off. The first
    exception of ``call`` or ``on_exchange`` stops the rest of the batch and is raised as it is.
    """

    async def answered(request: ModelRequest) -> Outcome:
        outcome = await call(request)
        if on_exchange is not None:
            on_exchange(request, outcome)
        return outcome

    try:
        step = _next(flow, None)
        while not isinstance(step, _Done):
            step = _next(flow, await _together(step, answered))
        return step.value
    finally:
        flow.close()


def drive_sync(
    flow: Flow[T],
    call: Callable[[ModelRequest], Outcome],
    *,
    on_exchange: OnExchange | None = None,
) -> T:
    """Run ``flow`` without an event loop: over stored replies, or in a test."""
    try:
        step = _next(flow, None)
        while not isinstance(step, _Done):
            outcomes: list[Outcome] = []
            for request in step:
                outcome = call(request)
                if on_exchange is not None:
                    on_exchange(request, outcome)
                outcomes.append(outcome)
            step = _next(flow, tuple(outcomes))
        return step.value
    finally:
        flow.close()


class _Done(Generic[T]):
    """What a flow returned; a class of its own, because a flow may return a tuple."""

    def __init__(self, value: T) -> None:
        self.value = value


def _next(
    flow: Flow[T], outcomes: tuple[Outcome, ...] | None
) -> "tuple[ModelRequest, ...] | _Done[T]":
    # Only the step itself stands in the `try`: a StopIteration from anywhere else is a fault.
    try:
        return next(flow) if outcomes is None else flow.send(outcomes)
    except StopIteration as done:
        return _Done(done.value)


async def _together(batch: tuple[ModelRequest, ...], answered: Call) -> tuple[Outcome, ...]:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_awaited(answered(request))) for request in batch]
    except BaseExceptionGroup as several:
        # Callers know the exceptions of their own `call`; a group would hide them.
        raise several.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def _awaited(outcome: Awaitable[Outcome]) -> Outcome:
    return await outcome
