"""Calling a model: retries, waits, what counts as latency, and an endpoint that is down."""

import asyncio
from collections.abc import Callable

import pytest

from jurybox.judging.exchange import Failure, FailureKind, ModelReply, ModelRequest, Outcome
from jurybox.models.scripted import Line, ScriptedModel
from jurybox.rubric.model import Generation
from jurybox.running.caller import Callers
from jurybox.running.clock import SystemClock
from jurybox.running.limits import Limits
from jurybox.running.ports import ModelTrouble
from jurybox.sample import Turn

REQUEST = ModelRequest(
    model="m", messages=(Turn(role="user", content="x"),), generation=Generation()
)


class Clock:
    def __init__(self) -> None:
        self.time = 100.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


def passing(kind: FailureKind = "unreachable", after: float | None = None) -> ModelTrouble:
    return ModelTrouble(kind, "no luck", retry=True, retry_after=after)


def call(
    script: list[Line] | Callable[[ModelRequest], Line],
    *,
    limits: Limits | None = None,
    times: int = 1,
    clock: Clock | None = None,
) -> tuple[list[Outcome], ScriptedModel, Clock]:
    clock = clock or Clock()
    model = ScriptedModel(script)
    caller = Callers(limits, clock=clock, draw=lambda: 1.0).caller(model)

    async def main() -> list[Outcome]:
        return await asyncio.gather(*(caller(REQUEST) for _ in range(times)))

    return asyncio.run(main()), model, clock


def test_a_reply_is_passed_on() -> None:
    (reply,), _, clock = call([ModelReply(text="fine", latency_ms=7.0)])
    assert reply == ModelReply(text="fine", latency_ms=7.0)
    assert clock.waits == []


def test_trouble_that_passes_is_waited_out() -> None:
    (reply,), model, clock = call([passing(), passing("timeout"), passing("unreadable"), "fine"])
    assert isinstance(reply, ModelReply)
    assert len(model.requests) == 4
    assert clock.waits == [0.5, 1, 2]


def test_trouble_that_stays_is_a_failure_at_once() -> None:
    (failure,), model, clock = call([ModelTrouble("refused", "HTTP 401: no", retry=False)])
    assert failure == Failure(kind="refused", message="scripted: HTTP 401: no")
    assert (len(model.requests), clock.waits) == (1, [])


def test_a_failure_says_where_what_how_often_and_how_to_mend_it() -> None:
    (failure,), _, _ = call(lambda _: passing("timeout"), limits=Limits(attempts=3))
    assert failure == Failure(
        kind="timeout",
        message="scripted: no luck after 3 attempts; give it more time, or ask for fewer tokens",
    )


def test_one_attempt_is_not_counted_out() -> None:
    (failure,), _, _ = call(lambda _: passing("unreadable"), limits=Limits(attempts=1))
    assert isinstance(failure, Failure)
    assert failure.message == "scripted: no luck; is this the address of a chat endpoint?"


def test_every_other_exception_is_the_callers() -> None:
    def broken(_: ModelRequest) -> Line:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(broken)


# ---- latency


class SlowModel(ScriptedModel):
    """Takes two seconds for every attempt."""

    def __init__(self, clock: Clock, script: list[Line]) -> None:
        super().__init__(script)
        self.clock = clock

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.clock.time += 2
        return await super().complete(request)


def test_latency_is_that_of_the_successful_attempt_alone() -> None:
    clock = Clock()
    model = SlowModel(clock, [passing(), passing("rate-limit", after=60), "fine"])
    caller = Callers(clock=clock, draw=lambda: 1.0).caller(model)
    reply = asyncio.run(caller(REQUEST))
    assert isinstance(reply, ModelReply)
    assert reply.latency_ms == 2000
    assert clock.time >= 166


def test_latency_leaves_out_the_wait_for_a_place() -> None:
    clock = Clock()
    model = SlowModel(clock, ["a", "b", "c"])
    caller = Callers(Limits(concurrency=1), clock=clock).caller(model)

    async def main() -> list[Outcome]:
        return await asyncio.gather(*(caller(REQUEST) for _ in range(3)))

    replies = asyncio.run(main())
    assert [r.latency_ms for r in replies if isinstance(r, ModelReply)] == [2000, 2000, 2000]


# ---- rate limits


def test_a_pause_holds_for_every_request_at_the_endpoint() -> None:
    clock = Clock()
    seen: list[float] = []

    def script(_: ModelRequest) -> Line:
        seen.append(clock.time)
        return passing("rate-limit", after=30) if len(seen) == 1 else "fine"

    outcomes, _, _ = call(script, times=4, limits=Limits(concurrency=1), clock=clock)
    assert all(isinstance(outcome, ModelReply) for outcome in outcomes)
    assert min(seen[1:]) == 130


def test_rate_limits_cost_nothing_of_the_retry_budget() -> None:
    script: list[Line] = [passing("rate-limit")] * 7
    (reply,), model, _ = call([*script, "fine"], limits=Limits(retry_reserve=0))
    assert isinstance(reply, ModelReply)
    assert len(model.requests) == 8


def test_an_endpoint_that_asks_for_an_hour_is_left_alone_for_it() -> None:
    clock = Clock()
    model = ScriptedModel([passing("rate-limit", after=3600), "fine"])
    caller = Callers(clock=clock).caller(model)

    async def main() -> list[Outcome]:
        outcomes = [await caller(REQUEST) for _ in range(5)]
        clock.time += 3601
        return [*outcomes, await caller(REQUEST)]

    *failures, reply = asyncio.run(main())
    assert len(set(failures)) == 1
    assert isinstance(reply, ModelReply)
    assert (len(model.requests), clock.waits) == (2, [])


def test_models_at_one_endpoint_share_its_limits() -> None:
    clock = Clock()
    callers = Callers(clock=clock, draw=lambda: 0.0)
    first = callers.caller(ScriptedModel([passing("rate-limit", after=10), "a"], "here"))
    second = callers.caller(ScriptedModel(["b"], "here"))
    third = callers.caller(ScriptedModel(["c"], "elsewhere"))

    async def main() -> None:
        task = asyncio.create_task(first(REQUEST))
        await asyncio.sleep(0)
        await third(REQUEST)
        assert clock.time == 100
        await second(REQUEST)
        assert clock.time == 110
        await task

    asyncio.run(main())


# ---- an endpoint that is down


def test_a_dead_endpoint_costs_its_reserve_and_says_one_thing() -> None:
    outcomes, model, _ = call(lambda _: passing(), times=500, limits=Limits(retry_reserve=10))
    assert len(set(outcomes)) == 1
    assert len(model.requests) <= 40


def test_an_endpoint_that_is_down_is_left_alone_and_tried_again_later() -> None:
    clock = Clock()
    answers: list[Line] = [passing() for _ in range(6)]
    model = ScriptedModel([*answers, "fine", "fine"])
    limits = Limits(retry_reserve=4, rest=30)
    caller = Callers(limits, clock=clock, draw=lambda: 0.0).caller(model)

    async def main() -> list[bool]:
        failed = [isinstance(await caller(REQUEST), Failure) for _ in range(5)]
        assert len(model.requests) == 6
        clock.time += 31
        failed += [isinstance(await caller(REQUEST), Failure) for _ in range(2)]
        return failed

    assert asyncio.run(main()) == [True] * 5 + [False] * 2


def test_a_short_outage_of_an_endpoint_that_has_answered_is_not_the_end_of_it() -> None:
    clock = Clock()
    outage: list[Line] = [passing() for _ in range(10)]
    model = ScriptedModel(["fine", *outage, "fine"])
    caller = Callers(Limits(retry_reserve=2), clock=clock, draw=lambda: 0.0).caller(model)

    async def main() -> Outcome:
        for _ in range(9):
            await caller(REQUEST)
        return await caller(REQUEST)

    asyncio.run(main())
    assert len(model.requests) == 12


def test_time_outs_do_not_take_an_endpoint_down() -> None:
    _, model, _ = call(lambda _: passing("timeout"), times=50, limits=Limits(retry_reserve=2))
    assert len(model.requests) == 52


def test_refusals_do_not_take_an_endpoint_down() -> None:
    refused = ModelTrouble("refused", "no such model", retry=False)
    _, model, _ = call(lambda _: refused, times=50, limits=Limits(retry_reserve=0))
    assert len(model.requests) == 50


# ---- cancellation


def test_a_cancelled_call_gives_its_place_back() -> None:
    class Hanging(ScriptedModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            self.requests.append(request)
            if len(self.requests) == 1:
                await asyncio.Event().wait()
            return ModelReply(text="fine")

    async def main() -> Outcome:
        caller = Callers(Limits(concurrency=1)).caller(Hanging([]))
        stuck = asyncio.create_task(caller(REQUEST))
        await asyncio.sleep(0)
        waiting = asyncio.create_task(caller(REQUEST))
        await asyncio.sleep(0)
        stuck.cancel()
        return await waiting

    assert isinstance(asyncio.run(main()), ModelReply)


def test_a_call_for_several_models_goes_to_the_one_that_is_named() -> None:
    models = {"m": ScriptedModel(["right"], "one"), "n": ScriptedModel(["wrong"], "two")}
    reply = asyncio.run(Callers().route(models)(REQUEST))
    assert isinstance(reply, ModelReply)
    assert reply.text == "right"


def test_the_real_clock_goes_forward() -> None:
    clock = SystemClock()
    before = clock.now()
    asyncio.run(clock.sleep(0.001))
    assert clock.now() > before
