"""Coefficients of two raters, each computed for many rows of weights at once.

Every coefficient depends only on how often each pair of scores occurs: a set of items is a row of
weights for the cells of the raters' table.

Cohen's kappa is ``1 - D / E``: ``D`` is the observed disagreement, ``E`` the disagreement of two
independent raters who give each score as often as these two. Disagreeing costs 1 (plain), the
distance between the two scores (linear) or its square (quadratic). Distances are those of the
declared scale: even if no rater gave a 3, a 2 and a 4 are two apart. The weighted kappas also work
on a continuous scale, where the quadratic one is Lin's concordance coefficient.

Correlations measure whether the raters' scores rise and fall together, not whether they are equal.

References: J. Cohen (1960), "A coefficient of agreement for nominal scales", Educational and
Psychological Measurement 20, 37-46; J. Cohen (1968), "Weighted kappa", Psychological Bulletin 70,
213-220; L. I. Lin (1989), "A concordance correlation coefficient to evaluate reproducibility",
Biometrics 45, 255-268; K. Pearson (1895), Proceedings of the Royal Society 58, 240-242; C. Spearman
(1904), "The proof and measurement of association between two things", American Journal of
Psychology 15, 72-101; M. G. Kendall (1945), "The treatment of ties in ranking problems", Biometrika
33, 239-251.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.intervals import Codes, Values

MOST_CELLS: Final = 4_000
"""The maximum number of cells for Kendall's tau, which compares all pairs of cells."""


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """The distinct pairs of scores: their indexes in ``values``, and their counts."""

    values: Values  # every score that either rater gave, ascending
    x: Codes
    y: Codes
    counts: Values
    cell_of: Codes  # the cell of each item

    @property
    def n(self) -> int:
        """How many items both raters scored."""
        return len(self.cell_of)


def cells_of(a: Sequence[float] | Values, b: Sequence[float] | Values) -> Cells:
    """Count pairs of scores; ``a`` and ``b`` are two raters' scores of the same items in order."""
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.shape != right.shape or left.ndim != 1:
        raise ValueError("the raters' scores must be two rows of the same length")
    values, codes = np.unique(np.concatenate([left, right]), return_inverse=True)
    x, y = codes[: len(left)], codes[len(left) :]
    size = max(len(values), 1)
    pairs, cell_of, counts = np.unique(x * size + y, return_inverse=True, return_counts=True)
    return Cells(
        values=values,
        x=(pairs // size).astype(np.intp),
        y=(pairs % size).astype(np.intp),
        counts=counts.astype(np.float64),
        cell_of=cell_of.astype(np.intp),
    )


class WeightedCells:
    """Cells with a row of weights per set of items."""

    def __init__(self, cells: Cells, weights: Values) -> None:
        """Set the weights; shared intermediate values are computed once."""
        self.cells = cells
        self.weights = weights
        self.n: Values = weights.sum(axis=1)

    @cached_property
    def left(self) -> Values:
        """How often the first rater gave each score, in each row."""
        return margins(self.cells.x, len(self.cells.values), self.weights)

    @cached_property
    def right(self) -> Values:
        """How often the second rater gave each score, in each row."""
        return margins(self.cells.y, len(self.cells.values), self.weights)

    @cached_property
    def equal(self) -> Values:
        """How many items have the same score, in each row."""
        return self.weights @ (self.cells.x == self.cells.y).astype(np.float64)

    @cached_property
    def some_vary(self) -> NDArray[np.bool_]:
        """Whether the two raters together gave more than one distinct score."""
        return np.count_nonzero(self.left + self.right, axis=1) > 1

    @cached_property
    def both_vary(self) -> NDArray[np.bool_]:
        """Whether each rater gave more than one distinct score."""
        left, right = (np.count_nonzero(each, axis=1) for each in (self.left, self.right))
        return (left > 1) & (right > 1)


def margins(codes: Codes, size: int, weights: Values) -> Values:
    """Return how often each of ``size`` codes occurs in each row."""
    rows = len(weights)
    cells = codes + size * np.arange(rows)[:, None]
    found = np.bincount(cells.ravel(), weights.ravel(), rows * size)
    return np.asarray(found, dtype=np.float64).reshape(rows, size)


def divided(above: Values, below: Values, *, where: NDArray[np.bool_]) -> Values:
    """Divide; the result is NaN where undefined."""
    result = np.full(above.shape, np.nan)
    np.divide(above, below, out=result, where=where)
    return result


def centered(values: Values) -> Values:
    """Center values on zero, so that squares lose no digits."""
    return values - (values[0] + values[-1]) / 2 if len(values) else values


def exact(rows: WeightedCells) -> Values:
    """Return the share of items with the same score."""
    return divided(rows.equal, rows.n, where=rows.n > 0)


def kappa(rows: WeightedCells) -> Values:
    """Return plain kappa, ``(p - e) / (1 - e)``; undefined if all scores are the same."""
    # Uses counts instead of shares, because integers are exact and 1 - e can be exactly zero.
    chance = np.sum(rows.left * rows.right, axis=1)
    n = rows.n
    return divided(n * rows.equal - chance, n**2 - chance, where=rows.some_vary)


def kappa_linear(rows: WeightedCells) -> Values:
    """Return kappa with the distance between the scores as weight.

    The mean distance of two independent scores is ``sum(gap * (F (1 - G) + G (1 - F)))`` over the
    gaps between neighboring scores, with ``F`` and ``G`` the shares at or below them.
    """
    cells, whole = rows.cells, rows.n[:, None]
    below, also = (np.cumsum(each, axis=1)[:, :-1] for each in (rows.left, rows.right))
    chance = (below * (whole - also) + also * (whole - below)) @ np.diff(cells.values)
    seen = rows.weights @ np.abs(cells.values[cells.x] - cells.values[cells.y])
    return 1 - divided(rows.n * seen, chance, where=rows.some_vary)


def kappa_quadratic(rows: WeightedCells) -> Values:
    """Return kappa with the squared distance between the scores as weight."""
    cells, n = rows.cells, rows.n
    v = centered(cells.values)
    x, y = v[cells.x], v[cells.y]
    chance = n * (rows.weights @ (x**2 + y**2)) - 2 * (rows.weights @ x) * (rows.weights @ y)
    seen = rows.weights @ (x - y) ** 2
    return 1 - divided(n * seen, chance, where=rows.some_vary)


def pearson(rows: WeightedCells) -> Values:
    """Return ``sum((x - mx)(y - my)) / sqrt(sum((x - mx)^2) sum((y - my)^2))``."""
    cells, weights, n = rows.cells, rows.weights, rows.n
    v = centered(cells.values)
    x, y = v[cells.x], v[cells.y]
    sx, sy = weights @ x, weights @ y
    above = n * (weights @ (x * y)) - sx * sy
    left, right = n * (weights @ x**2) - sx**2, n * (weights @ y**2) - sy**2
    return _ratio(above, left * right, rows)


def spearman(rows: WeightedCells) -> Values:
    """Return Pearson's correlation of the ranks; equal scores share the mean of their ranks."""
    cells, left, right = rows.cells, rows.left, rows.right
    middle = rows.n[:, None] / 2
    x, y = (np.cumsum(each, axis=1) - each / 2 - middle for each in (left, right))
    above = np.sum(rows.weights * x[:, cells.x] * y[:, cells.y], axis=1)
    below = np.sum(left * x**2, axis=1) * np.sum(right * y**2, axis=1)
    return _ratio(above, below, rows)


def kendall(rows: WeightedCells) -> Values:
    """Return tau-b, ``(P - Q) / sqrt((N - X)(N - Y))``.

    ``P`` counts the pairs of items that the raters order alike, ``Q`` those that they order
    oppositely, ``N`` all pairs, and ``X`` and ``Y`` the pairs to which the first and the second
    rater gave equal scores.
    """
    cells, weights = rows.cells, rows.weights
    signs = np.sign(cells.x[:, None] - cells.x) * np.sign(cells.y[:, None] - cells.y)
    alike = np.sum((weights @ signs.astype(np.float64)) * weights, axis=1) / 2
    left, right = ((rows.n**2 - np.sum(each**2, axis=1)) / 2 for each in (rows.left, rows.right))
    return _ratio(alike, left * right, rows)


def _ratio(above: Values, squared: Values, rows: WeightedCells) -> Values:
    below = np.sqrt(np.maximum(squared, 0))
    return np.clip(divided(above, below, where=rows.both_vary & (squared > 0)), -1, 1)
