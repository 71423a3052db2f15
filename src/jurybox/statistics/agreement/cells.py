"""Two raters' scores as a table of counts, of which only the cells that occur are kept.

Every figure of a pair is a function of how often each pair of scores occurs. So a draw of items is
a row of weights for the cells, and a figure is computed for thousands of draws at once.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Codes = NDArray[np.intp]

# Beyond it a table of zeros and ones would fill the memory; counting draw by draw is slower.
_DENSE: Final = 4_000_000


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """The pairs of scores that occur.

    Attributes:
        values: every score that either rater gave, ascending.
        x: for each cell, the place of the first rater's score among ``values``.
        y: the same of the second rater.
        counts: how many items are in each cell.
        cell_of: the cell of each item.

    """

    values: Values
    x: Codes
    y: Codes
    counts: Values
    cell_of: Codes

    @property
    def n(self) -> int:
        """How many items both raters scored."""
        return len(self.cell_of)


def cells_of(a: Sequence[float] | Values, b: Sequence[float] | Values) -> Cells:
    """Count the pairs of scores that two raters gave to the same items, in the same order."""
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


class Weighted:
    """Cells with rows of weights: one row a draw, one column a cell."""

    def __init__(self, cells: Cells, weights: Values) -> None:
        """Take the weights; what several figures need is computed once."""
        self.cells = cells
        self.weights = weights
        self.n: Values = weights.sum(axis=1)

    @cached_property
    def left(self) -> Values:
        """How often the first rater gave each score, in each draw."""
        return margins(self.cells.x, len(self.cells.values), self.weights)

    @cached_property
    def right(self) -> Values:
        """The same of the second rater."""
        return margins(self.cells.y, len(self.cells.values), self.weights)

    @cached_property
    def equal(self) -> Values:
        """How many items have the same score, in each draw."""
        return self.weights @ (self.cells.x == self.cells.y).astype(np.float64)

    @cached_property
    def some_vary(self) -> NDArray[np.bool_]:
        """Whether there is more than one score among both raters'."""
        return np.count_nonzero(self.left + self.right, axis=1) > 1

    @cached_property
    def both_vary(self) -> NDArray[np.bool_]:
        """Whether each rater gave more than one score."""
        left, right = (np.count_nonzero(each, axis=1) for each in (self.left, self.right))
        return (left > 1) & (right > 1)


def margins(codes: Codes, size: int, weights: Values) -> Values:
    """Return how often each of ``size`` scores occurs in each draw."""
    if len(codes) * size <= _DENSE:
        member = np.zeros((len(codes), size))
        member[np.arange(len(codes)), codes] = 1
        return weights @ member
    return np.array([np.bincount(codes, each, size) for each in weights], dtype=np.float64)


def divided(above: Values, below: Values, *, where: NDArray[np.bool_]) -> Values:
    """Divide, and leave NaN where the figure is undefined."""
    result = np.full(above.shape, np.nan)
    np.divide(above, below, out=result, where=where)
    return result
