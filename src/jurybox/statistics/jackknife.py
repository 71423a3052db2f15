"""Jackknife intervals of agreement coefficients and correlations.

Items that look alike (the same pair of scores, the same set of scores) form a *pattern*. So a
coefficient is a function of how often each pattern occurs, and leaving out any item of a pattern
gives the same value. Without ``m`` of ``N`` items (or clusters of items) the coefficient ``c``
becomes ``c_j``. With ``h = N / m``, its pseudo-value is ``h c - (h - 1) c_j``, and the variance of
the coefficient is the mean of ``(pseudo-value - their mean)^2 / (h - 1)`` (Busing and others 1999).
The interval is Student's on Fisher's scale, ``tanh(atanh(c) -+ t error / (1 - c^2))``: it stays
within -1 and 1, and reaches further down than up from a high value. If a few items dominate, the
error itself is uncertain, so the degrees of freedom are ``2 N / (k - 1)``, where ``k`` is the
kurtosis of the pseudo-values, but at most ``N - 1``.

References: F. M. T. A. Busing, E. Meijer and R. van der Leeden (1999), "Delete-m jackknife for
unequal m", Statistics and Computing 9, 3-8; R. A. Fisher (1921), "On the probable error of a
coefficient of correlation", Metron 1, 3-32; F. E. Satterthwaite (1946), "An approximate
distribution of estimates of variance components", Biometrics Bulletin 2, 110-114.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
import numpy as np

from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Codes, Values, codes_of, t_quantile

T = TypeVar("T")
Computed = Mapping[str, Values]
"""Coefficients by name: one value per row of weights, NaN where undefined."""

FEWEST_LEFT_OUT: Final = 10
"""The minimum number of items or clusters for an interval; fewer don't show how items differ."""

_MOST_ROWS: Final = 200
# The maximum number of values in memory at a time.
_PIECE: Final = 2_000_000
_SAME: Final = 1e-12


class Patterns(msgspec.Struct, frozen=True, kw_only=True):
    """The pattern of each item, the number of patterns, and the clusters of items.

    ``informative`` counts the items that a coefficient uses; a row of weights takes ``width``
    numbers.
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


def estimates_of(
    formulas: Mapping[str, Callable[[T], Values]],
    weighted: Callable[[Values], T],
    patterns: Patterns,
    undefined: Callable[[str], str],
    level: float,
) -> dict[str, Estimate]:
    """Return every coefficient with its interval; ``undefined`` says why one has no value.

    A formula is given the data for rows of weights, as ``weighted`` returns them.
    """

    def compute(weights: Values) -> Computed:
        data = weighted(weights)
        return {name: formula(data) for name, formula in formulas.items()}

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
        reason = f"{few} too few for an interval, which needs {FEWEST_LEFT_OUT}"
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
    n = len(patterns.pattern_of)
    if patterns.clusters is None and patterns.count <= _MOST_ROWS:
        # Leaving out any item of a pattern gives the same value.
        rows = iter([patterns.times - np.eye(patterns.count)])
        sizes, counts, what = np.ones(patterns.count), patterns.times, f"{n:,} items"
    else:
        unit_of, units, name = np.arange(n), n, "items"
        if patterns.clusters is not None:
            unit_of, units = codes_of(patterns.clusters, n)
            name = "clusters"
        groups = min(units, _MOST_ROWS)
        rows = _without_groups(patterns, unit_of % groups, groups)
        sizes = np.bincount(np.arange(units) % groups).astype(np.float64)
        counts = np.ones(groups)
        what = f"{units:,} {name}" if units == groups else f"{groups} groups of {units:,} {name}"
    parts = [compute(some) for some in rows]
    found: dict[str, Interval | None] = {}
    for name, value in whole.items():
        without = np.concatenate([part[name] for part in parts])
        ends = _ends(value, without, sizes, counts, level)
        if ends is None:
            found[name] = None
        else:
            method = f"jackknife, {what}"
            found[name] = Interval(low=ends[0], high=ends[1], level=level, method=method)
    return found


def _without_groups(patterns: Patterns, group_of: Codes, groups: int) -> Iterator[Values]:
    """Yield, in batches, the pattern counts with each group left out."""
    step = max(1, _PIECE // max(patterns.count, patterns.width))
    for start in range(0, groups, step):
        gone = [
            np.bincount(patterns.pattern_of[group_of == group], minlength=patterns.count)
            for group in range(start, min(start + step, groups))
        ]
        yield patterns.times - np.array(gone)


def _ends(
    value: float, without: Values, sizes: Values, counts: Values, level: float
) -> tuple[float, float] | None:
    """Return the interval's ends; None if nothing varies or one item decides everything.

    ``without`` has the values after leaving out ``sizes`` units, each repeated ``counts`` times.
    """
    if not abs(value) < 1 - _SAME or np.isnan(without).any():
        return None
    total = float(counts.sum())
    share = float(counts @ sizes) / sizes
    pseudo = share * value - (share - 1) * without
    apart = (pseudo - np.average(pseudo, weights=counts)) ** 2 / (share - 1)
    variance = float(counts @ apart) / total
    if variance <= _SAME**2:
        return None
    kurtosis = float(counts @ apart**2) / total / variance**2
    degrees = min(total - 1, 2 * total / max(kurtosis - 1, _SAME))
    half = t_quantile((1 + level) / 2, degrees) * variance**0.5 / (1 - value**2)
    middle = float(np.arctanh(value))
    return float(np.tanh(middle - half)), float(np.tanh(middle + half))
