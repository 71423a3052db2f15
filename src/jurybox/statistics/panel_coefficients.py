"""Coefficients of any number of raters, each computed for many rows of weights at once.

Krippendorff's alpha, Fleiss' kappa and Gwet's AC1 and AC2 need only how often each item was given
each score; ratings may be missing.

Alpha is ``1 - D / E``. ``D`` is the mean squared distance between two scores of the same item, with
each item weighted by its number of ratings (an item with one rating is left out); ``E`` is the mean
squared distance between any two scores. The distance is 1 for unequal scores (nominal), ``x - y``
(interval), ``(x - y) / (x + y)`` (ratio), or the distance between their middle ranks (ordinal: the
count of all scores between the two, plus half of those equal to either).

Fleiss' kappa is defined only if every item has the same number of ratings. Otherwise Gwet's
extension is used: observed agreement is the share of equal pairs of ratings, averaged over items
with two ratings or more; chance agreement is ``sum(p^2)``, with ``p`` the share of each score,
averaged over all items (Gwet 2014, chapter 2; ``p`` is the same for AC1 and AC2).

Gwet's AC1 and AC2 stay meaningful at high prevalence, where kappa attributes nearly all agreement
to chance. Chance is ``e = T / (q (q - 1)) sum(p (1 - p))`` over the ``q`` points of the declared
scale, with ``p`` the share of each score and ``T`` the sum of all weights (``q`` for AC1).

The intraclass correlation is the share of the scores' variance that is between items. With ``k``
raters who all scored the same ``n`` items, and the mean squares R (items), C (raters), E (the
rest) and W (within items):

- ``ICC(1,1) = (R - W) / (R + (k - 1) W)``: each item was scored by different raters.
- ``ICC(2,1) = (R - E) / (R + (k - 1) E + k (C - E) / n)``: these raters represent others like them;
  a rater who is always higher counts as disagreeing.
- ``ICC(3,1) = (R - E) / (R + (k - 1) E)``: only these raters matter; a rater who is always higher
  doesn't count as disagreeing.

References: K. Krippendorff (2011), "Computing Krippendorff's alpha-reliability"; K. Krippendorff
(2004), "Content Analysis", 2nd edition, chapter 11; K. L. Gwet (2008), "Computing inter-rater
reliability and its variance in the presence of high agreement", British Journal of Mathematical and
Statistical Psychology 61, 29-48; J. L. Fleiss (1971), "Measuring nominal scale
agreement among many raters", Psychological Bulletin 76, 378-382; K. L. Gwet (2014), "Handbook of
Inter-Rater Reliability", 4th edition, chapters 2 to 5; P. E. Shrout and J. L. Fleiss (1979),
"Intraclass correlations: uses in assessing rater reliability", Psychological Bulletin 86, 420-428.
"""

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.intervals import Codes, Values
from jurybox.statistics.pair_coefficients import centered, divided

MOST_RATIO: Final = 1_000
"""The maximum number of different scores for the ratio alpha, which compares all pairs."""

_MOST_PATTERNS: Final = 64


class RatingPatterns:
    """How often items of a pattern got a score: one entry for each pattern and score.

    Attributes:
        values: the scores that occur, ascending.
        pattern_of: the pattern of each item.
        row: the pattern of each entry.
        column: the index of the score of each entry in ``values``.
        times: how often an item of the pattern was given that score.
        ratings: how many ratings an item of each pattern has.

    """

    def __init__(self, item: Codes, score: Values, items: int) -> None:
        """Count scores by item; if few different scores occur, equal items form one pattern."""
        self.values, codes = np.unique(score, return_inverse=True)
        size = len(self.values)
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
        self.pattern_of = pattern_of.astype(np.intp)
        self.row: Codes = row.astype(np.intp)
        self.column: Codes = column.astype(np.intp)
        self.times = times.astype(np.float64)
        self.ratings: Values = np.bincount(row, self.times, count).astype(np.float64)
        # The first entry of each pattern and each score, for sums over segments.
        self._rows = np.searchsorted(self.row, np.arange(count))
        self._order = np.argsort(self.column, kind="stable")
        self._columns = np.searchsorted(self.column[self._order], np.arange(size))

    @property
    def paired(self) -> NDArray[np.bool_]:
        """Which patterns have two ratings or more."""
        return self.ratings > 1

    @cached_property
    def pairs(self) -> Values:
        """How many other ratings each rating of a pattern is paired with, but at least 1."""
        return np.maximum(self.ratings - 1, 1)

    @cached_property
    def unequal(self) -> Values:
        """Ordered pairs of unequal ratings per pattern, divided by its rating count minus one."""
        squares = np.bincount(self.row, self.times**2, len(self.ratings))
        return (self.ratings**2 - squares) / self.pairs

    @cached_property
    def squared(self) -> Values:
        """``(x - y)^2``, summed over ordered pairs, divided by the rating count minus one."""
        here = centered(self.values)[self.column]
        size = len(self.ratings)
        mean = np.bincount(self.row, self.times * here, size) / np.maximum(self.ratings, 1)
        around = np.bincount(self.row, self.times * (here - mean[self.row]) ** 2, size)
        return 2 * self.ratings * around / self.pairs

    @cached_property
    def ratios(self) -> tuple[Values, Values]:
        """Squared ratio distances: between all values, and summed for each pattern."""
        v = self.values
        sums = v[:, None] + v
        among = np.divide(v[:, None] - v, sums, out=np.zeros_like(sums), where=sums != 0) ** 2
        within = np.zeros(len(self.ratings))
        for pattern, (start, end) in enumerate(pairwise([*self._rows, len(self.row)])):
            times, column = self.times[start:end], self.column[start:end]
            within[pattern] = times @ among[np.ix_(column, column)] @ times
        return among, within / self.pairs

    def by_value(self, weights: Values, times: Values) -> Values:
        """Return how often each score was given, in each row of weights."""
        order = self._order
        return np.add.reduceat(weights[:, self.row[order]] * times[order], self._columns, axis=1)

    def by_pattern(self, v: Values) -> Values:
        """Return the sum of ``v`` over the ratings of each pattern, in each row."""
        return np.add.reduceat(v[:, self.column] * self.times, self._rows, axis=1)


class WeightedRatings:
    """Patterns with rows of weights, one row per set of items; the scale has ``points`` points."""

    def __init__(self, patterns: RatingPatterns, weights: Values, points: int = 0) -> None:
        """Set the weights; shared intermediate values are computed once."""
        self.patterns = patterns
        self.weights = weights
        self.points = points
        self.paired = np.where(patterns.paired, weights, 0.0)
        self.items: Values = self.paired.sum(axis=1)

    @cached_property
    def totals(self) -> Values:
        """How often each score was given to items with two ratings or more."""
        return self.patterns.by_value(self.paired, self.patterns.times)

    @cached_property
    def share(self) -> Values:
        """The mean over all items of the share of each score."""
        patterns = self.patterns
        given = patterns.by_value(self.weights, patterns.times / patterns.ratings[patterns.row])
        return given / np.maximum(self.weights.sum(axis=1), 1)[:, None]

    @cached_property
    def agreed(self) -> Values:
        """The mean share of pairs of ratings that are equal."""
        return 1 - self._mean(self.patterns.unequal)

    @property
    def apart(self) -> Values:
        """The mean squared distance of two ratings of an item."""
        return self._mean(self.patterns.squared)

    def _mean(self, sums: Values) -> Values:
        each = sums / np.maximum(self.patterns.ratings, 1)
        return divided(self.paired @ each, self.items, where=self.items > 0)

    def alpha(self, seen: Values, expected: Values) -> Values:
        """Return alpha, ``1 - (n - 1) * seen / expected``, from sums of distances."""
        varied = np.count_nonzero(self.totals, axis=1) > 1
        n = self.totals.sum(axis=1)
        return 1 - divided((n - 1) * seen, expected, where=varied & (expected > 0))

    def spread(self, v: Values) -> Values:
        """Return the sum of ``(x - y)^2`` over all pairs of ratings."""
        n = self.totals.sum(axis=1)
        mean = divided(_dot(self.totals, v), n, where=n > 0)
        return 2 * n * _dot(self.totals, (v - mean[:, None]) ** 2)


def alpha_nominal(rows: WeightedRatings) -> Values:
    """Return Krippendorff's alpha of labels without an order."""
    n = rows.totals.sum(axis=1)
    expected = n**2 - _dot(rows.totals, rows.totals)
    return rows.alpha(rows.paired @ rows.patterns.unequal, expected)


def alpha_ordinal(rows: WeightedRatings) -> Values:
    """Return Krippendorff's alpha of ranks, which differ between rows of weights."""
    patterns, totals = rows.patterns, rows.totals
    # Ranks are whole or half, so squares and sums are exact.
    ranks = np.cumsum(totals, axis=1) - totals / 2 - totals.sum(axis=1, keepdims=True) / 2
    sums, squares = patterns.by_pattern(ranks), patterns.by_pattern(ranks**2)
    apart = 2 * (patterns.ratings * squares - sums**2) / patterns.pairs
    return rows.alpha(_dot(rows.paired, apart), rows.spread(ranks))


def alpha_interval(rows: WeightedRatings) -> Values:
    """Return Krippendorff's alpha of scores whose distances count."""
    patterns = rows.patterns
    expected = rows.spread(centered(patterns.values)[None, :])
    return rows.alpha(rows.paired @ patterns.squared, expected)


def alpha_ratio(rows: WeightedRatings) -> Values:
    """Return Krippendorff's alpha of scores whose ratios count."""
    among, within = rows.patterns.ratios
    return rows.alpha(rows.paired @ within, _dot(rows.totals @ among, rows.totals))


def fleiss_kappa(rows: WeightedRatings) -> Values:
    """Return Fleiss' kappa, or Gwet's extension if the numbers of ratings differ."""
    chance = _dot(rows.share, rows.share)
    varied = np.count_nonzero(rows.share, axis=1) > 1
    return divided(rows.agreed - chance, 1 - chance, where=varied & (chance < 1))


def panel_ac1(rows: WeightedRatings) -> Values:
    """Return Gwet's AC1."""
    return _beyond_chance(rows.agreed, _dot(rows.share, 1 - rows.share), rows.points)


def panel_ac2(rows: WeightedRatings) -> Values:
    """Return Gwet's AC2 with the weights ``1 - ((x - y) / (q - 1))^2``."""
    points = rows.points
    near = 1 - rows.apart / (points - 1) ** 2
    spread = _dot(rows.share, 1 - rows.share)
    # The sum of the weights over all pairs of points.
    total = points**2 - points**2 * (points + 1) / (6 * (points - 1))
    return _beyond_chance(near, spread * total / points, points)


def _beyond_chance(seen: Values, spread: Values, points: int) -> Values:
    """Return agreement beyond the chance of ``spread / (q - 1)``."""
    chance = spread / (points - 1)
    return divided(seen - chance, 1 - chance, where=chance < 1)


class MeanSquares:
    """The mean squares of a two-way table, for rows of weights of its items.

    ``scores`` has a row for each item and a column for each rater; no score is missing.
    """

    def __init__(self, scores: Values, weights: Values) -> None:
        """Compute the mean squares of each row of weights."""
        self.k = k = scores.shape[1]
        x = scores - scores.mean()
        self.n: Values = np.maximum(weights.sum(axis=1), 1)
        grand = weights @ x.mean(axis=1) / self.n
        items = k * (weights @ x.mean(axis=1) ** 2 - self.n * grand**2)
        total = weights @ np.sum(x**2, axis=1) - self.n * k * grand**2
        within = np.maximum(weights @ (k * x.var(axis=1)), 0)
        means = weights @ x / self.n[:, None]
        raters = self.n * np.sum((means - grand[:, None]) ** 2, axis=1)
        # With one item, there is no variance between items, and the result below is undefined.
        free = np.maximum(self.n - 1, 1)
        self.items: Values = items / free
        self.within: Values = within / (self.n * (k - 1))
        self.raters: Values = raters / (k - 1)
        self.rest: Values = np.maximum(within - raters, 0) / (free * (k - 1))
        # Below this, the sum of squares is only rounding error.
        self._vary = (self.n > 1) & (total > 1e-12 * max(float(np.sum(x**2)), 1e-300))

    def divide(self, above: Values, below: Values) -> Values:
        """Divide, leaving NaN where the form is undefined."""
        small = 1e-12 * (self.items + self.within)
        return divided(above, below, where=self._vary & (below > small))


def icc(form: int) -> Callable[[MeanSquares], Values]:
    """Return the formula of an intraclass correlation for single ratings."""

    def formula(s: MeanSquares) -> Values:
        error = s.within if form == 1 else s.rest
        shift = s.k * (s.raters - s.rest) / s.n if form == 2 else 0.0  # noqa: PLR2004 - ICC(2,1)
        return s.divide(s.items - error, s.items + (s.k - 1) * error + shift)

    return formula


def _dot(one: Values, other: Values) -> Values:
    """Return the dot product of each row."""
    return np.sum(one * other, axis=1)
