"""Intervals of many figures at once, from the same draws of items.

Items that look alike (the same pair of scores, the same set of scores) are one *pattern*, and a
draw of items is how often each pattern is in it. Drawing ``n`` items with replacement and counting
is the same as drawing the counts from their multinomial distribution, so the intervals are those of
`jurybox.statistics.bootstrap`, only sooner.

Where thousands of items all look different, drawing them thousands of times would take minutes.
So would drawing hundreds of them for each of hundreds of pairs of raters. There the interval is
that of a jackknife, for which bias and skewness don't matter: up to 100 groups of items are left
out in turn, and the figure is ``value -+ t sqrt(99/100 sum((f -
mean(f))^2))`` over the figures ``f`` that result (B. Efron and C. Stein (1981), "The jackknife
estimate of variance", Annals of Statistics 9, 586-596; K. M. Wolter (2007), "Introduction to
Variance Estimation", chapter 4). Its method says so.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.agreement.cells import Codes, Values
from jurybox.statistics.bootstrap import DEFAULT, Resampling, bca
from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.estimate import Interval
from jurybox.statistics.intervals import codes_of

Figures = Mapping[str, Values]
"""Figures by name; of each, one value a draw, NaN where it is undefined."""

# How many numbers a piece of the work holds at once, and how many items are left out one by one.
_PIECE: Final = 2_000_000
_JACKKNIFED: Final = 1_000
# More numbers than this are not drawn, for one drawing or for all; so many groups are left out
# instead.
_MOST: Final = 3_000_000
_MOST_TOGETHER: Final = 30_000_000
_GROUPS: Final = 100
# Counting patterns outright is quicker than drawing the count of each where most items differ.
_ALIKE: Final = 4
FEWEST: Final = 10
"""Of fewer items or clusters no interval is drawn: intended for 95%, it would cover 70% to 80%."""

_NO_INTERVAL: Final = "too little variation for resampling to tell an interval"


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn: the pattern of each item, how many patterns there are, and the clusters.

    ``among`` says how many drawings like it are wanted, so that all of them end in time.
    """

    pattern_of: Codes
    patterns: int
    clusters: Sequence[Hashable] | None = None
    among: int = 1

    @property
    def counts(self) -> Values:
        """How many items have each pattern."""
        return np.bincount(self.pattern_of, minlength=self.patterns).astype(np.float64)


def intervals(
    figures: Callable[[Values], Figures],
    drawing: Drawing,
    whole: Mapping[str, float],
    resampling: Resampling = DEFAULT,
) -> dict[str, Interval | None]:
    """Return the BCa interval of every figure; ``None`` as `bootstrap` says, and of few items.

    ``whole`` has the figures of all items, NaN where undefined.
    """
    n = len(drawing.pattern_of)
    codes, units = (None, n) if drawing.clusters is None else codes_of(drawing.clusters, n)
    if units < FEWEST:
        return dict.fromkeys(whole)
    numbers = drawing.patterns * resampling.resamples
    if numbers > _MOST or numbers * drawing.among > _MOST_TOGETHER:
        return _jackknifed(
            _computed(figures, _in_groups(drawing, codes, units)), whole, resampling.level
        )
    drawn = _computed(figures, _draws(drawing, codes, units, resampling))
    pieces, weights = _left_out(drawing, codes, units)
    without = _computed(figures, pieces)
    unit = "rows" if codes is None else "clusters"
    made: dict[str, Interval | None] = {}
    for name, value in whole.items():
        made[name] = None
        if not np.isnan(value):
            made[name] = bca(
                value,
                drawn[name],
                without[name],
                weights=weights,
                resampling=resampling,
                unit=unit,
            )
    return made


def why_none(units: int, what: str = "items") -> str:
    """Say why there is no interval of so many items or clusters."""
    if units >= FEWEST:
        return _NO_INTERVAL
    few = f"1 {what.removesuffix('s')} is" if units == 1 else f"{units} {what} are"
    return f"{few} too few for an interval by resampling, which takes {FEWEST}"


def _jackknifed(
    without: Mapping[str, Values], whole: Mapping[str, float], level: float
) -> dict[str, Interval | None]:
    made: dict[str, Interval | None] = {}
    for name, value in whole.items():
        left_out = without[name]
        groups = len(left_out)
        quantile = t_quantile((1 + level) / 2, groups - 1)
        half = quantile * float(np.sqrt((groups - 1) * np.var(left_out)))
        known = half > 0 and not np.isnan(value)
        method = f"jackknife, {groups} groups"
        # All of these figures end at 1.
        top = min(1.0, value + half)
        around = Interval(low=value - half, high=top, level=level, method=method)
        made[name] = around if known else None
    return made


def _in_groups(drawing: Drawing, codes: Codes | None, units: int) -> Iterator[Values]:
    groups = min(units, _GROUPS)
    return _without_groups(drawing, _groups_of(codes, units, groups), groups)


def _computed(figures: Callable[[Values], Figures], pieces: Iterator[Values]) -> dict[str, Values]:
    parts = [figures(piece) for piece in pieces]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _draws(
    drawing: Drawing, codes: Codes | None, units: int, resampling: Resampling
) -> Iterator[Values]:
    rng = np.random.default_rng(resampling.seed)
    counts = drawing.counts
    for size in _sizes(resampling.resamples, drawing.patterns):
        if codes is None and drawing.patterns * _ALIKE <= units:
            yield rng.multinomial(units, counts / units, size=size).astype(np.float64)
        else:
            yield np.array([_draw(drawing, codes, units, rng) for _ in range(size)])


def _draw(drawing: Drawing, codes: Codes | None, units: int, rng: np.random.Generator) -> Values:
    chosen = rng.integers(0, units, units)
    if codes is None:
        # By pattern, so that the order of the items changes nothing.
        in_order = np.searchsorted(np.cumsum(drawing.counts), chosen, side="right")
        return np.bincount(in_order, minlength=drawing.patterns).astype(np.float64)
    times = np.bincount(chosen, minlength=units).astype(np.float64)
    return _counted(drawing, times[codes])


def _left_out(
    drawing: Drawing, codes: Codes | None, units: int
) -> tuple[Iterator[Values], Values | None]:
    """Return the counts without an item of each pattern, or without groups of items or clusters."""
    counts = drawing.counts
    if codes is None and drawing.patterns <= _JACKKNIFED:
        return _without_one(counts), counts
    groups = min(units, _JACKKNIFED)
    return _without_groups(drawing, _groups_of(codes, units, groups), groups), None


def _groups_of(codes: Codes | None, units: int, groups: int) -> Codes:
    """Return the group of each item; clusters stay together."""
    return (np.arange(units, dtype=np.intp) if codes is None else codes) % groups


def _without_one(counts: Values) -> Iterator[Values]:
    start = 0
    for size in _sizes(len(counts), len(counts)):
        rows = np.tile(counts, (size, 1))
        rows[np.arange(size), np.arange(start, start + size)] -= 1
        yield np.maximum(rows, 0)
        start += size


def _without_groups(drawing: Drawing, group_of: Codes, groups: int) -> Iterator[Values]:
    start = 0
    for size in _sizes(groups, drawing.patterns):
        kept = [(group_of != group).astype(np.float64) for group in range(start, start + size)]
        yield np.array([_counted(drawing, each) for each in kept])
        start += size


def _counted(drawing: Drawing, times: Values) -> Values:
    counted = np.bincount(drawing.pattern_of, times, drawing.patterns)
    return np.asarray(counted, dtype=np.float64)


def _sizes(total: int, width: int) -> Iterator[int]:
    """Cut the work into pieces that fit into the memory."""
    most = max(1, _PIECE // max(width, 1))
    while total > 0:
        yield min(total, most)
        total -= most
