"""How hard an endpoint may be pressed: values and rules, without waiting.

Three rules, each small enough to test by hand: how many calls at once (`Concurrency`), how long to
wait before trying again (`delay`), and whether trying again is worth it at all (`RetryBudget`).
"""

import math
from collections.abc import Callable

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint may be asked to bear.

    Attributes:
        concurrency: the most calls at once.
        start: how many at first.
        attempts: how often one request is tried in all, unless it is told to slow down.
        rate_limit_attempts: the same for a request that is told to slow down, which is no fault.
        first_delay: the upper bound of the first wait, in seconds; it doubles with every attempt.
        longest_delay: the upper bound of any wait that the endpoint didn't ask for.
        longest_retry_after: an endpoint that asks to wait longer is given up.
        retry_share: how much of a retry each success earns.
        retry_reserve: retries to begin with, and the most that can be saved.
        grace: an endpoint that has answered before counts as down only when it has been out of
            reach for so many seconds; one that never answered, as soon as the reserve is used up.
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
    """Return how long to wait before retry number ``retries`` (from 0): full jitter.

    Uniform between nothing and ``first_delay * 2**retries``: many clients that fail together come
    back spread out (Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    """
    # A float overflows at 2**1024.
    longest = limits.first_delay * 2.0 ** min(retries, 64)
    return draw() * min(longest, limits.longest_delay)


class RetryBudget:
    """Retries as a share of successes, so that a dead endpoint isn't asked four times as much.

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


# Twice the calls at once should finish twice as many; half of the gain that was hoped for counts
# as help, because the time that a model takes varies a lot.
_HELP = 0.5
# So many calls are looked at before judging, as a multiple of the limit: a doubling shows soon, a
# small step only in the long run.
_SHORT, _LONG = 2, 4
_FEWEST = 16
# After so many rounds in which growth didn't help it is tried again: endpoints change.
_PATIENCE = 5


class Concurrency:
    """How many calls at once: additive increase, multiplicative decrease, and only while it helps.

    Until the first sign of too much the limit doubles every round, then it grows by a quarter.
    Being told to slow down halves it, once for all the calls that were under way together. Where a
    larger limit doesn't finish more calls a second, it goes back to the smaller one for a while.
    """

    def __init__(self, limits: Limits) -> None:
        self._ceiling = max(1, limits.concurrency)
        self._limit = float(min(max(1, limits.start), self._ceiling))
        self._doubling = True
        self._halved_at = -math.inf
        # The limit before the last step, and the calls a second that it finished.
        self._before: tuple[int, float] | None = None
        self._hold = 0
        self._began: float | None = None
        self._finished = 0
        self._settling = self.limit

    @property
    def limit(self) -> int:
        """How many calls may be under way now."""
        return int(self._limit)

    def succeeded(self, now: float, *, busy: bool) -> None:
        """Note a call that came back well; ``busy`` when others were waiting for its place."""
        if not busy:
            # What isn't used up says nothing about whether more would help.
            self._began = None
        elif self._settling:
            self._settling -= 1
        elif self._began is None:
            self._began, self._finished = now, 0
        else:
            self._finished += 1
            if self._finished >= max(_FEWEST, self.limit * (_SHORT if self._doubling else _LONG)):
                # A clock may not have moved at all; then the round was as fast as can be.
                elapsed = now - self._began
                self._judge(self._finished / elapsed if elapsed > 0 else math.inf)
                self._began = None

    def slow_down(self, started: float, now: float) -> None:
        """Note that a call which began at ``started`` was told to slow down."""
        self._doubling = False
        self._began = self._before = None
        if started > self._halved_at:
            self._set(self._limit / 2)
            self._halved_at = now

    def _judge(self, rate: float) -> None:
        if self._hold:
            self._hold -= 1
        elif self._before is not None and rate < self._hoped_for(*self._before):
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
        # The calls that are under way now began under the old limit.
        self._settling = self.limit

    def _hoped_for(self, limit: int, rate: float) -> float:
        return rate * (1 + _HELP * (self.limit / limit - 1))
