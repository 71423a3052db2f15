"""Ranks of the sizes of differences, for the test and for the effect size that rest on them."""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def signed_ranks(differences: Values) -> tuple[Values, NDArray[np.bool_]]:
    """Return the ranks of all differences but zeros, by size, and which of them are positive.

    Equal sizes share the mean of the ranks that they take up.
    """
    moved = differences[differences != 0]
    _, where, counts = np.unique(np.abs(moved), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared = (last - counts + 1 + last) / 2
    return shared[where].astype(np.float64), moved > 0
