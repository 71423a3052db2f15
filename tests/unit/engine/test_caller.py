"""Calling a model: retries, waits, what counts as latency, and an endpoint that is down."""

import asyncio
from collections.abc import Callable, Iterable

import pytest

from clocks import Clock
from jurybox.engine.driver import Callers
from jurybox.engine.limiter import Limits
from jurybox.engine.ports import ModelError
from jurybox.judging.flow import Failure, FailureKind, ModelReply, ModelRequest, Outcome
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn, Usage
from jurybox.suite.model_spec import ModelSpec
from scripted_model import Line, ScriptedModel

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


def within(seconds: float) -> ModelSpec:
    return ModelSpec(model="m", timeout=seconds)


def failure_of(outcome: Outcome) -> Failure:
    assert isinstance(outcome, Failure)
    return outcome


def messages(outcomes: Iterable[Outcome]) -> set[str]:
    return {failure_of(outcome).message for outcome in outcomes}


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


def test_latency_leaves_out_the_wait_for_a_place() -> None:
    clock = Clock(100.0)
    model = SlowModel(clock, ["a", "b", "c"])
    caller = Callers(Limits(concurrency=1), clock=clock).caller(model)

    async def main() -> list[Outcome]:
        return await asyncio.gather(*(caller(REQUEST) for _ in range(3)))

    replies = asyncio.run(main())
    assert [r.latency_ms for r in replies if isinstance(r, ModelReply)] == [2000, 2000, 2000]


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
    reply = asyncio.run(Callers(draw=lambda: 0.0).caller(model, within(0.01))(REQUEST))
    assert isinstance(reply, ModelReply)
    assert (len(model.requests), model.cancelled) == (3, 2)


def test_a7_a_time_out_of_a_system_under_test_is_a_measurement() -> None:
    model = HangingModel(1, ["too late"])
    caller = Callers().caller(model, within(0.05), retry_timeouts=False)
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


def test_the_time_limit_leaves_out_the_wait_for_a_place() -> None:
    async def main() -> Outcome:
        callers = Callers(Limits(concurrency=1))
        stuck = asyncio.create_task(callers.caller(HangingModel(1, []))(REQUEST))
        await asyncio.sleep(0)
        quick = callers.caller(ScriptedModel(["fine"]), within(0.02), retry_timeouts=False)
        waiting = asyncio.create_task(quick(REQUEST))
        await asyncio.sleep(0.1)
        stuck.cancel()
        return await waiting

    assert isinstance(asyncio.run(main()), ModelReply)


def test_a_time_out_error_of_a_model_is_a_fault_and_not_a_time_out() -> None:
    def broken(_: ModelRequest) -> Line:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        asyncio.run(Callers().caller(ScriptedModel(broken), within(20))(REQUEST))


# ---- trouble that is fatal's


def test_an_endpoint_that_asks_for_an_hour_is_a_fatal_error() -> None:
    outcomes, model, _ = call(lambda _: passing("rate-limit", after=3600), times=3)
    assert all(failure_of(each).fatal for each in outcomes)
    assert len(model.requests) == 4


def test_one_answer_that_asks_for_a_day_stops_nothing() -> None:
    (outcome,), _, clock = call([passing("rate-limit", after=86_400), "fine"])
    assert isinstance(outcome, ModelReply)
    assert clock.now() < 110


# ---- an outage


def test_waits_grow_with_the_outage_and_never_beyond_the_patience() -> None:
    (failure,), model, clock = call(lambda _: passing(), limits=Limits(patience=100))
    assert clock.waits == [0.5, 0.5, 1, 2, 4, 8, 16, 30, 30, 8]
    # The last one is short, and shows that no other would be answered.
    assert len(model.requests) == 12
    assert failure == Failure(
        kind="unreachable",
        message="scripted: no luck, and no answer for 100 s; is the server running, and is the"
        " address right?",
        fatal=True,
        transient=True,
        latency_ms=100_000,
        attempts=11,
    )


def test_patience_begins_with_the_first_failure_and_not_with_the_last_success() -> None:
    clock = Clock(100.0)
    model = ScriptedModel(["fine", passing(), "fine"])
    caller = Callers(clock=clock).caller(model)

    async def main() -> list[Outcome]:
        first = await caller(REQUEST)
        clock.time += 3600
        return [first, await caller(REQUEST)]

    assert all(isinstance(each, ModelReply) for each in asyncio.run(main()))


@pytest.mark.parametrize("kind", ["unreachable", "timeout", "unreadable"])
@pytest.mark.parametrize("patience", [1, 3600])
def test_a_request_that_fails_alone_is_given_up_where_a_short_one_is_answered(
    kind: FailureKind, patience: float
) -> None:
    def answer(request: ModelRequest) -> Line:
        return passing(kind) if request.messages == REQUEST.messages else "ok"

    outcomes, model, clock = call(answer, times=3, limits=Limits(patience=patience))
    for failure in map(failure_of, outcomes):
        assert not failure.fatal
        assert failure.transient
        assert failure.attempts <= 12
        assert "while another request was answered" in failure.message
        assert "is the server running" not in failure.message
    assert clock.time < 1000  # of three, one after the other
    assert len(model.requests) <= 3 * 2 * 12


def test_in_an_outage_no_request_is_lost_that_had_failed_before_it() -> None:
    clock = Clock(100.0)
    model = ScriptedModel([passing(), "fine", *[passing()] * 100])
    caller = Callers(Limits(concurrency=1, patience=60), clock=clock, draw=lambda: 1.0).caller(
        model
    )

    async def main() -> list[Outcome]:
        return await asyncio.gather(*(caller(REQUEST) for _ in range(2)))

    first, second = asyncio.run(main())
    assert isinstance(second, ModelReply)
    assert failure_of(first).fatal


def test_where_nothing_is_waited_for_every_failed_attempt_counts() -> None:
    limits = Limits(patience=None, attempts=4, first_delay=0)
    (failure,), model, clock = call(lambda _: passing("unreadable"), limits=limits)
    assert len(model.requests) == 4
    assert set(clock.waits) == {0}
    assert failure_of(failure).transient


def test_an_outage_is_described_until_it_ends() -> None:
    clock = Clock(100.0)
    seen: list[list[str]] = []
    callers = Callers(
        clock=clock, draw=lambda: 1.0, on_failure=lambda: seen.append(callers.outages())
    )
    caller = callers.caller(ScriptedModel([passing(), passing(), "fine"]))
    asyncio.run(caller(REQUEST))
    assert [text for (text,) in seen] == [
        "scripted: no luck for 0 s, trying with 8 calls at once",
        "scripted: no luck for 0 s, trying with 8 calls at once",
    ]
    assert callers.outages() == []


# ---- rate limits and quotas


def test_retry_after_holds_for_its_request_alone() -> None:
    order: list[int] = []
    model = ScriptedModel([passing("rate-limit", after=0.2), *["fine"] * 4])
    caller = Callers().caller(model)

    async def ask(number: int) -> None:
        await caller(REQUEST)
        order.append(number)

    async def main() -> None:
        await asyncio.gather(*map(ask, range(4)))

    asyncio.run(main())
    assert order == [1, 2, 3, 0]


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        (ModelSpec(model="m", max_requests_per_minute=30), 20),
        # The estimate of 1024 tokens and more is corrected to the 100 that were used.
        (ModelSpec(model="m", max_tokens_per_minute=600), 100),
    ],
)
def test_a_quota_per_minute_is_kept(limits: ModelSpec, seconds: float) -> None:
    clock = Clock(100.0)
    reply = ModelReply(text="fine", usage=Usage(input_tokens=60, output_tokens=40))
    caller = Callers(Limits(concurrency=1), clock=clock).caller(ScriptedModel([reply] * 11), limits)

    async def main() -> None:
        for _ in range(11):
            await caller(REQUEST)

    asyncio.run(main())
    assert clock.time - 100 == pytest.approx(seconds)


def test_calls_that_wait_for_a_quota_start_when_less_was_used_than_expected() -> None:
    clock = Clock(100.0)
    reply = ModelReply(text="fine", usage=Usage(input_tokens=60, output_tokens=40))
    limits = ModelSpec(model="m", max_tokens_per_minute=600)
    caller = Callers(Limits(concurrency=3), clock=clock).caller(ScriptedModel([reply] * 3), limits)

    async def main() -> None:
        await asyncio.gather(*(caller(REQUEST) for _ in range(3)))

    asyncio.run(main())
    # Two waits of 10 s, and not of the 100 s that the estimate of 1024 tokens would take.
    assert clock.time - 100 < 50


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
