"""Rank correlation, also at equal values of a third thing, with an interval over clusters.

References: C. Spearman (1904), "The proof and measurement of association between two things",
American Journal of Psychology 15, 72-101; M. G. Kendall (1942), "Partial rank correlation",
Biometrika 32, 277-283.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.bootstrap import DEFAULT, Resampling, bca
from jurybox.statistics.clusters import codes_of
from jurybox.statistics.figure import Figure

Values = NDArray[np.float64]
Codes = NDArray[np.intp]

_SAME: Final = 1e-12
# Two thousand draws of 100,000 rows take a minute, and their interval is narrow anyway.
_MOST_ROWS: Final = 20_000_000
_FEWEST_DRAWS: Final = 400
_JACKKNIFED: Final = 500


def rank_correlation(
    x: Sequence[float] | Values,
    y: Sequence[float] | Values,
    clusters: Sequence[Hashable],
    *,
    given: Sequence[float] | Values | None = None,
    resampling: Resampling = DEFAULT,
) -> Figure:
    """Return Spearman's correlation of two columns, with the BCa interval over whole clusters.

    With a third column it is the partial correlation of the ranks,
    ``(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2))``: how the two go together where the third
    is equal. Equal values share the mean of their ranks, in every draw anew.
    """
    columns = [_coded(each) for each in ((x, y) if given is None else (x, y, given))]
    n = len(columns[0])
    codes, m = codes_of(clusters, n)
    value = _correlation(columns, np.ones(n))
    if math.isnan(value):
        return Figure(value=None, n=n, reason="one of the two doesn't vary")
    draws = min(resampling.resamples, max(_FEWEST_DRAWS, _MOST_ROWS // max(n, 1)))
    used = msgspec.structs.replace(resampling, resamples=draws)
    rng = np.random.default_rng(used.seed)
    drawn = np.empty(draws)
    for i in range(draws):
        counts = np.bincount(rng.integers(0, m, m), minlength=m)
        drawn[i] = _correlation(columns, counts[codes].astype(np.float64))
    groups = min(m, _JACKKNIFED)
    left_out = np.array(
        [_correlation(columns, (codes % groups != group).astype(float)) for group in range(groups)]
    )
    interval = bca(value, drawn, left_out, resampling=used, unit="clusters")
    reason = None if interval is not None else "it doesn't vary enough to tell how sure it is"
    return Figure(value=value, n=n, interval=interval, reason=reason)


def _coded(values: Sequence[float] | Values) -> Codes:
    return np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)[1].astype(np.intp)


def _correlation(columns: Sequence[Codes], weights: Values) -> float:
    """Return the correlation of rows that count so often; NaN where it is undefined."""
    ranks = [_ranks(codes, weights) for codes in columns]
    if any(each is None for each in ranks):
        return math.nan
    x, y, *rest = [each for each in ranks if each is not None]
    plain = float(np.sum(weights * x * y))
    if not rest:
        return plain
    with_x, with_y = (float(np.sum(weights * each * rest[0])) for each in (x, y))
    below = (1 - with_x**2) * (1 - with_y**2)
    return math.nan if below <= _SAME else (plain - with_x * with_y) / below**0.5


def _ranks(codes: Codes, weights: Values) -> Values | None:
    """Return the ranks, centred and of unit length; None where all are equal."""
    mass = np.bincount(codes, weights)
    middle = np.cumsum(mass) - mass / 2 - mass.sum() / 2
    length = float(np.sum(mass * middle**2)) ** 0.5
    return None if length <= _SAME * mass.sum() else (middle / length)[codes]
