"""Limits the load on an endpoint, and decides how long to wait in an outage.

The parts do no I/O and are tested separately: the wait before a retry (`delay`), the number of
concurrent calls (`Concurrency`), the number of calls per minute (`MinuteQuota`), and how long an
outage may last (`EndpointLimiter`, which combines the parts for one address).
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from jurybox.engine.ports import Clock, ModelError
from jurybox.judging.flow import Failure
from jurybox.suite.model_spec import ModelSpec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits on an endpoint's load."""

    concurrency: int = 64  # the maximum number of concurrent calls
    start: int = 8  # the initial number of concurrent calls
    attempts: int = 12  # how many times one request may fail while the endpoint answers others
    rate_limit_attempts: int = 32  # the same for rate-limited requests
    # How many times a request may fail in a way that suggests a wrong address, as long as the
    # endpoint has never answered.
    first_attempts: int = 4
    # The upper bound of the first wait, in seconds; it doubles with every attempt.
    first_delay: float = 0.5
    longest_delay: float = 30.0  # the upper bound of any wait that the endpoint didn't ask for
    # How many seconds an endpoint may fail without a success before the run gives up; None to not
    # wait for outages to end: every failed attempt then counts against the request.
    patience: float | None = 300.0


def delay(
    retries: int, limits: Limits, draw: Callable[[], float], *, at_least: float = 0.0
) -> float:
    """Return the seconds to wait before retry number ``retries`` (from 0), with full jitter.

    The wait is random: uniform between 0 and the larger of ``first_delay * 2**retries`` and
    ``at_least``, but at most ``longest_delay``. So clients that fail together retry at different
    times (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    # A float overflows at 2**1024.
    longest = max(at_least, limits.first_delay * 2.0 ** min(retries, 64))
    return draw() * min(longest, limits.longest_delay)


# Ideally, doubling the concurrency doubles the throughput. Half of that gain counts as success,
# because the latency of models varies a lot.
_HELP: Final = 0.5
# How many calls a round has, as a multiple of the limit: the effect of doubling shows soon, that
# of a small step only after many calls.
_SHORT, _LONG = 2, 4
_FEWEST: Final = 16
# After this many rounds without growth, growth is tried again, because endpoints change.
_HOLD: Final = 5
# A share of failed calls that is this much above the usual share may indicate overload.
_TOLERATED: Final = 0.1


class Concurrency:
    """Adapts the limit on concurrent calls; raises it while throughput grows.

    Until the first sign of overload the limit doubles every round; after that, it grows by a
    quarter. A round with many failed calls halves it. If a step in either direction leads to fewer
    finished calls per second than expected, it is undone: errors that persist with fewer calls
    aren't caused by overload. While no call succeeds, the limit is halved down to one, and later
    doubles back to its old value.
    """

    def __init__(self, limits: Limits) -> None:
        self._ceiling = max(1, limits.concurrency)
        self._limit = float(min(max(1, limits.start), self._ceiling))
        self._doubling = True
        # The limit before the last step, and the calls per second that finished under it.
        self._before: tuple[float, float] | None = None
        self._hold = 0
        # The limit to return to, and the share of failed calls that doesn't indicate overload.
        self._known_good = 0.0
        self._usual = 0.0
        self._round_start: float | None = None
        self._succeeded = self._failed = 0
        self._busy = True
        self._settling = self.limit

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        return int(self._limit)

    def finished(self, now: float, *, success: bool, busy: bool) -> None:
        """Record the end of a call; ``busy`` if other requests wait for a slot."""
        if self._settling:
            self._settling -= 1
        elif self._round_start is None:
            self._round_start, self._busy = now, busy
            self._succeeded = self._failed = 0
        else:
            self._succeeded += success
            self._failed += not success
            # If the limit isn't reached, the round can't show whether a higher one helps.
            self._busy = self._busy and busy
            if self._is_round_over():
                self._end_round(now - self._round_start)
                self._round_start = None

    def _is_round_over(self) -> bool:
        if not self._succeeded and self._failed >= max(2, self.limit // 2):
            return True
        size = max(_FEWEST, self.limit * (_SHORT if self._doubling else _LONG))
        if self.limit < self._known_good:
            size = max(2, self.limit)
        return self._succeeded + self._failed >= size

    def _end_round(self, elapsed: float) -> None:
        # The clock may not have advanced; then the round counts as infinitely fast.
        rate = self._succeeded / elapsed if elapsed > 0 else math.inf
        share = self._failed / (self._succeeded + self._failed)
        before, self._before = self._before, None
        if not self._succeeded:
            self._step_down()
            return
        if before is not None and rate < self._expected(*before):
            self._take_back(before[0], share)
            return
        if before is not None and before[0] > self._limit:
            # Fewer calls gave about the same throughput, so the endpoint was overloaded.
            self._doubling, self._known_good = False, 0.0
        if share > self._usual + _TOLERATED and self.limit > 1:
            self._before = (self._limit, rate)
            self._step_down()
        elif self.limit < self._known_good:
            self._set(min(self._limit * 2, self._known_good))
        elif self._hold:
            self._hold -= 1
        elif self._busy and self.limit < self._ceiling:
            self._before = (self._limit, rate)
            self._set(self._limit + (self._limit if self._doubling else max(1.0, self._limit / 4)))

    def _step_down(self) -> None:
        self._known_good = max(self._known_good, self._limit)
        self._set(self._limit / 2)

    def _take_back(self, limit: float, share: float) -> None:
        if limit > self._limit:
            self._usual = share
        else:
            self._doubling = False
            self._hold = _HOLD
        self._set(limit)

    def _set(self, limit: float) -> None:
        # The calls in flight now don't count, because they began under the old limit.
        self._settling = self.limit
        self._limit = min(max(1.0, limit), float(self._ceiling))

    def _expected(self, limit: float, rate: float) -> float:
        return rate * (1 + _HELP * (self._limit / limit - 1))


class ResizableSemaphore:
    """A semaphore whose size may change while it is in use."""

    def __init__(self, size: Callable[[], int]) -> None:
        self._size = size
        self._queue: deque[asyncio.Future[None]] = deque()
        self._first: deque[asyncio.Future[None]] = deque()
        self.in_use = 0

    @property
    def waiting(self) -> int:
        """How many tasks are waiting for a slot."""
        return len(self._first) + len(self._queue)

    async def acquire(self, *, first: bool = False) -> None:
        """Wait for a slot; tasks with ``first`` get theirs before the others."""
        if not self.waiting and self.in_use < self._size():
            self.in_use += 1
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._first if first else self._queue
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The slot was granted at the moment of cancellation, so it is passed on.
                self.release()
            elif turn in queue:
                queue.remove(turn)
            raise

    def release(self) -> None:
        """Free a slot; the next task is woken later, so that the reply is counted first."""
        self.in_use -= 1
        asyncio.get_running_loop().call_soon(self.wake)

    def wake(self) -> None:
        """Wake as many tasks as there are free slots."""
        while (queue := self._first or self._queue) and self.in_use < self._size():
            turn = queue.popleft()
            # A task that was cancelled a moment ago is still in the queue.
            if not turn.done():
                self.in_use += 1
                turn.set_result(None)


# The longest wait, in seconds, that an endpoint may ask for if ``patience`` is None.
_MINUTE: Final = 60


class UnwrittenReplies:
    """Replies that aren't stored yet, in order; each occupies a slot until it is stored.

    So a resumed run repeats at most as many calls as were allowed at once.
    """

    def __init__(self) -> None:
        self.replies: deque[asyncio.Future[None]] = deque()
        self.on_stored: list[Callable[[], None]] = []

    def add(self) -> asyncio.Future[None]:
        """Add a reply; its future is done when it is stored."""
        reply = asyncio.get_running_loop().create_future()
        self.replies.append(reply)
        return reply

    def stored(self, count: int) -> None:
        """Free the slots of the oldest replies, then let their samples continue.

        In this order, waiting requests leave first. In the other, 500 calls at once leave, and are
        answered, in waves: 23% fewer calls per second (decision 18).
        """
        replies = [self.replies.popleft() for _ in range(count)]
        for wake in self.on_stored:
            wake()
        for each in replies:
            if not each.done():
                each.set_result(None)


class MinuteQuota:
    """Spreads calls evenly over time, so that a quota per minute is never exceeded.

    A call's tokens are first estimated, then corrected when the reply reports its usage; this may
    let the next call start sooner.
    """

    def __init__(self, requests: float | None = None, tokens: float | None = None) -> None:
        self._per_request = 60 / requests if requests else 0.0
        self._per_token = 60 / tokens if tokens else 0.0
        self._next_request = self._next_tokens = -math.inf

    def wait(self, now: float) -> float:
        """Return how many seconds the next call has to wait, as estimated now."""
        return max(self._next_request, self._next_tokens) - now

    def take(self, tokens: float, now: float) -> None:
        """Count a call that starts now."""
        self._next_request = now + self._per_request
        self._next_tokens = now + tokens * self._per_token

    def correct(self, reserved: float, used: float) -> None:
        """Replace a call's estimated tokens with its actual usage."""
        self._next_tokens += (used - reserved) * self._per_token


class EndpointShare(Protocol):
    """This process's share of an endpoint that several processes of one run use."""

    calls: int  # the number of concurrent calls

    async def turn(self, spec: ModelSpec, tokens: float) -> None:
        """Wait until the limit that all processes share allows a request of about ``tokens``."""
        ...

    def correct(self, spec: ModelSpec, reserved: float, used: float) -> None:
        """Replace a request's estimated tokens with its actual usage."""
        ...


Share = Callable[["EndpointLimiter"], EndpointShare]
"""Returns this process's share of an endpoint, and keeps it up to date from then on."""


class EndpointLimiter:
    """State shared by the models at one address: slots, and whether the endpoint answers.

    Attributes:
        down: the failure that ended calls to the endpoint; None while it is in use.
        share: this process's share of the endpoint; None if no other process uses it.

    """

    def __init__(
        self,
        name: str,
        limits: Limits,
        clock: Clock,
        draw: Callable[[], float],
        unwritten: UnwrittenReplies,
    ) -> None:
        self.name = name
        self.limits = limits
        self.clock = clock
        self.concurrency = Concurrency(limits)
        self.slots = ResizableSemaphore(self._room)
        self._unwritten = unwritten
        unwritten.on_stored.append(self.slots.wake)
        self.down: Failure | None = None
        self.share: EndpointShare | None = None
        self._draw = draw
        self._last_success = -math.inf
        self._outage: tuple[float, ModelError] | None = None

    def _room(self) -> int:
        limit, unwritten = self.concurrency.limit, len(self._unwritten.replies)
        return (limit if self.share is None else min(limit, self.share.calls)) - unwritten

    @property
    def used(self) -> int:
        """How many slots are taken; a reply occupies its slot until it is stored."""
        return self.slots.in_use + len(self._unwritten.replies)

    @property
    def wanted(self) -> int:
        """How many slots could be used now."""
        return min(self.concurrency.limit, self.used + self.slots.waiting)

    @property
    def answered(self) -> bool:
        """Whether the endpoint has ever answered."""
        return self._last_success > -math.inf

    def answered_since(self, then: float) -> bool:
        """Return whether a request has succeeded after the time ``then``."""
        return self._last_success > then

    def succeeded(self, now: float) -> None:
        """Record a success."""
        self._last_success = now
        self._outage = None
        self.concurrency.finished(now, success=True, busy=self.slots.waiting > 0)

    def failed(self, error: ModelError, started: float, now: float) -> None:
        """Record a failed attempt."""
        if error.retry:
            began = self._outage[0] if self._outage is not None else started
            self._outage = (began, error)
        self.concurrency.finished(now, success=not error.retry, busy=self.slots.waiting > 0)

    def left(self) -> float:
        """Return how many seconds the endpoint may still fail before the run gives up."""
        if self._outage is None or self.limits.patience is None:
            return math.inf
        return self._outage[0] + self.limits.patience - self.clock.now()

    def asks_too_much(self, error: ModelError) -> bool:
        """Return whether the endpoint asks for a wait longer than patience allows."""
        return (error.retry_after or 0.0) > (self.limits.patience or _MINUTE)

    async def wait(self, error: ModelError, retries: int) -> None:
        """Wait before the next attempt; honor the wait that the endpoint asks for, within reason.

        In an outage, the longer it has lasted, the longer the waits, up to ``longest_delay``; so
        requests resume soon after it ends.
        """
        lasted = 0.0 if self._outage is None else self.clock.now() - self._outage[0]
        wait = delay(retries, self.limits, self._draw, at_least=lasted)
        if not self.asks_too_much(error):
            wait = max(error.retry_after or 0.0, wait)
        await self.clock.sleep(max(0.0, min(wait, self.left())))

    def describe_outage(self) -> str | None:
        """Return for how long and why the endpoint hasn't answered; None if it answers."""
        if self._outage is None:
            return None
        began, error = self._outage
        seconds = self.clock.now() - began
        calls = "1 call" if self.concurrency.limit == 1 else f"{self.concurrency.limit} calls"
        return f"{self.name}: {error} for {seconds:.0f} s, trying with {calls} at once"


# Seconds after which an unrenewed share is reassigned, because its worker is lost.
_LOST: Final = 10.0
# Turns are granted this many seconds ahead, so that a worker can ask for several at once.
_AHEAD: Final = 0.25
# Stay slightly below the limit, because requests sent evenly don't arrive evenly.
_MARGIN: Final = 0.9


class _Lease(msgspec.Struct):
    wanted: int
    calls: int
    renewed: float


def _fair(wanted: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide with max-min fairness: small demands are met in full, the others equally."""
    shares: dict[str, int] = {}
    left = most
    for place, name in enumerate(sorted(wanted, key=lambda each: (wanted[each], each))):
        # Rounded up, so that the first holders get the remainder.
        shares[name] = min(wanted[name], -(-left // (len(wanted) - place)))
        left -= shares[name]
    return shares


class SharedBudget:
    """The limits of a run's endpoints: leases of concurrent calls, and turns under quotas."""

    def __init__(self, calls: int) -> None:
        """Set the maximum number of concurrent calls to each endpoint."""
        self._calls = calls
        self._leases: dict[str, dict[str, _Lease]] = {}
        self._quotas: dict[str, MinuteQuota] = {}

    def renew(
        self, holder: str, demands: Mapping[str, tuple[int, int]], now: float
    ) -> dict[str, int]:
        """Return how many calls a holder may make to each endpoint; the sum is within the limit.

        ``demands`` has how many calls it wants and how many it has in flight, by endpoint.
        """
        granted: dict[str, int] = {}
        for endpoint, (wanted, used) in demands.items():
            leases = self._leases.setdefault(endpoint, {})
            for name in [name for name, each in leases.items() if now - each.renewed > _LOST]:
                del leases[name]
            lease = leases.setdefault(holder, _Lease(wanted=0, calls=0, renewed=now))
            lease.wanted, lease.renewed = wanted, now
            others = sum(each.calls for name, each in leases.items() if name != holder)
            fair = _fair({name: each.wanted for name, each in leases.items()}, self._calls)
            granted[endpoint] = max(0, min(fair[holder], self._calls - others))
            # Calls in flight can't be taken back; they become available when they end.
            lease.calls = max(granted[endpoint], used)
        return granted

    def release(self, holder: str) -> None:
        """Give all shares of a holder back."""
        for leases in self._leases.values():
            leases.pop(holder, None)

    def turns(
        self,
        endpoint: str,
        spec: ModelSpec,
        tokens: Sequence[float],
        now: float,
        *,
        correction: float = 0.0,
    ) -> tuple[list[float], float]:
        """Return when each request may start, in seconds, and when to ask for more.

        ``tokens`` has an estimate for each waiting request; ``correction`` is by how many tokens
        earlier estimates were too low.
        """
        quota = self._quota(endpoint, spec)
        quota.correct(0.0, correction)
        starts: list[float] = []
        for each in tokens:
            wait = max(0.0, quota.wait(now))
            if wait > _AHEAD:
                return starts, wait - _AHEAD
            quota.take(each, now + wait)
            starts.append(wait)
        return starts, 0.0

    def _quota(self, endpoint: str, spec: ModelSpec) -> MinuteQuota:
        requests, tokens = spec.max_requests_per_minute, spec.max_tokens_per_minute
        key = f"{endpoint} {spec.model}"
        if key not in self._quotas:
            self._quotas[key] = MinuteQuota(
                requests and requests * _MARGIN, tokens and tokens * _MARGIN
            )
        return self._quotas[key]
