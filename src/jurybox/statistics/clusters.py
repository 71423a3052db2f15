"""Rows that belong together: several of one conversation are not independent."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray


def codes_of(clusters: Sequence[Hashable], n: int) -> tuple[NDArray[np.intp], int]:
    """Number the clusters of ``n`` rows in the order in which they come; return how many, too."""
    if len(clusters) != n:
        raise ValueError(f"{len(clusters)} clusters are named for {n} rows")
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    return np.array(codes, dtype=np.intp), len(numbers)
