"""Runs a flow against models: the only place where judging waits for a reply.

A flow yields batches of requests; the driver answers each batch, in order, until the flow returns.
When the driver stops, for any reason, the flow is closed and no task continues in the background.
Only a `Caller` retries requests or gives up on them.
"""

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from jurybox.engine.limiter import EndpointLimiter, Limits, MinuteQuota, Share, UnwrittenReplies
from jurybox.engine.ports import Clock, Model, ModelError
from jurybox.judging.flow import Failure, FailureKind, Flow, ModelReply, ModelRequest, Outcome
from jurybox.sample import Turn
from jurybox.scoring.sample_result import Role
from jurybox.suite.model_spec import ModelSpec

T = TypeVar("T")

Call = Callable[[ModelRequest], Awaitable[Outcome]]


async def drive(flow: Flow[T], call: Call) -> T:
    """Run ``flow`` to its end; the requests of each batch run concurrently.

    ``call`` is called for every request of a batch, in the flow's order, before the first is
    awaited, so ``call`` can assign positions or numbers. Its first exception stops the rest of the
    batch and is raised unchanged.
    """
    outcomes: tuple[Outcome, ...] | None = None
    try:
        while True:
            try:
                batch = _step(flow, outcomes)
            except StopIteration as done:
                return done.value
            # Most batches have one request; the bookkeeping for several would cost more than the
            # request itself.
            outcomes = (await call(batch[0]),) if len(batch) == 1 else await _together(batch, call)
    finally:
        flow.close()


def drive_sync(flow: Flow[T], call: Callable[[ModelRequest], Outcome]) -> T:
    """Run ``flow`` without an event loop: over stored replies, or in a test."""
    outcomes: tuple[Outcome, ...] | None = None
    try:
        while True:
            try:
                batch = _step(flow, outcomes)
            except StopIteration as done:
                return done.value
            outcomes = tuple(map(call, batch))
    finally:
        flow.close()


def _step(flow: Flow[T], outcomes: tuple[Outcome, ...] | None) -> tuple[ModelRequest, ...]:
    return next(flow) if outcomes is None else flow.send(outcomes)


async def _together(batch: tuple[ModelRequest, ...], call: Call) -> tuple[Outcome, ...]:
    begun: list[Awaitable[Outcome]] = []
    try:
        # In a loop, so that if one call raises at once, those begun before it can be dropped.
        for request in batch:
            begun.append(call(request))  # noqa: PERF401
        return await _side_by_side(begun)
    except BaseException:
        for outcome in begun:
            _drop(outcome)
        raise


async def _side_by_side(begun: Sequence[Awaitable[Outcome]]) -> tuple[Outcome, ...]:
    async def answer(outcome: Awaitable[Outcome]) -> Outcome:
        return await outcome

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answer(each)) for each in begun]
    except BaseExceptionGroup as several:
        # Raised directly, because callers don't expect an exception group.
        raise several.exceptions[0] from None
    return tuple(task.result() for task in tasks)


def _drop(outcome: Awaitable[Outcome]) -> None:
    """Cancel a call if it is pending; leave a finished one unchanged."""
    if isinstance(outcome, Coroutine):
        outcome.close()
    elif isinstance(outcome, asyncio.Future):
        outcome.cancel()


_HINTS: Final[Mapping[FailureKind, str]] = {
    "timeout": "give it more time, or ask for fewer tokens",
    "rate-limit": "lower the concurrency, or ask the provider for a higher limit",
}
_OUTAGE_HINTS: Final[Mapping[FailureKind, str]] = {
    **_HINTS,
    "unreachable": "is the server running, and is the address right?",
    "unreadable": "is this the address of a chat endpoint?",
}
# A short request that shows whether an endpoint answers at all when one request keeps failing.
_SHORT: Final = (Turn(role="user", content="Reply with the word: ok"),)
# After this many refusals in a row, a run gives up even on a model that has answered before.
_REFUSALS: Final = 5
_CHARACTERS_PER_TOKEN: Final = 4
# Seconds between checks of a quota, which may have room early if replies use less than expected.
_LOOK_EVERY: Final = 1.0


class SystemClock:
    """The real clock."""

    now = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class SampleState(Protocol):
    """The progress of the sample that a request belongs to."""

    started: bool  # whether it has sent a request; if so, its further requests have priority
    cancelled: bool  # whether it must not send any further request


class Caller:
    """One model, called with retries and within the limits of its endpoint."""

    def __init__(
        self, model: Model, endpoint: EndpointLimiter, spec: ModelSpec, *, retry_timeouts: bool
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        self._retry_timeouts = retry_timeouts
        self._timeout = spec.timeout
        self._spec = spec
        requests, tokens = spec.max_requests_per_minute, spec.max_tokens_per_minute
        self._quota = MinuteQuota(requests, tokens) if requests or tokens else None
        self._answered = False
        self._refusals = 0
        self.on_failure: Callable[[], None] = lambda: None

    async def __call__(self, request: ModelRequest, state: SampleState | None = None) -> Outcome:
        """Return the reply, or the failure after all retries."""
        endpoint = self._endpoint
        attempts = at_fault = 0
        first = last = math.inf
        began = latency = None
        while True:
            result, span = await self._attempt(request, state)
            # There is no span if no attempt was made because the endpoint is known to be down.
            if span is not None:
                began = span[0] if began is None else began
                latency = (span[1] - began) * 1000
            if isinstance(result, ModelReply):
                return result.retried(attempts + 1, latency) if attempts else result
            if isinstance(result, Failure):
                return msgspec.structs.replace(result, latency_ms=latency, attempts=attempts)
            attempts += 1
            # In an outage every request fails, so none of them is at fault.
            at_fault += endpoint.limits.patience is None or endpoint.answered_since(last)
            last = endpoint.clock.now()
            first = min(first, last)
            failure = await self._give_up(request, result, attempts, at_fault, first)
            if failure is not None:
                return msgspec.structs.replace(failure, latency_ms=latency, attempts=attempts)
            # Waits without occupying a slot, so that other requests can use it.
            await endpoint.wait(result, max(0, at_fault - 1))

    async def _give_up(
        self, request: ModelRequest, error: ModelError, attempts: int, at_fault: int, first: float
    ) -> Failure | None:
        """Return the failure if a request is given up, else None; a fatal failure stops the run.

        ``first`` is when the request failed for the first time.
        """
        endpoint, limits = self._endpoint, self._endpoint.limits
        if not error.retry:
            alone = self._answered and self._refusals < _REFUSALS and limits.patience is not None
            broken = error.fatal and not alone
            if error.fatal and not broken and at_fault < limits.attempts:
                return None
            message = f"{endpoint.name}: {error}"
            return Failure(kind=error.kind, message=message, fatal=broken)
        most = limits.rate_limit_attempts if error.kind == "rate-limit" else limits.attempts
        unknown = error.fatal and not endpoint.answered and attempts >= limits.first_attempts
        # An endpoint that asks only once for a very long wait may answer the next request.
        asks_too_much = attempts > 1 and endpoint.asks_too_much(error)
        over = unknown or asks_too_much or at_fault >= most or endpoint.left() <= 0
        if not over and attempts % most:
            return None
        answers = over and endpoint.left() > 0 and endpoint.answered_since(first)
        # Perhaps only this request fails, but no other request is in flight to show that.
        fatal = not answers and not await self._answers_another(request, error)
        if not (over if fatal else attempts >= most or asks_too_much):
            return None
        message = f"{endpoint.name}: {error}"
        if asks_too_much:
            message += f", and it asks for a wait of {error.retry_after:.0f} s"
        elif fatal and endpoint.left() <= 0:
            message += f", and no answer for {limits.patience:g} s"
        elif attempts > 1:
            message += f" after {attempts} attempts"
            message += "" if fatal else ", while another request was answered"
        hints = _OUTAGE_HINTS if fatal else _HINTS
        if error.kind in hints:
            message += f"; {hints[error.kind]}"
        failure = Failure(kind=error.kind, message=message, fatal=fatal, transient=True)
        if fatal:
            endpoint.down = failure
        return failure

    async def _answers_another(self, request: ModelRequest, error: ModelError) -> bool:
        """Return whether the model answers a short request; False if it can't be reached."""
        no_connection = error.kind == "unreachable" and error.fatal
        patience = self._endpoint.limits.patience
        if patience is None or no_connection or error.kind == "rate-limit":
            return False
        short = ModelRequest(model=request.model, messages=_SHORT, generation=request.generation)
        result, _ = await self._attempt(short, None)
        if isinstance(result, ModelError):
            return not (result.retry or result.fatal)
        return isinstance(result, ModelReply)

    async def _attempt(
        self, request: ModelRequest, state: SampleState | None
    ) -> tuple[Outcome | ModelError, tuple[float, float] | None]:
        """Return the result, and when the attempt began and ended (None if none was made)."""
        endpoint = self._endpoint
        await endpoint.slots.acquire(first=state is not None and state.started)
        try:
            reserved = 0.0 if self._quota is None else await self._await_quota(self._quota, request)
            # Checked after waiting, because the endpoint may have gone down meanwhile.
            if endpoint.down is not None:
                return endpoint.down, None
            if state is not None:
                if state.cancelled:
                    # The sample's task is about to be cancelled, so nothing may be sent.
                    raise asyncio.CancelledError
                state.started = True
            started = endpoint.clock.now()
            result = await self._ask(request)
            ended = endpoint.clock.now()
            if isinstance(result, ModelError):
                self._refusals += result.fatal and not result.retry
                endpoint.failed(result, started, ended)
                self.on_failure()
                return result, (started, ended)
            self._answered, self._refusals = True, 0
            endpoint.succeeded(ended)
        finally:
            endpoint.slots.release()
        if self._quota is not None and result.usage.output_tokens is not None:
            used = (result.usage.input_tokens or 0) + result.usage.output_tokens
            if endpoint.share is None:
                self._quota.correct(reserved, used)
            else:
                endpoint.share.correct(self._spec, reserved, used)
        if result.latency_ms is None:
            result = msgspec.structs.replace(result, latency_ms=(ended - started) * 1000)
        return result, (started, ended)

    async def _await_quota(self, quota: MinuteQuota, request: ModelRequest) -> float:
        """Wait until the quota per minute has room; return how many tokens are reserved."""
        letters = sum(len(message.content) for message in request.messages)
        tokens = letters / _CHARACTERS_PER_TOKEN + request.generation.max_tokens
        if self._endpoint.share is not None:
            await self._endpoint.share.turn(self._spec, tokens)
            return tokens
        clock = self._endpoint.clock
        while (wait := quota.wait(clock.now())) > 0:
            await clock.sleep(min(wait, _LOOK_EVERY))
        quota.take(tokens, clock.now())
        return tokens

    async def _ask(self, request: ModelRequest) -> ModelReply | ModelError:
        try:
            if self._timeout is None:
                return await self._model.complete(request)
            return await self._in_time(request, self._timeout)
        except ModelError as error:
            # The traceback would keep the answer in memory while the request waits for its retry.
            error.__traceback__ = error.__context__ = None
            if error.kind == "timeout" and not self._retry_timeouts:
                return ModelError("timeout", str(error), retry=False)
            return error

    async def _in_time(self, request: ModelRequest, seconds: float) -> ModelReply:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._model.complete(request)
        except TimeoutError:
            # A TimeoutError from elsewhere is a bug in the model.
            if not limit.expired():
                raise
            what = f"timed out after {seconds:g} s"
            raise ModelError("timeout", what, retry=True) from None


def routed(
    target: Caller | None, judges: Mapping[str, Caller]
) -> Callable[[Role, ModelRequest, SampleState], Awaitable[Outcome]]:
    """Return a function that sends a request to the target, or to the judge named in it."""

    def call(role: Role, request: ModelRequest, state: SampleState) -> Awaitable[Outcome]:
        if role == "target" and target is not None:
            return target(request, state)
        return judges[request.model](request, state)

    return call


class Callers:
    """The callers of a run: models at one endpoint share its limits."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
        on_failure: Callable[[], None] = lambda: None,
        share: Share | None = None,
    ) -> None:
        self.unwritten = UnwrittenReplies()
        self._limits = limits or Limits()
        self._clock = clock or SystemClock()
        self._draw = draw
        self._on_failure = on_failure
        self._share = share
        self._endpoints: dict[str, EndpointLimiter] = {}

    def caller(
        self, model: Model, spec: ModelSpec | None = None, *, retry_timeouts: bool = True
    ) -> Caller:
        """Return a caller for a model, within the limits of ``spec``.

        ``retry_timeouts`` is False for a system under test, where a timeout is a measurement.
        """
        name = model.endpoint
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            endpoint = EndpointLimiter(name, self._limits, self._clock, self._draw, self.unwritten)
            endpoint.share = None if self._share is None else self._share(endpoint)
            self._endpoints[name] = endpoint
        spec = spec or ModelSpec(model="")
        caller = Caller(model, endpoint, spec, retry_timeouts=retry_timeouts)
        caller.on_failure = self._on_failure
        return caller

    def route(self, models: Mapping[str, Model], specs: Iterable[ModelSpec] = ()) -> Call:
        """Return one function to call several models; the request names the model."""
        own = {spec.model: spec for spec in specs}
        callers = {name: self.caller(model, own.get(name)) for name, model in models.items()}

        async def call(request: ModelRequest) -> Outcome:
            return await callers[request.model](request)

        return call

    def outages(self) -> list[str]:
        """Return the endpoints that don't answer, each with its error and for how long."""
        return [text for each in self._endpoints.values() if (text := each.describe_outage())]
