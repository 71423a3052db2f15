"""Krippendorff's alpha, Fleiss' kappa and Gwet's AC1 and AC2 of any number of raters.

All of them need no more than how often each item was given each score; ratings may be missing.

Alpha is ``1 - D / E``. ``D`` is the squared distance of two scores of the same item, averaged so
that each item weighs as its ratings (an item with one rating says nothing and is left out); ``E``
is the same of any two scores. The distance is 1 for unequal scores (nominal), that of the scores
(interval), ``(x - y) / (x + y)`` (ratio), or that of their ranks (ordinal: the count of all scores
between the two and half of those equal to either, which is the distance of their middle ranks).

Fleiss' kappa is defined for the same number of ratings of every item. Where they differ it is
Gwet's extension, which gives the same figure if they don't: the mean over items with two ratings or
more of the share of pairs of ratings that are equal, against ``sum(p^2)``, with ``p`` the mean over
all items, those with one rating too, of the share of each score (Gwet 2014, chapter 2, where AC1
and AC2 take ``p`` so as well).

References: K. Krippendorff (2011), "Computing Krippendorff's alpha-reliability"; K. Krippendorff
(2004), "Content Analysis", 2nd edition, chapter 11; J. L. Fleiss (1971), "Measuring nominal scale
agreement among many raters", Psychological Bulletin 76, 378-382; K. L. Gwet (2014), "Handbook of
Inter-Rater Reliability", 4th edition, chapters 2 to 5.
"""

from itertools import pairwise
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.agreement.cells import Codes, Values, divided
from jurybox.statistics.agreement.coefficients import beyond, centred, quadratic_total

# Scores of so many kinds are compared with each other for the ratio metric; more take too long.
MOST_RATIO: Final = 1_000
_MOST_PATTERNS: Final = 64
# How many numbers a piece of the work holds at once.
_PIECE: Final = 500_000
_EMPTY: Final = 20


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How often items of each pattern were given each score.

    Attributes:
        values: the scores that occur, ascending.
        pattern_of: the pattern of each item.
        row: the pattern of each entry.
        column: the place of its score among ``values``.
        times: how often an item of the pattern was given it.
        ratings: how many ratings an item of each pattern has.

    """

    values: Values
    pattern_of: Codes
    row: Codes
    column: Codes
    times: Values
    ratings: Values


def counts_of(item: Codes, score: Values, items: int) -> Counts:
    """Count scores by item; items with the same scores are one pattern where there are few."""
    values, codes = np.unique(score, return_inverse=True)
    size = len(values)
    if size <= _MOST_PATTERNS:
        table = np.bincount(item * size + codes, minlength=items * size).reshape(items, size)
        patterns, pattern_of = np.unique(table, axis=0, return_inverse=True)
        row, column = np.nonzero(patterns)
        times = patterns[row, column]
        pattern_of, count = pattern_of.reshape(-1), len(patterns)
    else:
        pairs, times = np.unique(item * size + codes, return_counts=True)
        row, column = pairs // size, pairs % size
        pattern_of, count = np.arange(items), items
    given = times.astype(np.float64)
    return Counts(
        values=values,
        pattern_of=pattern_of.astype(np.intp),
        row=row.astype(np.intp),
        column=column.astype(np.intp),
        times=given,
        ratings=np.asarray(np.bincount(row, given, count), dtype=np.float64),
    )


class Coincidences:
    """Computes the figures for rows of weights of the patterns."""

    def __init__(self, counts: Counts, *, points: int | None, ratio: bool) -> None:
        """Prepare what is the same for all draws; ``points`` of the scale, where it has some."""
        self._counts = counts
        self._points = points
        self._paired = counts.ratings > 1
        # A table of which most is empty would take longer than its entries.
        self._dense = len(counts.ratings) * len(counts.values) <= _EMPTY * len(counts.row)
        order = np.argsort(counts.column, kind="stable")
        self._by_column = order, _starts(counts.column[order], len(counts.values))
        self._starts = _starts(counts.row, len(counts.ratings))
        self._v = centred(counts.values)
        self._one = np.maximum(counts.ratings - 1, 1)
        self._nominal = self._unequal() / self._one
        self._interval = self._apart(self._v) / self._one
        self._ratio = self._ratio_distances() if ratio and len(self._v) <= MOST_RATIO else None

    def figures(self, weights: Values) -> dict[str, Values]:
        """Return every figure, a value a row; NaN where it is undefined."""
        widest = max(len(self._counts.row), 1)
        size = max(1, _PIECE // widest)
        pieces = [self._of(weights[at : at + size]) for at in range(0, len(weights), size)]
        return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}

    def _of(self, weights: Values) -> dict[str, Values]:
        """Return the figures of so many rows that their numbers fit into the memory."""
        counts = self._counts
        paired = np.where(self._paired, weights, 0.0)
        totals = self._by_value(paired, counts.times)
        n = totals.sum(axis=1)
        varied = np.count_nonzero(totals, axis=1) > 1
        ranks = np.cumsum(totals, axis=1) - totals / 2 - n[:, None] / 2
        found = {
            "alpha_nominal": _alpha(paired @ self._nominal, n**2 - _dot(totals, totals), n, varied),
            "alpha_ordinal": _alpha(
                _dot(paired, self._ranks_apart(ranks)), _spread(totals, ranks), n, varied
            ),
            "alpha_interval": _alpha(
                paired @ self._interval, _spread(totals, self._v[None, :]), n, varied
            ),
        }
        if self._ratio is not None:
            among, within = self._ratio
            expected = _dot(totals @ among, totals)
            found["alpha_ratio"] = _alpha(paired @ within, expected, n, varied)
        if self._points is not None:
            given = self._by_value(weights, counts.times / counts.ratings[counts.row])
            share = given / np.maximum(weights.sum(axis=1), 1)[:, None]
            found |= self._beyond_chance(paired, share, self._points)
        return found

    def _beyond_chance(self, paired: Values, share: Values, points: int) -> dict[str, Values]:
        items = paired.sum(axis=1)
        some = items > 0
        m = np.maximum(self._counts.ratings, 1)
        agreed = 1 - divided(paired @ (self._nominal / m), items, where=some)
        apart = divided(paired @ (self._interval / m), items, where=some)
        near = 1 - apart / (points - 1) ** 2
        spread = _dot(share, 1 - share)
        varied = np.count_nonzero(share, axis=1) > 1
        chance = _dot(share, share)
        return {
            "agreed": agreed,
            "fleiss_kappa": divided(agreed - chance, 1 - chance, where=varied & (chance < 1)),
            "ac1": beyond(agreed, spread, points),
            "ac2": beyond(near, spread * quadratic_total(points) / points, points),
        }

    def _by_value(self, weights: Values, times: Values) -> Values:
        """Return how often each score was given, in each row."""
        counts = self._counts
        if self._dense:
            return weights @ self._table(times)
        order, starts = self._by_column
        return np.add.reduceat(weights[:, counts.row[order]] * times[order], starts, axis=1)

    def _by_pattern(self, v: Values) -> Values:
        """Return the sum of ``v`` over the ratings of each pattern, in each row."""
        counts = self._counts
        if self._dense:
            return v @ self._table(counts.times).T
        return np.add.reduceat(v[:, counts.column] * counts.times, self._starts, axis=1)

    def _table(self, times: Values) -> Values:
        counts = self._counts
        table = np.zeros((len(counts.ratings), len(counts.values)))
        table[counts.row, counts.column] = times
        return table

    def _ranks_apart(self, ranks: Values) -> Values:
        """Return what `_apart` does, of ranks that differ in each row, over ratings less one.

        Ranks are whole or half, so that squares and sums are exact.
        """
        sums, squares = self._by_pattern(ranks), self._by_pattern(ranks**2)
        return 2 * (self._counts.ratings * squares - sums**2) / self._one

    def _apart(self, v: Values) -> Values:
        """Return, of each pattern, the sum of ``(x - y)^2`` over all ordered pairs of ratings."""
        counts = self._counts
        here = v[counts.column]
        size = len(counts.ratings)
        mean = np.bincount(counts.row, counts.times * here, size) / np.maximum(counts.ratings, 1)
        around = np.bincount(counts.row, counts.times * (here - mean[counts.row]) ** 2, size)
        return 2 * counts.ratings * around

    def _unequal(self) -> Values:
        counts = self._counts
        squares = np.bincount(counts.row, counts.times**2, len(counts.ratings))
        return counts.ratings**2 - squares

    def _ratio_distances(self) -> tuple[Values, Values]:
        counts = self._counts
        v = counts.values
        sums = v[:, None] + v
        among = np.divide(v[:, None] - v, sums, out=np.zeros_like(sums), where=sums != 0) ** 2
        bounds = np.searchsorted(counts.row, np.arange(len(counts.ratings) + 1))
        within = np.zeros(len(counts.ratings))
        for pattern, (start, end) in enumerate(pairwise(bounds)):
            times, column = counts.times[start:end], counts.column[start:end]
            within[pattern] = times @ among[np.ix_(column, column)] @ times
        return among, within / self._one


def _starts(codes: Codes, size: int) -> Codes:
    """Return where each of ``size`` codes begins among codes in order; each of them occurs."""
    return np.searchsorted(codes, np.arange(size)).astype(np.intp)


def _alpha(seen: Values, spread: Values, n: Values, varied: NDArray[np.bool_]) -> Values:
    return 1 - divided((n - 1) * seen, spread, where=varied & (spread > 0))


def _spread(totals: Values, v: Values) -> Values:
    """Return the sum of ``(x - y)^2`` over all pairs of ratings, of each row."""
    n = totals.sum(axis=1)
    mean = divided(_dot(totals, v), n, where=n > 0)
    return 2 * n * _dot(totals, (v - mean[:, None]) ** 2)


def _dot(one: Values, other: Values) -> Values:
    """Multiply and add up row by row."""
    return np.sum(one * other, axis=1)
