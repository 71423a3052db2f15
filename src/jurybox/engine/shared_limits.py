"""Divides the limits of endpoints among the processes of one run.

Rules without I/O: a cluster keeps one `SharedBudget` where all of its workers can ask it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from jurybox.engine.limiter import MinuteQuota
from jurybox.suite.model_spec import ModelSpec

# A share that wasn't renewed for as many seconds goes to others: its worker is lost.
_LOST: Final = 10.0
# Turns are given this many seconds ahead, so that a worker asks once for several of them.
_AHEAD: Final = 0.25
# Below the limit, for requests that are sent evenly don't arrive so.
_MARGIN: Final = 0.9


class _Lease(msgspec.Struct):
    wanted: int
    calls: int
    renewed: float


class CallLeases:
    """Divides the calls at once that an endpoint may get; their sum never exceeds the limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._leases: dict[str, _Lease] = {}

    def renew(self, holder: str, *, wanted: int, used: int, now: float) -> int:
        """Return how many calls a holder may have now; it has ``used`` of them in flight."""
        for name in [n for n, each in self._leases.items() if now - each.renewed > _LOST]:
            del self._leases[name]
        lease = self._leases.setdefault(holder, _Lease(wanted=0, calls=0, renewed=now))
        lease.wanted, lease.renewed = wanted, now
        others = sum(each.calls for name, each in self._leases.items() if name != holder)
        fair = _fair({name: each.wanted for name, each in self._leases.items()}, self._most)
        granted = max(0, min(fair[holder], self._most - others))
        # Calls in flight can't be taken back; they become available when they end.
        lease.calls = max(granted, used)
        return granted

    def release(self, holder: str) -> None:
        """Give a share back."""
        self._leases.pop(holder, None)


def _fair(wanted: Mapping[str, int], most: int) -> dict[str, int]:
    """Divide by max-min fairness: a holder that gets less than it wants has the largest share."""
    shares: dict[str, int] = {}
    left = most
    for place, name in enumerate(sorted(wanted, key=lambda each: (wanted[each], each))):
        # Rounded up, so that the first ones may have the rest.
        shares[name] = min(wanted[name], -(-left // (len(wanted) - place)))
        left -= shares[name]
    return shares


class SharedBudget:
    """All endpoints of a run: leases of calls at once, and turns within quotas per minute."""

    def __init__(self, calls: int) -> None:
        """Set the maximum number of simultaneous calls of each endpoint."""
        self._calls = calls
        self._leases: dict[str, CallLeases] = {}
        self._quotas: dict[str, MinuteQuota] = {}

    def renew(
        self, holder: str, demands: Mapping[str, tuple[int, int]], now: float
    ) -> dict[str, int]:
        """Return a holder's allowed calls by endpoint, from what it wants and uses of each."""
        granted: dict[str, int] = {}
        for endpoint, (wanted, used) in demands.items():
            leases = self._leases.setdefault(endpoint, CallLeases(self._calls))
            granted[endpoint] = leases.renew(holder, wanted=wanted, used=used, now=now)
        return granted

    def release(self, holder: str) -> None:
        """Give all shares of a holder back."""
        for leases in self._leases.values():
            leases.release(holder)

    def turns(
        self,
        endpoint: str,
        spec: ModelSpec,
        tokens: Sequence[float],
        now: float,
        *,
        correction: float = 0.0,
    ) -> tuple[list[float], float]:
        """Return in how many seconds each next request may start, and when to ask for more.

        ``tokens`` has an estimate for each waiting request; ``correction`` is by how many the
        estimates of earlier ones were wrong.
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
