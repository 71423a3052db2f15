"""Coefficients of two raters, each for many draws at once.

Cohen's kappa, plain and weighted over the declared scale.

Kappa is ``1 - D / E``: the disagreement ``D`` that was seen over the one ``E`` that two raters
would show who score at the same rates without looking. Disagreeing costs 1 (plain), the distance of
the two scores (linear) or its square (quadratic).

The distance is that of the scores *as declared*, not of their places among the scores that happen
to occur: where nobody gave a 3, a 2 and a 4 are still two apart. Dividing it by the length of the
scale changes nothing, for it does so above and below; so a continuous scale has weighted kappas as
well (the quadratic one is then Lin's concordance coefficient).

References: J. Cohen (1960), "A coefficient of agreement for nominal scales", Educational and
Psychological Measurement 20, 37-46; J. Cohen (1968), "Weighted kappa", Psychological Bulletin 70,
213-220; L. I. Lin (1989), "A concordance correlation coefficient to evaluate reproducibility",
Biometrics 45, 255-268.

Gwet's AC1 and AC2: agreement beyond chance that high prevalence doesn't break.

Kappa takes for chance that two raters score at the rates that were seen, so where nearly all scores
are one value nearly all agreement is chance. Gwet takes for chance that only scores of hard items
are guessed, ``e = T / (q (q - 1)) sum(p (1 - p))`` over the ``q`` points of the declared scale,
with ``p`` the share of each score and ``T`` the sum of all weights; plain agreement has ``T = q``.

Reference: K. L. Gwet (2008), "Computing inter-rater reliability and its variance in the presence of
high agreement", British Journal of Mathematical and Statistical Psychology 61, 29-48; K. L. Gwet
(2014), "Handbook of Inter-Rater Reliability", 4th edition, chapter 5.

Correlations of two raters: Pearson, Spearman, Kendall's tau-b.

They ask whether the raters go up and down together, not whether they give the same scores: a rater
who is always two points lower correlates perfectly.

References: K. Pearson (1895), "Note on regression and inheritance in the case of two parents",
Proceedings of the Royal Society 58, 240-242; C. Spearman (1904), "The proof and measurement of
association between two things", American Journal of Psychology 15, 72-101; M. G. Kendall (1945),
"The treatment of ties in ranking problems", Biometrika 33, 239-251; E. C. Fieller, H. O. Hartley
and E. S. Pearson (1957), "Tests for rank correlation coefficients I", Biometrika 44, 470-481;
W. R. Knight (1966), "A computer method for calculating Kendall's tau with ungrouped data", Journal
of the American Statistical Association 61, 436-439.
"""

import math
from typing import Final

import numpy as np

from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement.cells import Cells, Codes, Values, Weighted, divided
from jurybox.statistics.distributions import normal_quantile
from jurybox.statistics.estimate import Interval


def exact(draws: Weighted) -> Values:
    """Return the share of items with the same score."""
    return divided(draws.equal, draws.n, where=draws.n > 0)


def kappa(draws: Weighted) -> Values:
    """Return plain kappa, ``(p - e) / (1 - e)``; undefined where all scores are one."""
    # In counts, not shares: whole numbers are exact, and 1 - e is zero where it should be.
    chance = np.sum(draws.left * draws.right, axis=1)
    n = draws.n
    return divided(n * draws.equal - chance, n**2 - chance, where=draws.some_vary)


def kappa_linear(draws: Weighted) -> Values:
    """Return kappa with the distance of the scores as weight.

    The mean distance of two independent scores is ``sum(gap * (F (1 - G) + G (1 - F)))`` over the
    gaps between neighbouring scores, with ``F`` and ``G`` the shares at or below them.
    """
    cells, whole = draws.cells, draws.n[:, None]
    below, also = (np.cumsum(each, axis=1)[:, :-1] for each in (draws.left, draws.right))
    chance = (below * (whole - also) + also * (whole - below)) @ np.diff(cells.values)
    seen = draws.weights @ np.abs(cells.values[cells.x] - cells.values[cells.y])
    return 1 - divided(draws.n * seen, chance, where=draws.some_vary)


def kappa_quadratic(draws: Weighted) -> Values:
    """Return kappa with the squared distance of the scores as weight."""
    cells, n = draws.cells, draws.n
    v = centred(cells.values)
    x, y = v[cells.x], v[cells.y]
    chance = n * (draws.weights @ (x**2 + y**2)) - 2 * (draws.weights @ x) * (draws.weights @ y)
    seen = draws.weights @ (x - y) ** 2
    return 1 - divided(n * seen, chance, where=draws.some_vary)


def centred(values: Values) -> Values:
    """Move values round zero, where squares lose no digits."""
    return values - (values[0] + values[-1]) / 2 if len(values) else values


def points_of(scale: Scale) -> int | None:
    """Return how many points a scale has; a continuous one has none to count."""
    return None if scale.continuous else round(scale.high - scale.low) + 1


def ac1(draws: Weighted, points: int) -> Values:
    """Return ``(p - e) / (1 - e)`` with equal or not as weight."""
    seen = divided(draws.equal, draws.n, where=draws.n > 0)
    return beyond(seen, _spread(draws), points)


def ac2(draws: Weighted, points: int) -> Values:
    """Return the same with quadratic weights, ``1 - ((x - y) / (q - 1))^2``."""
    cells = draws.cells
    apart = (cells.values[cells.x] - cells.values[cells.y]) / (points - 1)
    seen = 1 - divided(draws.weights @ apart**2, draws.n, where=draws.n > 0)
    return beyond(seen, quadratic_total(points) / points * _spread(draws), points)


def quadratic_total(points: int) -> float:
    """Return the sum of the quadratic weights over all pairs of points."""
    return points**2 - points**2 * (points + 1) / (6 * (points - 1))


def beyond(seen: Values, spread: Values, points: int) -> Values:
    """Return agreement beyond the chance of ``spread / (q - 1)``."""
    chance = spread / (points - 1)
    return divided(seen - chance, 1 - chance, where=chance < 1)


def _spread(draws: Weighted) -> Values:
    share = (draws.left + draws.right) / (2 * np.maximum(draws.n, 1)[:, None])
    return np.sum(share * (1 - share), axis=1)


# Up to this many cells of a whole table, or pairs of scores, each draw of Kendall's tau is counted.
_TABLE: Final = 20_000
_PAIRS: Final = 1_500


def pearson(draws: Weighted) -> Values:
    """Return ``sum((x - mx)(y - my)) / sqrt(sum((x - mx)^2) sum((y - my)^2))``.

    Undefined where a rater gave one score only.
    """
    cells, weights, n = draws.cells, draws.weights, draws.n
    v = centred(cells.values)
    x, y = v[cells.x], v[cells.y]
    sx, sy = weights @ x, weights @ y
    above = n * (weights @ (x * y)) - sx * sy
    left, right = n * (weights @ x**2) - sx**2, n * (weights @ y**2) - sy**2
    return _ratio(above, left * right, draws)


def spearman(draws: Weighted) -> Values:
    """Return Pearson's correlation of the ranks; equal scores share the mean of their ranks."""
    cells, left, right = draws.cells, draws.left, draws.right
    middle = draws.n[:, None] / 2
    x, y = (np.cumsum(each, axis=1) - each / 2 - middle for each in (left, right))
    above = np.sum(draws.weights * x[:, cells.x] * y[:, cells.y], axis=1)
    below = np.sum(left * x**2, axis=1) * np.sum(right * y**2, axis=1)
    return _ratio(above, below, draws)


def kendall(draws: Weighted) -> Values | None:
    """Return tau-b, ``(P - Q) / sqrt((N - X)(N - Y))``.

    ``P`` and ``Q`` count the pairs of items that the raters order alike and oppositely, ``N`` all
    pairs, ``X`` and ``Y`` those with equal scores of the one and the other rater. ``None`` where
    there are too many different scores to count this for every draw.
    """
    cells, weights = draws.cells, draws.weights
    rows, x = np.unique(cells.x, return_inverse=True)
    columns, y = np.unique(cells.y, return_inverse=True)
    if len(rows) * len(columns) <= _TABLE:
        alike = _in_table(weights, x, y, (len(rows), len(columns)))
    elif len(cells.x) <= _PAIRS:
        signs = np.sign(x[:, None] - x) * np.sign(y[:, None] - y)
        alike = np.sum((weights @ signs.astype(np.float64)) * weights, axis=1) / 2
    else:
        return None
    left, right = ((draws.n**2 - np.sum(each**2, axis=1)) / 2 for each in (draws.left, draws.right))
    return _ratio(alike, left * right, draws)


def kendall_of_many(cells: Cells, level: float) -> tuple[float | None, Interval | None]:
    """Return tau-b of very many different scores, with the interval of Fieller and others.

    ``atanh(tau)`` has nearly the variance ``0.437 / (n - 4)``, which holds for many items with few
    equal scores; and only such come here.
    """
    tau = _tau(cells.x[cells.cell_of], cells.y[cells.cell_of])
    if tau is None or abs(tau) >= 1:
        return tau, None
    half = normal_quantile((1 + level) / 2) * math.sqrt(0.437 / (cells.n - 4))
    ends = [math.tanh(math.atanh(tau) + side * half) for side in (-1, 1)]
    return tau, Interval(low=ends[0], high=ends[1], level=level, method="Fieller")


def _tau(x: Codes, y: Codes) -> float | None:
    """Return tau-b by sorting (W. R. Knight, 1966), as ``P - Q = N - X - Y + XY - 2 Q``.

    ``XY`` counts the pairs that are equal for both raters. With the items in order of x, and of y
    where x is equal, ``Q`` counts the pairs whose y stand the wrong way round.
    """
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    pairs = len(x) * (len(x) - 1) // 2
    left, right = pairs - _equal_pairs(x), pairs - _equal_pairs(y)
    if not left or not right:
        return None
    both = _equal_pairs(x * (int(y.max()) + 1) + y)
    alike = left + right - pairs + both - 2 * _inversions(y)
    return max(-1.0, min(1.0, alike / math.sqrt(left * right)))


def _equal_pairs(codes: Codes) -> int:
    counts = np.unique(codes, return_counts=True)[1].astype(np.int64)
    return int(np.sum(counts * (counts - 1) // 2))


def _inversions(codes: Codes) -> int:
    """Return how many pairs stand in descending order, bit by bit from the highest.

    Two codes differ first in one bit. Among those that are equal above it, each zero is behind the
    ones that it should be before.
    """
    found = 0
    for bit in reversed(range(int(codes.max()).bit_length())):
        above = codes >> (bit + 1)
        ones = (codes >> bit) & 1
        before = np.cumsum(ones)
        starts = np.flatnonzero(np.diff(above, prepend=-1))
        group = np.cumsum(np.diff(above, prepend=above[:1]) > 0)
        within = before - (before - ones)[starts][group]
        found += int(np.sum(within[ones == 0]))
        codes = codes[np.argsort(codes >> bit, kind="stable")]
    return found


def _in_table(weights: Values, x: Codes, y: Codes, shape: tuple[int, int]) -> Values:
    """Return P - Q from whole tables: of each cell, what is above left of it and above right."""
    table = np.zeros((len(weights), *shape))
    table[:, x, y] = weights
    above = np.cumsum(table, axis=1) - table
    left = np.cumsum(above, axis=2)
    right = left[:, :, -1:] - left
    return np.sum(table * (left - above - right), axis=(1, 2))


def _ratio(above: Values, squared: Values, draws: Weighted) -> Values:
    below = np.sqrt(np.maximum(squared, 0))
    return np.clip(divided(above, below, where=draws.both_vary & (squared > 0)), -1, 1)
