"""The runner: bounded, stoppable, and never at the mercy of one sample."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence

import msgspec
import pytest

from jurybox import load_rubric
from jurybox.engine.driver import Callers, SampleState
from jurybox.engine.limiter import Limits, UnwrittenReplies
from jurybox.engine.records import ExchangeRow, SampleRow, Work
from jurybox.engine.runner import ModelSession, Runner, RunObserver, Stop
from jurybox.judging.flow import ModelReply, ModelRequest, Outcome
from jurybox.judging.protocol import Judging
from jurybox.sample import Response, Row
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.rules.rule_compiler import compile_rules
from jurybox.scoring.sample_result import Role, SampleResult

JUDGING = Judging(rubric=load_rubric("answer-quality"), checklist=load_rubric("bias-awareness"))
COMPANION = load_rubric("companion")
GOOD = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "so"}'
Ask = Callable[[Role, ModelRequest, SampleState], Awaitable[Outcome]]


class Kept:
    """A store that only takes."""

    def __init__(self, trouble: Exception | None = None) -> None:
        self.samples: list[SampleRow] = []
        self.exchanges: list[ExchangeRow] = []
        self.open = threading.Event()
        self.open.set()
        self._trouble = trouble

    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        self.open.wait(20)
        if self._trouble is not None:
            raise self._trouble
        self.samples += samples
        self.exchanges += exchanges

    @property
    def ids(self) -> set[str]:
        return {row.sample_id for row in self.samples}


class Seen:
    """What a watch was told."""

    def __init__(self) -> None:
        self.results: list[SampleResult] = []
        self.broken: dict[str, Exception] = {}

    def finished(self, work: Work, result: SampleResult) -> None:
        del work
        self.results.append(result)

    def sample_error(self, sample_id: str, error: Exception) -> None:
        self.broken[sample_id] = error


async def well(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
    del role, request
    state.started = True
    await asyncio.sleep(0)
    return ModelReply(text=GOOD)


def name_in(request: ModelRequest) -> str:
    return request.messages[0].content.partition("- task: ")[2].partition("\n")[0]


def work(count: int) -> Iterator[Work]:
    for number in range(count):
        row = Row(id=f"q{number}", task=f"q{number}", reference="x", response=Response(text="x"))
        yield Work(number=number, repeat=0, row=row)


def by_rules() -> Procedure:
    judging = Judging(rubric=COMPANION, checklist=JUDGING.checklist)
    return Procedure(judging=judging, judges=(), votes=0, rules=compile_rules(COMPANION))


class Told:
    """A model whose replies a function makes."""

    endpoint = "here"

    def __init__(self, reply: Callable[[ModelRequest], Awaitable[ModelReply]]) -> None:
        self._reply = reply

    async def complete(self, request: ModelRequest) -> ModelReply:
        return await self._reply(request)

    async def aclose(self) -> None:
        pass


class Bench:
    """One runner with all that it needs."""

    def __init__(
        self,
        ask: Ask = well,
        *,
        window: int = 8,
        store: Kept | None = None,
        unwritten: UnwrittenReplies | None = None,
    ) -> None:
        self._unwritten = unwritten
        self.store = store or Kept()
        self.seen = Seen()
        self.stop = Stop()
        self._ask = ask
        self._window = window

    def runner(
        self, procedure: Procedure | None = None, observer: RunObserver | None = None
    ) -> Runner:
        judged = Procedure(judging=JUDGING, judges=("openai/j-2025-01-01",), votes=1)
        return Runner(
            run_id="r",
            procedure=procedure or judged,
            session=ModelSession(
                call=self._ask,
                endpoint=lambda _, model: model,
                window=self._window,
                unwritten=self._unwritten,
            ),
            store=self.store,  # type: ignore[arg-type]
            observer=observer or self.seen,
            stop=self.stop,
        )

    async def run(self, rows: Iterator[Work], **more: object) -> None:
        await self.runner().run(rows, **more)  # type: ignore[arg-type]


def test_only_so_many_samples_are_under_way_and_rows_are_read_as_they_are_needed() -> None:
    under_way = most = drawn = 0

    async def ask(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
        state.started = True
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return await well(role, request, state)

    def counted() -> Iterator[Work]:
        nonlocal drawn
        for each in work(200):
            drawn += 1
            assert drawn <= len(bench.seen.results) + 5 + 1
            yield each

    bench = Bench(ask, window=5)
    asyncio.run(bench.run(counted()))
    assert most == 5
    assert drawn == 200


@pytest.mark.parametrize("alone", [True, False])
def test_a_slow_store_holds_the_run_back(alone: bool) -> None:  # noqa: FBT001
    bench = Bench(store=Kept())
    bench.store.open.clear()
    drawn = 0

    def counted() -> Iterator[Work]:
        nonlocal drawn
        for each in work(10_000):
            drawn += 1
            yield each

    async def main() -> int:
        procedure = by_rules() if alone else None
        going = asyncio.create_task(bench.runner(procedure).run(counted()))
        before = -1
        # Until nothing moves any more, however slow the machine is.
        while drawn != before or drawn == 0:
            before = drawn
            await asyncio.sleep(0.3)
        held = drawn
        bench.stop.soon("enough")
        bench.store.open.set()
        await going
        return held

    held = asyncio.run(main())
    assert held < 2500
    assert len(bench.store.samples) >= held - 8


def test_one_bad_sample_stops_nobody() -> None:
    async def ask(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
        state.started = True
        if name_in(request) == "q3":
            raise RuntimeError("a fault")
        return await well(role, request, state)

    bench = Bench(ask)
    asyncio.run(bench.run(work(20)))
    assert bench.store.ids == {f"q{number}" for number in range(20)} - {"q3"}
    assert list(bench.seen.broken) == ["q3"]


def test_one_bad_sample_stops_nobody_where_nobody_is_asked() -> None:
    def rows() -> Iterator[Work]:
        for each in work(100):
            # The third can't be judged, and the fifth can't be written down.
            text = {2: None, 4: "\ud800"}.get(each.number, "I am so sorry.")
            response = Response(text=text)  # type: ignore[arg-type]
            yield msgspec.structs.replace(
                each, row=msgspec.structs.replace(each.row, response=response)
            )

    bench = Bench()
    asyncio.run(bench.runner(by_rules()).run(rows()))
    assert bench.store.ids == {f"q{number}" for number in range(100)} - {"q2", "q4"}
    assert list(bench.seen.broken) == ["q2", "q4"]
    assert len(bench.seen.results) == 98


@pytest.mark.parametrize("whose", ["dataset", "watch"])
def test_what_is_begun_is_finished_whosever_fault_ends_the_run(whose: str) -> None:
    async def ask(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
        state.started = True
        await asyncio.sleep(0.001 if name_in(request) == "q0" else 0.05)
        return await well(role, request, state)

    def rows() -> Iterator[Work]:
        yield from work(4)
        if whose == "dataset":
            raise RuntimeError("a fault")
        yield from work(100)

    class Faulty(Seen):
        def finished(self, work: Work, result: SampleResult) -> None:
            super().finished(work, result)
            if whose == "watch":
                raise RuntimeError("a fault")

    bench = Bench(ask, window=4)
    with pytest.raises(RuntimeError, match="a fault"):
        asyncio.run(bench.runner(observer=Faulty()).run(rows()))
    assert bench.store.ids == {"q0", "q1", "q2", "q3"}
    assert (len(bench.store.exchanges), bench.stop.reason) == (4, "a fault")


def test_no_row_is_read_once_it_is_to_stop() -> None:
    async def ask(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
        state.started = True
        asyncio.get_running_loop().call_later(0.01, bench.stop.soon, "by hand")
        await asyncio.sleep(0.05)
        return await well(role, request, state)

    def rows() -> Iterator[Work]:
        yield from work(4)
        raise AssertionError("a row is read for nobody")

    bench = Bench(ask, window=4)
    asyncio.run(bench.run(rows()))
    assert (bench.stop.reason, len(bench.store.samples)) == ("by hand", 4)
    again = Bench()
    again.stop.soon("before it began")
    asyncio.run(again.run(rows()))
    assert again.store.samples == []


@pytest.mark.parametrize("turns", range(12))
def test_nothing_is_asked_for_a_sample_that_is_called_off(turns: int) -> None:
    sent, answered = 0, 0

    async def reply(request: ModelRequest) -> ModelReply:
        nonlocal sent, answered
        del request
        sent += 1
        await asyncio.sleep(0.01)
        answered += 1
        return ModelReply(text=GOOD)

    caller = Callers(Limits(concurrency=8, start=8)).caller(Told(reply))

    async def ask(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
        del role
        return await caller(request, state)

    async def main() -> None:
        going = asyncio.create_task(bench.runner(three).run(work(1)))
        for _ in range(turns):
            await asyncio.sleep(0)
        bench.stop.soon("by hand")
        await going

    bench = Bench(ask)
    three = Procedure(judging=JUDGING, judges=("openai/j-2025-01-01",), votes=3)
    asyncio.run(main())
    assert sent == answered == len(bench.store.exchanges)
    assert sent in {0, 3}


def test_what_is_begun_is_finished_before_anything_else_is_begun() -> None:
    order: list[str] = []

    async def reply(request: ModelRequest) -> ModelReply:
        name = name_in(request)
        order.append(name)
        await asyncio.sleep(0.002)
        # Asked again, because the first reply is of no use.
        return ModelReply(text=GOOD if order.count(name) > 1 else "no")

    callers = Callers(Limits(concurrency=2, start=2))
    caller = callers.caller(Told(reply))

    async def ask(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
        del role
        return await caller(request, state)

    bench = Bench(ask, window=20, unwritten=callers.unwritten)
    asyncio.run(bench.run(work(20)))
    assert len(bench.store.samples) == 20
    for name in bench.store.ids:
        first = order.index(name)
        assert order.index(name, first + 1) - first <= 4


def test_who_only_stands_in_the_queue_when_it_stops_is_not_begun() -> None:
    async def ask(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
        async with queue:
            state.started = True
            if name_in(request) == "q2":
                bench.stop.soon("by hand")
                # Nobody who waits for a place; some may be on their way out.
                assert bench.stop.in_flight <= 3
            return await well(role, request, state)

    queue = asyncio.Semaphore(1)
    bench = Bench(ask, window=50)
    asyncio.run(bench.run(work(1000)))
    assert bench.store.ids == {"q0", "q1", "q2"}


def test_a_reply_that_came_is_stored_however_soon_after_it_the_run_is_stopped() -> None:
    async def ask(role: Role, request: ModelRequest, state: SampleState) -> Outcome:
        reply = await well(role, request, state)
        if name_in(request) == "q3":
            # The moment before anybody looks at the reply.
            asyncio.get_running_loop().call_soon(bench.stop.at_once, "by hand")
        return reply

    bench = Bench(ask, window=1)
    asyncio.run(bench.run(work(10)))
    assert bench.store.ids == {"q0", "q1", "q2"}
    assert [row.number for row in bench.store.exchanges] == [0, 1, 2, 3]
