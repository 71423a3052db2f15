"""Bootstrap intervals of many statistics at once, from the same draws of items.

Items that look alike (the same pair of scores, the same set of scores) form a *pattern*, and a draw
of items is how often each pattern occurs in it. Drawing ``n`` items with replacement and counting
is drawing the counts from their multinomial distribution.

Where thousands of items all differ, or hundreds of pairs of raters are drawn, the bootstrap would
take minutes. There the interval comes from a jackknife, for which bias and skewness don't matter:
up to 100 groups of items are left out in turn, and the interval is
``value -+ t sqrt(99/100 sum((f - mean(f))^2))`` over the resulting values ``f`` (B. Efron and C.
Stein (1981), "The jackknife estimate of variance", Annals of Statistics 9, 586-596; K. M. Wolter
(2007), "Introduction to Variance Estimation", chapter 4).
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.bootstrap import DEFAULT, Resampling, bca
from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Codes, Values, codes_of

Computed = Mapping[str, Values]
"""Statistics by name: one value per draw, NaN where undefined."""

FEWEST_DRAWN: Final = 10
"""Fewer items or clusters get no interval: a nominal 95% would cover 70% to 80%."""

# Numbers held in memory at once, and numbers drawn at most: for one drawing, and for all of them.
_PIECE: Final = 2_000_000
_MOST_DRAWN: Final = 3_000_000
_MOST_TOGETHER: Final = 30_000_000
_MOST_LEFT_OUT: Final = 1_000
_GROUPS: Final = 100


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn: the pattern of each item, and the clusters that items belong to.

    ``width`` is how many numbers one draw takes up; ``among`` counts the drawings like this one.
    """

    pattern_of: Codes
    patterns: int
    clusters: Sequence[Hashable] | None = None
    width: int = 0
    among: int = 1

    @property
    def counts(self) -> Values:
        """How many items have each pattern."""
        return np.bincount(self.pattern_of, minlength=self.patterns).astype(np.float64)


def estimates_of(
    compute: Callable[[Values], Computed],
    drawing: Drawing,
    n: int,
    resampling: Resampling | None,
    undefined: Callable[[str], str],
) -> dict[str, Estimate]:
    """Return every statistic with its interval; ``n`` items of the drawing carry information.

    ``undefined`` gives the reason for a statistic without a value.
    """
    whole = {name: float(each[0]) for name, each in compute(drawing.counts[None, :]).items()}
    made: Mapping[str, Interval | None] = {}
    reason = None
    if resampling is not None:
        units, what = n, "items"
        if drawing.clusters is not None:
            units, what = len(set(drawing.clusters)), "clusters"
        reason = no_interval(units, what)
        if units >= FEWEST_DRAWN:
            made = intervals(compute, drawing, whole, resampling)
    found: dict[str, Estimate] = {}
    for name, value in whole.items():
        around = made.get(name)
        if np.isnan(value):
            found[name] = Estimate(value=None, n=n, reason=undefined(name))
        else:
            why = reason if around is None else None
            found[name] = Estimate(value=value, n=n, interval=around, reason=why)
    return found


def intervals(
    compute: Callable[[Values], Computed],
    drawing: Drawing,
    whole: Mapping[str, float],
    resampling: Resampling = DEFAULT,
) -> dict[str, Interval | None]:
    """Return the BCa interval of every statistic, whose values over all items are ``whole``."""
    n = len(drawing.pattern_of)
    codes, units = (None, n) if drawing.clusters is None else codes_of(drawing.clusters, n)
    numbers = drawing.patterns * resampling.resamples
    if numbers > _MOST_DRAWN or numbers * drawing.among > _MOST_TOGETHER:
        without = _computed(compute, _without_groups(drawing, codes, min(units, _GROUPS)))
        return {
            name: _jackknifed(value, without[name], resampling.level)
            for name, value in whole.items()
        }
    drawn = _computed(compute, _draws(drawing, codes, units, resampling))
    weights = None
    if codes is None and drawing.patterns <= _MOST_LEFT_OUT:
        # Leaving out any item of a pattern gives the same value.
        weights = drawing.counts
        without = _computed(compute, _without_one(drawing))
    else:
        without = _computed(compute, _without_groups(drawing, codes, min(units, _MOST_LEFT_OUT)))
    unit = "rows" if codes is None else "clusters"
    return {
        name: None
        if np.isnan(value)
        else bca(
            value, drawn[name], without[name], weights=weights, resampling=resampling, unit=unit
        )
        for name, value in whole.items()
    }


def no_interval(units: int, what: str = "items") -> str:
    """Return the reason why ``units`` items or clusters have no interval by resampling."""
    if units >= FEWEST_DRAWN:
        return "too little variation for an interval by resampling"
    few = f"1 {what.removesuffix('s')} is" if units == 1 else f"{units} {what} are"
    return f"{few} too few for an interval by resampling, which takes {FEWEST_DRAWN}"


def _jackknifed(value: float, left_out: Values, level: float) -> Interval | None:
    groups = len(left_out)
    half = t_quantile((1 + level) / 2, groups - 1) * float(np.sqrt((groups - 1) * np.var(left_out)))
    if np.isnan(value) or not half > 0:
        return None
    # All of these statistics are at most 1.
    high = min(1.0, value + half)
    return Interval(low=value - half, high=high, level=level, method=f"jackknife, {groups} groups")


def _computed(compute: Callable[[Values], Computed], pieces: Iterator[Values]) -> Computed:
    parts = [compute(piece) for piece in pieces]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _draws(
    drawing: Drawing, codes: Codes | None, units: int, resampling: Resampling
) -> Iterator[Values]:
    rng = np.random.default_rng(resampling.seed)
    for size in _sizes(resampling.resamples, drawing):
        if codes is None:
            yield rng.multinomial(units, drawing.counts / units, size=size).astype(np.float64)
        else:
            chosen = (rng.integers(0, units, units) for _ in range(size))
            yield _counted(drawing, (np.bincount(each, minlength=units)[codes] for each in chosen))


def _without_one(drawing: Drawing) -> Iterator[Values]:
    """Yield the counts without one item of each pattern."""
    start = 0
    for size in _sizes(drawing.patterns, drawing):
        rows = np.tile(drawing.counts, (size, 1))
        rows[np.arange(size), np.arange(start, start + size)] -= 1
        yield np.maximum(rows, 0)
        start += size


def _without_groups(drawing: Drawing, codes: Codes | None, groups: int) -> Iterator[Values]:
    """Yield the counts without each group of items; clusters stay together."""
    group_of = (np.arange(len(drawing.pattern_of)) if codes is None else codes) % groups
    start = 0
    for size in _sizes(groups, drawing):
        yield _counted(drawing, (group_of != group for group in range(start, start + size)))
        start += size


def _counted(drawing: Drawing, times: Iterator[NDArray[Any]]) -> Values:
    """Count patterns for rows that say how often each item occurs."""
    rows = [np.bincount(drawing.pattern_of, each, drawing.patterns) for each in times]
    return np.array(rows, dtype=np.float64)


def _sizes(total: int, drawing: Drawing) -> Iterator[int]:
    """Split the work into pieces that fit into memory."""
    most = max(1, _PIECE // max(drawing.patterns, drawing.width, 1))
    while total > 0:
        yield min(total, most)
        total -= most
