"""Calling a model: how hard an endpoint may be pressed, when to retry, when to give up."""

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

import msgspec

from jurybox.engine.driver import Call
from jurybox.engine.ports import Clock, Model, ModelError
from jurybox.judging.flow import Failure, FailureKind, ModelReply, ModelRequest, Outcome
from jurybox.suite.model_spec import ModelSpec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The load that an endpoint may get.

    Attributes:
        concurrency: the most calls at once.
        start: how many calls at once at first.
        attempts: the most attempts at one request, unless it is rate-limited.
        rate_limit_attempts: the same for a request that is rate-limited, which is no fault.
        first_delay: the upper bound of the first wait, in seconds; it doubles with every attempt.
        longest_delay: the upper bound of any wait that the endpoint didn't ask for.
        longest_retry_after: an endpoint that asks to wait longer is given up.
        retry_share: how much of a retry each success earns.
        retry_reserve: retries to begin with, and the most that can be saved.
        grace: an endpoint that has answered before counts as down only after it was unreachable
            for this many seconds; one that never answered, as soon as the reserve is used up.
        rest: how many seconds an endpoint that is down is left alone before one request tries it.

    """

    concurrency: int = 64
    start: int = 8
    attempts: int = 4
    rate_limit_attempts: int = 8
    first_delay: float = 0.5
    longest_delay: float = 30.0
    longest_retry_after: float = 120.0
    retry_share: float = 0.2
    retry_reserve: int = 32
    grace: float = 5.0
    rest: float = 30.0


def delay(retries: int, limits: Limits, draw: Callable[[], float]) -> float:
    """Return the wait before retry number ``retries`` (from 0): full jitter.

    Uniform between nothing and ``first_delay * 2**retries``: many clients that fail together come
    back spread out (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    # A float overflows at 2**1024.
    longest = limits.first_delay * 2.0 ** min(retries, 64)
    return draw() * min(longest, limits.longest_delay)


class RetryBudget:
    """Retries as a share of successes, so that a dead endpoint doesn't get four times the load.

    A token bucket (as in Finagle and in Beyer et al., "Site Reliability Engineering", ch. 21): a
    retry costs one token, a success earns a share of one.
    """

    def __init__(self, limits: Limits) -> None:
        self._share = limits.retry_share
        self._most = float(limits.retry_reserve)
        self._tokens = self._most

    def earn(self) -> None:
        """Note a success."""
        self._tokens = min(self._most, self._tokens + self._share)

    def spend(self) -> bool:
        """Take a retry, if there is one."""
        # Ten times 0.1 is a little less than 1.
        if self._tokens < 1 - 1e-9:
            return False
        self._tokens = max(0.0, self._tokens - 1)
        return True


# Twice the calls at once should finish twice as many; half of that gain counts as help, because
# the latency of a model varies a lot.
_HELP: Final = 0.5
# A round has this many calls, as a multiple of the limit: a doubling shows soon, a small step only
# in the long run.
_SHORT, _LONG = 2, 4
_FEWEST: Final = 16
# After this many rounds without growth it is tried again: endpoints change.
_PATIENCE: Final = 5


class Concurrency:
    """How many calls at once: additive increase, multiplicative decrease, and only while it helps.

    Until the first sign of overload the limit doubles every round, then it grows by a quarter. A
    rate limit halves it, once for all the calls that were in flight together. Where a larger limit
    doesn't finish more calls per second, it goes back to the smaller one for a while.
    """

    def __init__(self, limits: Limits) -> None:
        self._ceiling = max(1, limits.concurrency)
        self._limit = float(min(max(1, limits.start), self._ceiling))
        self._doubling = True
        self._halved_at = -math.inf
        # The limit before the last step, and the calls per second that it finished.
        self._before: tuple[int, float] | None = None
        self._hold = 0
        self._round_start: float | None = None
        self._finished = 0
        self._settling = self.limit

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        return int(self._limit)

    def succeeded(self, now: float, *, busy: bool) -> None:
        """Note a call that succeeded; ``busy`` while others wait for its slot."""
        if not busy:
            # A limit that isn't used up says nothing about whether more would help.
            self._round_start = None
        elif self._settling:
            self._settling -= 1
        elif self._round_start is None:
            self._round_start, self._finished = now, 0
        else:
            self._finished += 1
            if self._finished >= max(_FEWEST, self.limit * (_SHORT if self._doubling else _LONG)):
                # A clock may not have moved at all; then the round was as fast as can be.
                elapsed = now - self._round_start
                self._end_round(self._finished / elapsed if elapsed > 0 else math.inf)
                self._round_start = None

    def slow_down(self, started: float, now: float) -> None:
        """Note that a call which began at ``started`` was rate-limited."""
        self._doubling = False
        self._round_start = self._before = None
        if started > self._halved_at:
            self._set(self._limit / 2)
            self._halved_at = now

    def _end_round(self, rate: float) -> None:
        if self._hold:
            self._hold -= 1
        elif self._before is not None and rate < self._expected(*self._before):
            self._set(self._before[0])
            self._before = None
            self._doubling = False
            self._hold = _PATIENCE
        elif self.limit < self._ceiling:
            self._before = (self.limit, rate)
            more = self._limit if self._doubling else max(1.0, self._limit / 4)
            self._set(self._limit + more)
        else:
            self._before = None

    def _set(self, limit: float) -> None:
        self._limit = min(max(1.0, limit), float(self._ceiling))
        # The calls in flight now began under the old limit.
        self._settling = self.limit

    def _expected(self, limit: int, rate: float) -> float:
        return rate * (1 + _HELP * (self.limit / limit - 1))


class ResizableSemaphore:
    """A semaphore whose size may change while it is in use."""

    def __init__(self, size: Callable[[], int]) -> None:
        self._size = size
        self._queue: deque[asyncio.Future[None]] = deque()
        self._first: deque[asyncio.Future[None]] = deque()
        self.in_use = 0

    @property
    def waiting(self) -> bool:
        """Whether any task waits."""
        return bool(self._first or self._queue)

    def try_acquire(self) -> bool:
        """Acquire without waiting, unless other tasks wait already."""
        if self._first or self._queue or self.in_use >= self._size():
            return False
        self.in_use += 1
        return True

    async def acquire(self, *, first: bool = False) -> None:
        """Wait for a slot; tasks that are ``first`` go before the others."""
        if self.try_acquire():
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._first if first else self._queue
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The slot was granted in the very moment of the cancellation: it goes to the next.
                self.release()
            elif turn in queue:
                queue.remove(turn)
            raise

    def release(self) -> None:
        """Release a slot, and wake as many tasks as there is room for now."""
        self.in_use -= 1
        while (queue := self._first or self._queue) and self.in_use < self._size():
            turn = queue.popleft()
            # A task that was cancelled a moment ago is still in the queue.
            if not turn.done():
                self.in_use += 1
                turn.set_result(None)


_HINTS: Final[Mapping[FailureKind, str]] = {
    "unreachable": "is the server running, and is the address right?",
    "timeout": "give it more time, or ask for fewer tokens",
    "rate-limit": "lower the concurrency, or ask the provider for a higher limit",
    "unreadable": "is this the address of a chat endpoint?",
}

_ROUNDING: Final = 1e-6
# An endpoint that may be restarting gets this many times the usual attempts.
_RESTART_FACTOR: Final = 4


class SystemClock:
    """Time as it passes."""

    now = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class EndpointState:
    """What the models at one address share: slots, pauses, retries, whether it is down."""

    def __init__(self, name: str, limits: Limits, clock: Clock, draw: Callable[[], float]) -> None:
        self.name = name
        self.limits = limits
        self.clock = clock
        self.draw = draw
        self.concurrency = Concurrency(limits)
        self.slots = ResizableSemaphore(lambda: self.concurrency.limit)
        self.budget = RetryBudget(limits)
        self._paused_until = clock.now()
        self._answered = False
        self._consecutive = 0
        self._first_error_at = 0.0
        self._known_failure: tuple[str, Failure] | None = None
        self._down_until: float | None = None

    def pause(self) -> float:
        """Return how many seconds the endpoint asked to be left alone for."""
        return self._paused_until - self.clock.now()

    def failing(self) -> Failure | None:
        """Return the failure of an endpoint that is down; now and then one caller may try."""
        if self._down_until is None or self._known_failure is None:
            return None
        if self.clock.now() < self._down_until:
            return _as_fatal(self._known_failure[1])
        self._down_until = self.clock.now() + self.limits.rest
        return None

    def succeeded(self, now: float) -> None:
        """Note a reply."""
        self.budget.earn()
        self.concurrency.succeeded(now, busy=self.slots.waiting)
        self._answered = True
        self._consecutive = 0
        self._known_failure = None
        self._down_until = None

    def failed(self, error: ModelError, started: float) -> None:
        """Note a failed attempt."""
        if error.kind == "rate-limit":
            self.concurrency.slow_down(started, self.clock.now())
            # It answers, so it isn't down.
            self._consecutive = 0
        elif error.retry:
            if not self._consecutive:
                self._first_error_at = self.clock.now()
            self._consecutive += 1
        if error.retry_after is not None and not self._waits_too_long(error):
            self._paused_until = max(self._paused_until, self.clock.now() + error.retry_after)

    def may_retry(self, error: ModelError, attempts: int) -> bool:
        """Return whether one more attempt is worth it, and take it from the budget."""
        if not error.retry or self._waits_too_long(error):
            return False
        if error.kind == "rate-limit":
            return attempts < self.limits.rate_limit_attempts
        if self._may_be_restarting(error, attempts):
            return True
        return attempts < self.limits.attempts and self.budget.spend()

    def _may_be_restarting(self, error: ModelError, attempts: int) -> bool:
        """Return whether an endpoint that answered a moment ago may be restarting.

        No request is at fault then, so none is given up, and no retry is counted.
        """
        away = self.clock.now() - self._first_error_at
        waiting = error.fatal and self._answered and away < self.limits.grace
        return waiting and attempts < self.limits.attempts * _RESTART_FACTOR

    def give_up(self, error: ModelError, attempts: int) -> Failure:
        """Return the failure; all requests that fail of one cause have the same message."""
        what = str(error)
        if not error.retry:
            message = f"{self.name}: {what}"
            return Failure(kind=error.kind, message=message, fatal=error.fatal)
        if self._waits_too_long(error):
            failure = self._failure(error, attempts)
            self._known_failure = (what, failure)
            self._down_until = self.clock.now() + (error.retry_after or 0)
            return _as_fatal(failure)
        if error.kind == "rate-limit":
            return self._failure(error, attempts)
        if self._known_failure is None or self._known_failure[0] != what:
            self._known_failure = (what, self._failure(error, max(attempts, self._consecutive)))
        # A timeout may be the fault of one long request; being unreachable is not. An endpoint that
        # never answered has a wrong address; one that did has had its grace.
        if error.fatal or (error.kind == "unreachable" and self._out_of_reach()):
            self._down_until = self.clock.now() + self.limits.rest
            return _as_fatal(self._known_failure[1])
        return self._known_failure[1]

    def _waits_too_long(self, error: ModelError) -> bool:
        return (error.retry_after or 0) > self.limits.longest_retry_after

    def _out_of_reach(self) -> bool:
        grace = self.limits.grace if self._answered else 0.0
        long_enough = self.clock.now() - self._first_error_at >= grace
        return long_enough and self._consecutive > self.limits.retry_reserve

    def _failure(self, error: ModelError, attempts: int) -> Failure:
        message = f"{self.name}: {error}"
        if attempts > 1:
            message += f" after {attempts} attempts"
        if self._waits_too_long(error):
            message += f", and it asks to wait {error.retry_after:.0f} s"
        if error.kind in _HINTS:
            message += f"; {_HINTS[error.kind]}"
        return Failure(kind=error.kind, message=message)


def _as_fatal(failure: Failure) -> Failure:
    return msgspec.structs.replace(failure, fatal=True)


class SampleState(Protocol):
    """How far the sample is that a request belongs to.

    Attributes:
        started: whether it has sent a request; its further requests go first.
        cancelled: whether it may send no further request.

    """

    started: bool
    cancelled: bool


class Caller:
    """One model, called with retries and within the limits of its endpoint."""

    def __init__(
        self, model: Model, endpoint: EndpointState, *, retry_timeouts: bool, timeout: float | None
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        self._retry_timeouts = retry_timeouts
        self._timeout = timeout

    async def __call__(self, request: ModelRequest, state: SampleState | None = None) -> Outcome:
        """Return the reply, or the failure after all retries."""
        endpoint = self._endpoint
        attempts = 0
        latency: float | None = None
        while True:
            attempts += 1
            result, elapsed = await self._attempt(request, state)
            if isinstance(result, ModelReply):
                return result
            # Where the endpoint is known to be down, the attempt before was the last.
            latency = latency if elapsed is None else elapsed
            if isinstance(result, Failure):
                return msgspec.structs.replace(result, latency_ms=latency)
            if not endpoint.may_retry(result, attempts):
                failure = endpoint.give_up(result, attempts)
                return msgspec.structs.replace(failure, latency_ms=latency)
            # Without a slot, so that other requests can use it.
            await endpoint.clock.sleep(delay(attempts - 1, endpoint.limits, endpoint.draw))

    async def _attempt(
        self, request: ModelRequest, state: SampleState | None
    ) -> tuple[Outcome | ModelError, float | None]:
        """Return the result and its milliseconds; None where no attempt was made."""
        endpoint = self._endpoint
        if not endpoint.slots.try_acquire():
            await endpoint.slots.acquire(first=state is not None and state.started)
        try:
            # A pause may be prolonged meanwhile; a remainder of rounding isn't waited for.
            while (left := endpoint.pause()) > _ROUNDING:
                await endpoint.clock.sleep(left)
            # Only now: the endpoint may have gone down while this request was in the queue.
            known = endpoint.failing()
            if known is not None:
                return known, None
            if state is not None:
                if state.cancelled:
                    # Its task is cancelled a moment later; until then nothing may be sent.
                    raise asyncio.CancelledError
                state.started = True
            started = endpoint.clock.now()
            result = await self._ask(request)
            ended = endpoint.clock.now()
            elapsed = (ended - started) * 1000
            if isinstance(result, ModelError):
                endpoint.failed(result, started)
                return result, elapsed
            endpoint.succeeded(ended)
        finally:
            endpoint.slots.release()
        if result.latency_ms is None:
            result = msgspec.structs.replace(result, latency_ms=elapsed)
        return result, elapsed

    async def _ask(self, request: ModelRequest) -> ModelReply | ModelError:
        try:
            if self._timeout is None:
                return await self._model.complete(request)
            return await self._in_time(request, self._timeout)
        except ModelError as error:
            if error.kind == "timeout" and not self._retry_timeouts:
                return ModelError("timeout", str(error), retry=False)
            return error

    async def _in_time(self, request: ModelRequest, seconds: float) -> ModelReply:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._model.complete(request)
        except TimeoutError:
            # Any other is a bug of the model.
            if not limit.expired():
                raise
            what = f"timed out after {seconds:g} s"
            raise ModelError("timeout", what, retry=True) from None


class Callers:
    """The callers of a run: models at one endpoint share its limits."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._limits = limits or Limits()
        self._clock = clock or SystemClock()
        self._draw = draw
        self._endpoints: dict[str, EndpointState] = {}

    def caller(
        self, model: Model, *, retry_timeouts: bool = True, timeout: float | None = None
    ) -> Caller:
        """Return a caller for a model.

        ``retry_timeouts`` is False for a system under test, where a timeout is a measurement.
        ``timeout`` is how many seconds an attempt may take, without the wait for a slot.
        """
        name = model.endpoint
        if name not in self._endpoints:
            self._endpoints[name] = EndpointState(name, self._limits, self._clock, self._draw)
        endpoint = self._endpoints[name]
        return Caller(model, endpoint, retry_timeouts=retry_timeouts, timeout=timeout)

    def route(self, models: Mapping[str, Model], specs: Iterable[ModelSpec] = ()) -> Call:
        """Return one call for several models; the request names the model."""
        limit = {spec.model: spec.timeout for spec in specs}
        callers = {
            name: self.caller(each, timeout=limit.get(name)) for name, each in models.items()
        }

        async def call(request: ModelRequest) -> Outcome:
            return await callers[request.model](request)

        return call
