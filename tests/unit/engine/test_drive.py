"""Driving flows: order, side by side, and nothing left behind whatever happens."""

import asyncio
import gc
from collections.abc import Awaitable, Callable

import pytest

from jurybox.engine.driver import drive, drive_sync
from jurybox.judging.flow import (
    Flow,
    ModelReply,
    ModelRequest,
    Outcome,
    together,
)
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn


def request(text: str) -> ModelRequest:
    turn = Turn(role="user", content=text)
    return ModelRequest(model="m", messages=(turn,), generation=Generation())


def said(to: ModelRequest) -> str:
    return to.messages[0].content


class Batches:
    """A flow of some batches that returns what it was sent; it knows whether it was closed."""

    def __init__(self, *batches: str) -> None:
        self.batches = batches
        self.closed = False
        self.sent: list[str] = []

    def flow(self) -> Flow[list[str]]:
        try:
            for batch in self.batches:
                outcomes = yield tuple(request(letter) for letter in batch)
                assert len(outcomes) == len(batch)
                self.sent += [o.text if isinstance(o, ModelReply) else o.kind for o in outcomes]
            return self.sent
        finally:
            self.closed = True


async def echo(to: ModelRequest) -> Outcome:
    return ModelReply(text=said(to).upper())


def test_every_batch_is_answered_in_order() -> None:
    batches = Batches("ab", "", "c")
    assert asyncio.run(drive(batches.flow(), echo)) == ["A", "B", "C"]
    assert batches.closed


def test_without_an_event_loop_it_is_the_same() -> None:
    result = drive_sync(Batches("ab", "c").flow(), lambda to: ModelReply(text=said(to).upper()))
    assert result == ["A", "B", "C"]


def test_a_batch_goes_out_side_by_side_and_comes_back_in_order() -> None:
    """Each call waits for the one behind it, so one after the other would never end."""
    letters = "abcd"
    arrived = {letter: asyncio.Event() for letter in letters}
    seen: list[str] = []

    async def backwards(to: ModelRequest) -> Outcome:
        behind = letters[letters.index(said(to)) + 1 :][:1]
        if behind:
            await arrived[behind].wait()
        arrived[said(to)].set()
        seen.append(said(to))
        return ModelReply(text=said(to))

    async def main() -> list[str]:
        async with asyncio.timeout(20):
            return await drive(Batches(letters).flow(), backwards)

    assert asyncio.run(main()) == list(letters)
    assert seen == list(reversed(letters))


def test_all_calls_of_a_batch_are_made_in_order_before_any_is_awaited() -> None:
    """So that a caller can number the requests as the flow has them."""
    events: list[str] = []

    def numbered(to: ModelRequest) -> Awaitable[Outcome]:
        events.append(f"call {said(to)}")

        async def wait() -> Outcome:
            events.append(f"wait {said(to)}")
            await asyncio.sleep(0)
            return ModelReply(text=said(to))

        return wait()

    assert asyncio.run(drive(Batches("ba", "c").flow(), numbered)) == ["b", "a", "c"]
    assert events == ["call b", "call a", "wait b", "wait a", "call c", "wait c"]


def test_what_was_begun_before_a_call_that_breaks_at_once_is_dropped() -> None:
    """Neither a coroutine that is never awaited, which would warn, nor a task that goes on."""

    async def main() -> None:
        tasks: list[asyncio.Task[Outcome]] = []

        def call(to: ModelRequest) -> Awaitable[Outcome]:
            match said(to):
                case "a":
                    return echo(to)
                case "b":
                    tasks.append(asyncio.create_task(echo(to)))
                    return tasks[0]
                case _:
                    raise BrokenError

        batches = Batches("abc")
        with pytest.raises(BrokenError):
            await drive(batches.flow(), call)
        assert batches.closed
        await asyncio.wait(tasks)
        assert tasks[0].cancelled()

    asyncio.run(main())
    gc.collect()


class BrokenError(Exception):
    pass


async def broken(_: ModelRequest) -> Outcome:
    raise BrokenError


def broken_at_once(_: ModelRequest) -> Awaitable[Outcome]:
    raise BrokenError


async def stopped(_: ModelRequest) -> Outcome:
    raise StopAsyncIteration


async def broken_into_parts(_: ModelRequest) -> Outcome:
    raise ExceptionGroup("several", [BrokenError()])


@pytest.mark.parametrize("letters", ["a", "ab"])
@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (broken, BrokenError),
        (broken_at_once, BrokenError),
        (stopped, StopAsyncIteration),
        (broken_into_parts, ExceptionGroup),
    ],
)
def test_an_exception_closes_the_flow_and_is_raised_as_it_is(
    call: Callable[[ModelRequest], Awaitable[Outcome]], kind: type[Exception], letters: str
) -> None:
    batches = Batches(letters, "c")
    with pytest.raises(kind):
        asyncio.run(drive(batches.flow(), call))
    assert batches.closed
    assert batches.sent == []


def test_an_exception_stops_the_others() -> None:
    cancelled: list[str] = []

    async def main() -> None:
        ready = asyncio.Event()

        async def call(to: ModelRequest) -> Outcome:
            if said(to) == "a":
                return ModelReply(text="a")
            if said(to) == "b":
                await ready.wait()
                raise BrokenError
            try:
                ready.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(said(to))
                raise
            raise AssertionError

        with pytest.raises(BrokenError):
            await drive(Batches("abc").flow(), call)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert cancelled == ["c"]


def test_a_fault_of_the_flow_is_raised() -> None:
    def flow() -> Flow[None]:
        yield (request("a"),)
        raise BrokenError

    with pytest.raises(BrokenError):
        asyncio.run(drive(flow(), echo))


@pytest.mark.parametrize("letters", ["a", "abc"])
def test_cancellation_closes_the_flow_and_leaves_no_task(letters: str) -> None:
    batches = Batches(letters)
    stopped_calls: list[str] = []

    async def main() -> None:
        started = asyncio.Semaphore(0)

        async def wait(to: ModelRequest) -> Outcome:
            started.release()
            try:
                await asyncio.Event().wait()
            finally:
                stopped_calls.append(said(to))
            raise AssertionError

        task = asyncio.create_task(drive(batches.flow(), wait))
        for _ in letters:
            await started.acquire()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert batches.closed
    assert sorted(stopped_calls) == list(letters)


def test_the_flows_inside_a_flow_are_closed_too() -> None:
    inner = [Batches("a", "b"), Batches("c")]

    async def main() -> None:
        with pytest.raises(BrokenError):
            await drive(together(*(one.flow() for one in inner)), broken)

    asyncio.run(main())
    assert [one.closed for one in inner] == [True, True]
