"""Intervals of agreement coefficients and correlations, from leaving items out.

Items that look alike (the same pair of scores, the same set of scores) form a *pattern*, so that a
coefficient is a function of how often each pattern occurs, and leaving out any of its items gives
the same value. Without ``m`` of ``N`` items (or clusters of items) the coefficient is ``c_j``; with
``h = N / m`` its pseudo-value is ``h c - (h - 1) c_j``, and the variance of the coefficient is the
mean of ``(pseudo-value - their mean)^2 / (h - 1)`` (Busing and others 1999). The interval is
Student's on Fisher's scale, ``tanh(atanh(c) -+ t error / (1 - c^2))``, which keeps it within -1 and
1 and lets it be wider below a high value than above it. Where few items decide, the error itself
is uncertain: the degrees of freedom are ``2 N / (k - 1)`` with the kurtosis ``k`` of the
pseudo-values, at most ``N - 1``.

References: F. M. T. A. Busing, E. Meijer and R. van der Leeden (1999), "Delete-m jackknife for
unequal m", Statistics and Computing 9, 3-8; R. A. Fisher (1921), "On the probable error of a
coefficient of correlation", Metron 1, 3-32; F. E. Satterthwaite (1946), "An approximate
distribution of estimates of variance components", Biometrics Bulletin 2, 110-114.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Codes, Values, codes_of

Computed = Mapping[str, Values]
"""Coefficients by name: one value per row of weights, NaN where undefined."""

FEWEST_LEFT_OUT: Final = 10
"""Fewer items or clusters get no interval: they don't show how items differ."""

_MOST_ROWS: Final = 200
# Numbers held in memory at once.
_PIECE: Final = 2_000_000
_SAME: Final = 1e-12


class Patterns(msgspec.Struct, frozen=True, kw_only=True):
    """The pattern of each item, how many patterns there are, and what items belong to.

    ``informative`` items have what a coefficient needs; ``width`` numbers are held for a row.
    """

    pattern_of: Codes
    count: int
    informative: int
    clusters: Sequence[Hashable] | None = None
    width: int = 0

    @property
    def times(self) -> Values:
        """How many items have each pattern."""
        return np.bincount(self.pattern_of, minlength=self.count).astype(np.float64)


class _LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of weights without some units: how many each leaves out, and how often it counts."""

    rows: Callable[[], Iterator[Values]]
    sizes: Values
    counts: Values
    what: str


def estimates_of(
    compute: Callable[[Values], Computed],
    patterns: Patterns,
    undefined: Callable[[str], str],
    level: float,
) -> dict[str, Estimate]:
    """Return every coefficient with its interval; ``undefined`` says why one has no value."""
    n = patterns.informative
    whole = {name: float(each[0]) for name, each in compute(patterns.times[None, :]).items()}
    units, what = n, "item"
    if patterns.clusters is not None:
        units, what = len(set(patterns.clusters)), "cluster"
    made: dict[str, Interval | None] = {}
    reason = "too little variation for an interval"
    if units >= FEWEST_LEFT_OUT:
        made = _intervals(compute, patterns, whole, level)
    else:
        few = f"1 {what} is" if units == 1 else f"{units} {what}s are"
        reason = f"{few} too few for an interval, which takes {FEWEST_LEFT_OUT}"
    return {
        name: Estimate(value=None, n=n, reason=undefined(name))
        if np.isnan(value)
        else Estimate(
            value=value,
            n=n,
            interval=made.get(name),
            reason=None if made.get(name) else reason,
        )
        for name, value in whole.items()
    }


def _intervals(
    compute: Callable[[Values], Computed],
    patterns: Patterns,
    whole: Mapping[str, float],
    level: float,
) -> dict[str, Interval | None]:
    left_out = _left_out(patterns)
    parts = [compute(rows) for rows in left_out.rows()]
    return {
        name: _interval(value, np.concatenate([part[name] for part in parts]), left_out, level)
        for name, value in whole.items()
    }


def _left_out(patterns: Patterns) -> _LeftOut:
    times, n = patterns.times, len(patterns.pattern_of)
    if patterns.clusters is None and patterns.count <= _MOST_ROWS:
        without_one = times - np.eye(patterns.count)
        ones = np.ones(patterns.count)
        return _LeftOut(
            rows=lambda: iter([without_one]), sizes=ones, counts=times, what=f"{n:,} items"
        )
    if patterns.clusters is None:
        units, unit_of, what = n, np.arange(n), "items"
    else:
        unit_of, units = codes_of(patterns.clusters, n)
        what = "clusters"
    groups = min(units, _MOST_ROWS)
    group_of = unit_of % groups
    named = f"{units:,} {what}" if units == groups else f"{groups} groups of {units:,} {what}"

    def rows() -> Iterator[Values]:
        step = max(1, _PIECE // max(patterns.count, patterns.width))
        for start in range(0, groups, step):
            some = range(start, min(start + step, groups))
            gone = [
                np.bincount(patterns.pattern_of[group_of == group], minlength=patterns.count)
                for group in some
            ]
            yield times - np.array(gone)

    sizes = np.bincount(np.arange(units) % groups).astype(np.float64)
    return _LeftOut(rows=rows, sizes=sizes, counts=np.ones(groups), what=named)


def _interval(value: float, without: Values, left_out: _LeftOut, level: float) -> Interval | None:
    """Return the interval on Fisher's scale; None where nothing varies or one item decides all."""
    if not abs(value) < 1 - _SAME or np.isnan(without).any():
        return None
    counts = left_out.counts
    total = float(counts.sum())
    share = float(counts @ left_out.sizes) / left_out.sizes
    pseudo = share * value - (share - 1) * without
    apart = (pseudo - np.average(pseudo, weights=counts)) ** 2 / (share - 1)
    variance = float(counts @ apart) / total
    if variance <= _SAME**2:
        return None
    kurtosis = float(counts @ apart**2) / total / variance**2
    degrees = min(total - 1, 2 * total / max(kurtosis - 1, _SAME))
    half = t_quantile((1 + level) / 2, degrees) * variance**0.5 / (1 - value**2)
    low, high = np.tanh(np.arctanh(value) - half), np.tanh(np.arctanh(value) + half)
    method = f"jackknife, {left_out.what}"
    return Interval(low=float(low), high=float(high), level=level, method=method)
