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
all items of the share of each score.

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

from jurybox.statistics.agreement.cells import Codes, Values
from jurybox.statistics.agreement.chance import quadratic_total
from jurybox.statistics.agreement.kappa import centred

_NAN: Final = float("nan")
# Scores of so many kinds are compared with each other for the ratio metric; more take too long.
MOST_RATIO: Final = 1_000
_MOST_PATTERNS: Final = 64


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
        self._entry_paired = self._paired[counts.row]
        self._v = centred(counts.values)
        self._one = np.maximum(counts.ratings - 1, 1)
        self._nominal = self._unequal() / self._one
        self._interval = self._apart(self._v) / self._one
        self._ratio = self._ratio_distances() if ratio and len(self._v) <= MOST_RATIO else None

    def figures(self, weights: Values) -> dict[str, Values]:
        """Return every figure, a value a row; NaN where it is undefined."""
        paired = np.where(self._paired, weights, 0.0)
        totals = np.array([self._totals(row) for row in paired])
        rows = [self._of(*row) for row in zip(weights, paired, totals, strict=True)]
        found = {name: np.array([row[name] for row in rows]) for name in rows[0]}
        if self._ratio is not None:
            found["alpha_ratio"] = _alpha_ratio(*self._ratio, paired, totals)
        return found

    def _of(self, w: Values, paired: Values, totals: Values) -> dict[str, float]:
        counts = self._counts
        n = float(totals.sum())
        alphas = dict.fromkeys(("nominal", "ordinal", "interval"), _NAN)
        varied = np.count_nonzero(totals) > 1
        if varied:
            ranks = np.cumsum(totals) - totals / 2 - n / 2
            ordinal = self._apart(ranks) / self._one
            alphas = {
                "nominal": _alpha(paired @ self._nominal, n**2 - float(totals @ totals), n),
                "ordinal": _alpha(paired @ ordinal, _spread(totals, ranks), n),
                "interval": _alpha(paired @ self._interval, _spread(totals, self._v), n),
            }
        found = {f"alpha_{name}": value for name, value in alphas.items()}
        if self._points is not None:
            shares = np.bincount(
                counts.column, w[counts.row] * counts.times / counts.ratings[counts.row]
            )
            found |= self._beyond_chance(paired, shares / w.sum(), self._points)
        return found

    def _beyond_chance(self, paired: Values, share: Values, points: int) -> dict[str, float]:
        items = float(paired.sum())
        if not items:
            return dict.fromkeys(("agreed", "fleiss_kappa", "ac1", "ac2"), _NAN)
        m = np.maximum(self._counts.ratings, 1)
        agreed = 1 - float(paired @ (self._nominal / m)) / items
        near = 1 - float(paired @ (self._interval / m)) / items / (points - 1) ** 2
        spread = float(share @ (1 - share)) / (points - 1)
        one = np.count_nonzero(share) > 1
        return {
            "agreed": agreed,
            "fleiss_kappa": _beyond(agreed, float(share @ share)) if one else _NAN,
            "ac1": _beyond(agreed, spread),
            "ac2": _beyond(near, spread * quadratic_total(points) / points),
        }

    def _totals(self, paired: Values) -> Values:
        counts = self._counts
        weights = paired[counts.row] * counts.times
        totals = np.bincount(counts.column, weights, len(counts.values))
        return np.asarray(totals, dtype=np.float64)

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


def _alpha(seen: NDArray[np.float64] | float, spread: float, n: float) -> float:
    return 1 - (n - 1) * float(seen) / spread if spread > 0 else _NAN


def _alpha_ratio(among: Values, within: Values, paired: Values, totals: Values) -> Values:
    """Return alpha by the ratio of scores, of all rows at once: each needs all distances."""
    expected = ((totals @ among) * totals).sum(axis=1)
    seen, n = paired @ within, totals.sum(axis=1)
    rows = zip(seen.tolist(), expected.tolist(), n.tolist(), strict=True)
    return np.array([_alpha(*row) for row in rows])


def _spread(totals: Values, v: Values) -> float:
    """Return the sum of ``(x - y)^2`` over all pairs of ratings."""
    n = float(totals.sum())
    around = v - float(totals @ v) / n
    return 2 * n * float(totals @ around**2)


def _beyond(seen: float, chance: float) -> float:
    return (seen - chance) / (1 - chance) if chance < 1 else _NAN
