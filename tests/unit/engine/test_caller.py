"""Calling a model: retries, waits, what counts as latency, and an endpoint that is down."""

import asyncio
from collections.abc import Callable, Iterable

import pytest

from clocks import Clock
from jurybox.engine.caller import Callers, Limits, SystemClock
from jurybox.engine.ports import ModelError
from jurybox.judging.flow import Failure, FailureKind, ModelReply, ModelRequest, Outcome
from jurybox.models.scripted import Line, ScriptedModel
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn

REQUEST = ModelRequest(
    model="m", messages=(Turn(role="user", content="x"),), generation=Generation()
)


def passing(kind: FailureKind = "unreachable", after: float | None = None) -> ModelError:
    return ModelError(kind, "no luck", retry=True, retry_after=after)


def call(
    script: list[Line] | Callable[[ModelRequest], Line],
    *,
    limits: Limits | None = None,
    times: int = 1,
    clock: Clock | None = None,
) -> tuple[list[Outcome], ScriptedModel, Clock]:
    clock = clock or Clock(100.0)
    model = ScriptedModel(script)
    caller = Callers(limits, clock=clock, draw=lambda: 1.0).caller(model)

    async def main() -> list[Outcome]:
        return await asyncio.gather(*(caller(REQUEST) for _ in range(times)))

    return asyncio.run(main()), model, clock


def failure_of(outcome: Outcome) -> Failure:
    assert isinstance(outcome, Failure)
    return outcome


def messages(outcomes: Iterable[Outcome]) -> set[str]:
    return {failure_of(outcome).message for outcome in outcomes}


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
    (failure,), model, clock = call([ModelError("refused", "HTTP 401: no", retry=False)])
    assert failure == Failure(kind="refused", message="scripted: HTTP 401: no", latency_ms=0)
    assert (len(model.requests), clock.waits) == (1, [])


def test_a_failure_says_where_what_how_often_and_how_to_mend_it() -> None:
    (failure,), _, _ = call(lambda _: passing("timeout"), limits=Limits(attempts=3))
    assert failure == Failure(
        kind="timeout",
        message="scripted: no luck after 3 attempts; give it more time, or ask for fewer tokens",
        latency_ms=0,
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
    clock = Clock(100.0)
    model = SlowModel(clock, [passing(), passing("rate-limit", after=60), "fine"])
    caller = Callers(clock=clock, draw=lambda: 1.0).caller(model)
    reply = asyncio.run(caller(REQUEST))
    assert isinstance(reply, ModelReply)
    assert reply.latency_ms == 2000
    assert clock.time >= 166


def test_latency_leaves_out_the_wait_for_a_place() -> None:
    clock = Clock(100.0)
    model = SlowModel(clock, ["a", "b", "c"])
    caller = Callers(Limits(concurrency=1), clock=clock).caller(model)

    async def main() -> list[Outcome]:
        return await asyncio.gather(*(caller(REQUEST) for _ in range(3)))

    replies = asyncio.run(main())
    assert [r.latency_ms for r in replies if isinstance(r, ModelReply)] == [2000, 2000, 2000]


def test_a_reply_that_was_measured_keeps_what_was_measured() -> None:
    clock = Clock(100.0)
    measured = ModelReply(text="fine", latency_ms=5.0, latency_model_ms=3.0)
    caller = Callers(clock=clock).caller(SlowModel(clock, [measured]))
    assert asyncio.run(caller(REQUEST)) == measured


def test_the_latency_of_a_failure_is_that_of_the_last_attempt_alone() -> None:
    class Slower(ScriptedModel):
        """Takes one second longer for every attempt."""

        async def complete(self, request: ModelRequest) -> ModelReply:
            clock.time += 1 + len(self.requests)
            return await super().complete(request)

    clock = Clock(100.0)
    model = Slower(lambda _: passing("unreadable", after=60))
    failure = asyncio.run(Callers(clock=clock, draw=lambda: 1.0).caller(model)(REQUEST))
    assert failure_of(failure).latency_ms == 4000
    assert clock.time >= 100 + 1 + 60 + 2 + 60 + 3 + 60 + 4


def test_the_latency_of_a_failure_leaves_out_the_wait_for_a_place() -> None:
    clock = Clock(100.0)
    refused: list[Line] = [ModelError("refused", "no", retry=False) for _ in range(3)]
    caller = Callers(Limits(concurrency=1), clock=clock).caller(SlowModel(clock, refused))

    async def main() -> list[Outcome]:
        return await asyncio.gather(*(caller(REQUEST) for _ in range(3)))

    assert [failure_of(each).latency_ms for each in asyncio.run(main())] == [2000, 2000, 2000]


def test_who_finds_the_endpoint_down_has_made_no_attempt_to_measure() -> None:
    clock = Clock(100.0)
    limits = Limits(retry_reserve=0, attempts=1)
    caller = Callers(limits, clock=clock).caller(SlowModel(clock, [passing(), passing()]))

    async def main() -> list[Outcome]:
        return [await caller(REQUEST) for _ in range(2)]

    assert [failure_of(each).latency_ms for each in asyncio.run(main())] == [2000, None]


def test_who_finds_the_endpoint_down_on_the_second_try_has_measured_the_first() -> None:
    clock = Clock(100.0)
    caller = Callers(clock=clock).caller(
        SlowModel(clock, [passing(), passing("rate-limit", after=3600)])
    )

    async def main() -> list[Outcome]:
        # The first waits before it tries again; meanwhile the second learns that it's no use.
        return await asyncio.gather(caller(REQUEST), caller(REQUEST))

    first, second = asyncio.run(main())
    assert failure_of(first).message == failure_of(second).message
    assert (failure_of(first).latency_ms, failure_of(second).latency_ms) == (2000, 2000)


# ---- a time limit


class HangingModel(ScriptedModel):
    """Never answers the first so many requests; then it follows the script."""

    def __init__(self, hangs: int, script: list[Line]) -> None:
        super().__init__(script)
        self.hangs = hangs
        self.cancelled = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        if self.hangs:
            self.hangs -= 1
            self.requests.append(request)
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return await super().complete(request)


def test_an_attempt_that_takes_too_long_is_cancelled_and_made_again() -> None:
    model = HangingModel(2, ["fine"])
    reply = asyncio.run(Callers(draw=lambda: 0.0).caller(model, timeout=0.01)(REQUEST))
    assert isinstance(reply, ModelReply)
    assert (len(model.requests), model.cancelled) == (3, 2)


def test_a7_a_time_out_of_a_system_under_test_is_a_measurement() -> None:
    model = HangingModel(1, ["too late"])
    caller = Callers().caller(model, retry_timeouts=False, timeout=0.05)
    failure = failure_of(asyncio.run(caller(REQUEST)))
    assert (failure.kind, failure.message) == ("timeout", "scripted: timed out after 0.05 s")
    assert failure.latency_ms is not None
    assert failure.latency_ms >= 50
    assert (len(model.requests), model.cancelled) == (1, 1)


def test_a7_a_time_out_that_the_model_itself_tells_of_is_one_too() -> None:
    clock = Clock(100.0)
    model = SlowModel(clock, [passing("timeout"), "too late"])
    failure = asyncio.run(Callers(clock=clock).caller(model, retry_timeouts=False)(REQUEST))
    expected = Failure(kind="timeout", message="scripted: no luck", latency_ms=2000)
    assert failure == expected
    assert clock.waits == []


@pytest.mark.parametrize("kind", ["rate-limit", "unreachable", "unreadable"])
def test_other_trouble_of_a_system_under_test_is_waited_out(kind: FailureKind) -> None:
    model = ScriptedModel([passing(kind), "fine"])
    caller = Callers(clock=Clock(100.0)).caller(model, retry_timeouts=False, timeout=20)
    assert isinstance(asyncio.run(caller(REQUEST)), ModelReply)


def test_time_outs_that_are_measured_say_nothing_about_the_endpoint() -> None:
    """Else the first connection that is cut after many slow answers would end a run."""
    clock = Clock(100.0)
    script: list[Line] = [*(passing("timeout") for _ in range(9)), passing(), "fine"]
    limits = Limits(retry_reserve=2, attempts=1)
    caller = Callers(limits, clock=clock).caller(ScriptedModel(script), retry_timeouts=False)

    async def main() -> list[Outcome]:
        return [await caller(REQUEST) for _ in range(11)]

    *failures, reply = asyncio.run(main())
    assert not any(failure_of(each).fatal for each in failures)
    assert isinstance(reply, ModelReply)


def test_the_time_limit_leaves_out_the_wait_for_a_place() -> None:
    async def main() -> Outcome:
        callers = Callers(Limits(concurrency=1))
        stuck = asyncio.create_task(callers.caller(HangingModel(1, []))(REQUEST))
        await asyncio.sleep(0)
        quick = callers.caller(ScriptedModel(["fine"]), retry_timeouts=False, timeout=0.02)
        waiting = asyncio.create_task(quick(REQUEST))
        await asyncio.sleep(0.1)
        stuck.cancel()
        return await waiting

    assert isinstance(asyncio.run(main()), ModelReply)


def test_a_time_out_error_of_a_model_is_a_fault_and_not_a_time_out() -> None:
    def broken(_: ModelRequest) -> Line:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        asyncio.run(Callers().caller(ScriptedModel(broken), timeout=20)(REQUEST))


# ---- trouble that is fatal's


@pytest.mark.parametrize("fatal", [True, False])
def test_a_failure_is_fatal_where_the_error_is(*, fatal: bool) -> None:
    trouble = ModelError("refused", "no such model", retry=False, fatal=fatal)
    (failure,), _, _ = call([trouble])
    assert failure_of(failure).fatal is fatal


@pytest.mark.parametrize("kind", ["timeout", "rate-limit", "unreadable", "unreachable"])
def test_trouble_that_may_pass_is_nobodys_but_the_requests(kind: FailureKind) -> None:
    (failure,), _, _ = call(lambda _: passing(kind))
    assert not failure_of(failure).fatal


def test_an_endpoint_that_is_down_is_a_fatal_error() -> None:
    limits = Limits(retry_reserve=3, attempts=1)
    clock = Clock(100.0)
    model = ScriptedModel(lambda _: passing())
    caller = Callers(limits, clock=clock).caller(model)

    async def main() -> list[Outcome]:
        outcomes = [await caller(REQUEST) for _ in range(6)]
        clock.time += 31
        return [*outcomes, await caller(REQUEST)]

    found = [failure_of(each).fatal for each in asyncio.run(main())]
    # The fourth attempt in a row takes it down; the next two aren't made; the last one is.
    assert found == [False, False, False, True, True, True, True]
    assert len(model.requests) == 5


def test_an_endpoint_that_is_back_is_nobodys_trouble() -> None:
    clock = Clock(100.0)
    model = ScriptedModel([passing(), "fine", passing()])
    caller = Callers(Limits(retry_reserve=0, attempts=1), clock=clock).caller(model)

    async def main() -> list[Outcome]:
        down = await caller(REQUEST)
        clock.time += 31
        return [down, await caller(REQUEST), await caller(REQUEST)]

    down, reply, short_outage = asyncio.run(main())
    assert failure_of(down).fatal
    assert isinstance(reply, ModelReply)
    assert not failure_of(short_outage).fatal


def test_an_endpoint_that_asks_for_an_hour_is_a_fatal_error() -> None:
    outcomes, model, _ = call(lambda _: passing("rate-limit", after=3600), times=3)
    assert all(failure_of(each).fatal for each in outcomes)
    assert len(model.requests) == 1


# ---- rate limits


def test_a_pause_holds_for_every_request_at_the_endpoint() -> None:
    clock = Clock(100.0)
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
    clock = Clock(100.0)
    model = ScriptedModel([passing("rate-limit", after=3600), "fine"])
    caller = Callers(clock=clock).caller(model)

    async def main() -> list[Outcome]:
        outcomes = [await caller(REQUEST) for _ in range(5)]
        clock.time += 3601
        return [*outcomes, await caller(REQUEST)]

    *failures, reply = asyncio.run(main())
    assert len(messages(failures)) == 1
    assert isinstance(reply, ModelReply)
    assert (len(model.requests), clock.waits) == (2, [])


def test_models_at_one_endpoint_share_its_limits() -> None:
    clock = Clock(100.0)
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
    assert len(messages(outcomes)) == 1
    assert len(model.requests) <= 40


def test_an_endpoint_that_is_down_is_left_alone_and_tried_again_later() -> None:
    clock = Clock(100.0)
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
    clock = Clock(100.0)
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
    refused = ModelError("refused", "no such model", retry=False)
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
