"""Runs a flow against models: the only place where judging waits for a reply.

A flow yields batches of requests; the driver answers each batch, in order, until the flow returns.
Whatever stops the driver, the flow is closed and no task continues in the background.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from jurybox.judging.flow import Flow, ModelRequest, Outcome

T = TypeVar("T")

Call = Callable[[ModelRequest], Awaitable[Outcome]]
OnExchange = Callable[[ModelRequest, Outcome], None]


async def drive(flow: Flow[T], call: Call, *, on_exchange: OnExchange | None = None) -> T:
    """Run ``flow`` to its end; the requests of each batch run concurrently.

    ``call`` is called for every request of a batch, in the flow's order, before anything of the
    batch is awaited: a caller that assigns positions or numbers can do it there.

    ``on_exchange`` sees every outcome as soon as it is there, in the order of arrival: what was
    paid for is recorded even where another request of the batch breaks everything off. The first
    exception of ``call`` or ``on_exchange`` stops the rest of the batch and is raised as it is.
    """
    try:
        step = _next(flow, None)
        while not isinstance(step, _Done):
            await asyncio.sleep(0)  # samples take turns, see `Runner`
            if len(step) == 1:
                # Most batches have one request; the bookkeeping for several would cost more
                # than the request itself.
                (request,) = step
                outcome = await call(request)
                if on_exchange is not None:
                    on_exchange(request, outcome)
                outcomes = (outcome,)
            else:
                outcomes = await _together(step, call, on_exchange)
            await asyncio.sleep(0)
            step = _next(flow, outcomes)
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
    """The value a flow returned; a separate class, because a flow may return a tuple."""

    def __init__(self, value: T) -> None:
        self.value = value


def _next(
    flow: Flow[T], outcomes: tuple[Outcome, ...] | None
) -> "tuple[ModelRequest, ...] | _Done[T]":
    # Only the step itself is in the `try`: a StopIteration from anywhere else is a bug.
    try:
        return next(flow) if outcomes is None else flow.send(outcomes)
    except StopIteration as done:
        return _Done(done.value)


async def _together(
    batch: tuple[ModelRequest, ...], call: Call, on_exchange: OnExchange | None
) -> tuple[Outcome, ...]:
    begun: list[Awaitable[Outcome]] = []
    try:
        # One after the other, so that those before one that breaks at once are known.
        for request in batch:
            begun.append(call(request))  # noqa: PERF401
        coming = [
            _answer(request, outcome, on_exchange)
            for request, outcome in zip(batch, begun, strict=True)
        ]
        return await _side_by_side(coming)
    except BaseException:
        for outcome in begun:
            _drop(outcome)
        raise


async def _side_by_side(coming: Sequence[Coroutine[Any, Any, Outcome]]) -> tuple[Outcome, ...]:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in coming]
    except BaseExceptionGroup as several:
        # Callers know the exceptions of their own `call`; a group would hide them.
        raise several.exceptions[0] from None
    return tuple(task.result() for task in tasks)


async def _answer(
    request: ModelRequest, outcome: Awaitable[Outcome], on_exchange: OnExchange | None
) -> Outcome:
    answer = await outcome
    if on_exchange is not None:
        on_exchange(request, answer)
    return answer


def _drop(outcome: Awaitable[Outcome]) -> None:
    """Cancel pending tasks; leave finished tasks unchanged."""
    if isinstance(outcome, Coroutine):
        outcome.close()
    elif isinstance(outcome, asyncio.Future):
        outcome.cancel()
