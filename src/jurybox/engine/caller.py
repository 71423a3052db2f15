"""Calling a model until it answers or it is clear that it won't."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec

from jurybox.engine.driver import Call
from jurybox.engine.limits import Concurrency, Limits, RetryBudget, delay
from jurybox.engine.ports import Clock, Model, ModelTrouble
from jurybox.judging.exchange import Failure, FailureKind, ModelReply, ModelRequest, Outcome


class SystemClock:
    """Time as it passes."""

    now = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Slots:
    """A semaphore whose size is asked for each time."""

    def __init__(self, size: Callable[[], int]) -> None:
        self._size = size
        self._taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._first: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        """How many places are in use."""
        return self._taken

    @property
    def waiting(self) -> bool:
        """Whether anybody waits for a place."""
        return bool(self._first or self._queue)

    def take_free(self) -> bool:
        """Take a place without waiting, if there is one that nobody waits for."""
        if self._first or self._queue or self._taken >= self._size():
            return False
        self._taken += 1
        return True

    async def take(self, *, first: bool = False) -> None:
        """Wait for a place, with those who go ``first`` or behind them."""
        if self.take_free():
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._first if first else self._queue
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The place was given in the very moment of the cancellation: it goes to the next.
                self.give_back()
            elif turn in queue:
                queue.remove(turn)
            raise

    def give_back(self) -> None:
        """Leave a place, and let in as many as there is room for now."""
        self._taken -= 1
        while (queue := self._first or self._queue) and self._taken < self._size():
            turn = queue.popleft()
            # Who was cancelled a moment ago still stands in the queue.
            if not turn.done():
                self._taken += 1
                turn.set_result(None)


_MEND: Mapping[FailureKind, str] = {
    "unreachable": "is the server running, and is the address right?",
    "timeout": "give it more time, or ask for fewer tokens",
    "rate-limit": "lower the concurrency, or ask the provider for a higher limit",
    "unreadable": "is this the address of a chat endpoint?",
}

_MOMENT = 1e-6
# So many times as often as usual is an endpoint tried that may be starting anew.
_MORE = 4


class Endpoint:
    """What the models at one address share: places, pauses, retries, whether it is down."""

    def __init__(
        self,
        name: str,
        limits: Limits,
        clock: Clock,
        draw: Callable[[], float],
    ) -> None:
        self.name = name
        self.limits = limits
        self.clock = clock
        self.draw = draw
        self.concurrency = Concurrency(limits)
        self.slots = Slots(lambda: self.concurrency.limit)
        self.budget = RetryBudget(limits)
        self._resume_at = clock.now()
        self._answered = False
        self._in_a_row = 0
        self._since = 0.0
        self._given_up: tuple[str, Failure] | None = None
        self._down_until: float | None = None

    def pause(self) -> float:
        """Return for how many seconds the endpoint wants to be left alone."""
        return self._resume_at - self.clock.now()

    def failing(self) -> Failure | None:
        """Return the known failure of an endpoint that is down; now and then one caller may try."""
        if self._down_until is None or self._given_up is None:
            return None
        if self.clock.now() < self._down_until:
            return _everybodys(self._given_up[1])
        self._down_until = self.clock.now() + self.limits.rest
        return None

    def succeeded(self, now: float) -> None:
        """Note a reply."""
        self.budget.earn()
        self.concurrency.succeeded(now, busy=self.slots.waiting)
        self._answered = True
        self._in_a_row = 0
        self._given_up = None
        self._down_until = None

    def troubled(self, trouble: ModelTrouble, started: float) -> None:
        """Note an attempt that came to nothing."""
        if trouble.kind == "rate-limit":
            self.concurrency.slow_down(started, self.clock.now())
            # It answers, so it isn't down.
            self._in_a_row = 0
        elif trouble.retry:
            if not self._in_a_row:
                self._since = self.clock.now()
            self._in_a_row += 1
        if trouble.retry_after is not None and not self._asks_too_much(trouble):
            self._resume_at = max(self._resume_at, self.clock.now() + trouble.retry_after)

    def may_retry(self, trouble: ModelTrouble, attempts: int) -> bool:
        """Say whether one more attempt is worth it, and take it from the budget."""
        if not trouble.retry or self._asks_too_much(trouble):
            return False
        if trouble.kind == "rate-limit":
            return attempts < self.limits.rate_limit_attempts
        if self._may_come_back(trouble, attempts):
            return True
        return attempts < self.limits.attempts and self.budget.spend()

    def _may_come_back(self, trouble: ModelTrouble, attempts: int) -> bool:
        """Say whether an endpoint that was there a moment ago may only be starting anew.

        Nobody's request is at fault then, so none is given up, and no retry is counted.
        """
        away = self.clock.now() - self._since
        waiting = trouble.everybody and self._answered and away < self.limits.grace
        return waiting and attempts < self.limits.attempts * _MORE

    def give_up(self, trouble: ModelTrouble, attempts: int) -> Failure:
        """Return the failure; all requests that fail of one cause say it in the same words."""
        what = str(trouble)
        if not trouble.retry:
            message = f"{self.name}: {what}"
            return Failure(kind=trouble.kind, message=message, everybody=trouble.everybody)
        if self._asks_too_much(trouble):
            failure = self._failure(trouble, attempts)
            self._given_up = (what, failure)
            self._down_until = self.clock.now() + (trouble.retry_after or 0)
            return _everybodys(failure)
        if trouble.kind == "rate-limit":
            return self._failure(trouble, attempts)
        if self._given_up is None or self._given_up[0] != what:
            self._given_up = (what, self._failure(trouble, max(attempts, self._in_a_row)))
        # A time-out may be the fault of one long request; being out of reach is everybody's.
        if trouble.kind == "unreachable" and self._out_of_reach():
            self._down_until = self.clock.now() + self.limits.rest
            return _everybodys(self._given_up[1])
        # Who was never there is a mistake in the address; who was there has been waited for.
        if trouble.everybody:
            self._down_until = self.clock.now() + self.limits.rest
            return _everybodys(self._given_up[1])
        return self._given_up[1]

    def _asks_too_much(self, trouble: ModelTrouble) -> bool:
        return (trouble.retry_after or 0) > self.limits.longest_retry_after

    def _out_of_reach(self) -> bool:
        grace = self.limits.grace if self._answered else 0.0
        long_enough = self.clock.now() - self._since >= grace
        return long_enough and self._in_a_row > self.limits.retry_reserve

    def _failure(self, trouble: ModelTrouble, attempts: int) -> Failure:
        parts = [f"{self.name}: {trouble}"]
        if attempts > 1:
            parts.append(f" after {attempts} attempts")
        if self._asks_too_much(trouble):
            parts.append(f", and it asks to wait {trouble.retry_after:.0f} s")
        hint = _MEND.get(trouble.kind)
        if hint is not None:
            parts.append(f"; {hint}")
        return Failure(kind=trouble.kind, message="".join(parts))


def _everybodys(failure: Failure) -> Failure:
    return msgspec.structs.replace(failure, everybody=True)


class Asker(Protocol):
    """For whom a model is asked.

    Attributes:
        begun: set as soon as it is; whoever has begun is let in first.
        called_off: nothing more may be asked.

    """

    begun: bool
    called_off: bool


class Caller:
    """One model, called with retries and within the limits of its endpoint."""

    def __init__(
        self, model: Model, endpoint: Endpoint, *, retry_timeouts: bool, timeout: float | None
    ) -> None:
        self._model = model
        self._endpoint = endpoint
        self._retry_timeouts = retry_timeouts
        self._timeout = timeout

    async def __call__(self, request: ModelRequest, asker: Asker | None = None) -> Outcome:
        """Return the reply, or what stood in its way."""
        endpoint = self._endpoint
        attempts = 0
        latency: float | None = None
        while True:
            attempts += 1
            result, elapsed = await self._attempt(request, asker)
            if isinstance(result, ModelReply):
                return result
            # Who finds the endpoint down makes no attempt; then the one before is the last.
            latency = latency if elapsed is None else elapsed
            if isinstance(result, Failure):
                return msgspec.structs.replace(result, latency_ms=latency)
            if not endpoint.may_retry(result, attempts):
                failure = endpoint.give_up(result, attempts)
                return msgspec.structs.replace(failure, latency_ms=latency)
            # Without a place, so that others can go on meanwhile.
            await endpoint.clock.sleep(delay(attempts - 1, endpoint.limits, endpoint.draw))

    async def _attempt(
        self, request: ModelRequest, asker: Asker | None
    ) -> tuple[Outcome | ModelTrouble, float | None]:
        """Return what came of it and how many milliseconds it took; None where nobody asked."""
        endpoint = self._endpoint
        if not endpoint.slots.take_free():
            await endpoint.slots.take(first=asker is not None and asker.begun)
        try:
            # A pause may be prolonged meanwhile; what rounding leaves over isn't waited for.
            while (left := endpoint.pause()) > _MOMENT:
                await endpoint.clock.sleep(left)
            # Only now: much may have become known while this request stood in the queue.
            known = endpoint.failing()
            if known is not None:
                return known, None
            if asker is not None:
                if asker.called_off:
                    # Its task is told a moment later; until then nothing goes out to be paid.
                    raise asyncio.CancelledError
                asker.begun = True
            started = endpoint.clock.now()
            result = await self._ask(request)
            ended = endpoint.clock.now()
            elapsed = (ended - started) * 1000
            if isinstance(result, ModelTrouble):
                endpoint.troubled(result, started)
                return result, elapsed
            endpoint.succeeded(ended)
        finally:
            endpoint.slots.give_back()
        if result.latency_ms is None:
            result = msgspec.structs.replace(result, latency_ms=elapsed)
        return result, elapsed

    async def _ask(self, request: ModelRequest) -> ModelReply | ModelTrouble:
        try:
            if self._timeout is None:
                return await self._model.complete(request)
            return await self._in_time(request, self._timeout)
        except ModelTrouble as error:
            trouble = error
        if trouble.kind == "timeout" and not self._retry_timeouts:
            return ModelTrouble("timeout", str(trouble), retry=False)
        return trouble

    async def _in_time(self, request: ModelRequest, seconds: float) -> ModelReply:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await self._model.complete(request)
        except TimeoutError:
            # Any other is the model's own, and a fault.
            if not limit.expired():
                raise
            what = f"timed out after {seconds:g} s"
            raise ModelTrouble("timeout", what, retry=True) from None


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
        self._endpoints: dict[str, Endpoint] = {}

    def caller(
        self, model: Model, *, retry_timeouts: bool = True, timeout: float | None = None
    ) -> Caller:
        """Return what calls ``model``.

        Args:
            model: what is called.
            retry_timeouts: False for a system under test, where a time-out is a measurement.
            timeout: how many seconds an attempt may take, the wait for a place not counted.

        """
        name = model.endpoint
        if name not in self._endpoints:
            self._endpoints[name] = Endpoint(name, self._limits, self._clock, self._draw)
        endpoint = self._endpoints[name]
        return Caller(model, endpoint, retry_timeouts=retry_timeouts, timeout=timeout)

    def route(self, models: Mapping[str, Model]) -> Call:
        """Return one call for several models; the request names the one that is meant."""
        callers = {name: self.caller(model) for name, model in models.items()}

        async def call(request: ModelRequest) -> Outcome:
            return await callers[request.model](request)

        return call
