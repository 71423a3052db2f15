"""Least squares over clusters: how much a score changes with one thing at equal others.

References: J. G. MacKinnon, M. O. Nielsen and M. D. Webb (2023), "Fast and reliable jackknife and
bootstrap methods for cluster-robust inference", Journal of Applied Econometrics 38, 671-694: the
variance from leaving each cluster out (CV3), which is reliable with few clusters.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Codes, Values, codes_of

_ROUNDING: Final = 1e-12
_SINGULAR: Final = 1e10


def coefficient(
    outcome: Sequence[float] | Values,
    columns: Sequence[Sequence[float] | Values],
    clusters: Sequence[Hashable],
    *,
    intercept: bool = True,
    level: float = 0.95,
) -> Estimate:
    """Return how much the outcome rises with one unit of the first column, at equal others.

    ``b = (X'X)^-1 X'y`` with an intercept among the columns unless it is left out. Its variance is
    ``(m - 1)/m sum((b_g - b)^2)`` over the estimates ``b_g`` without each of the ``m`` clusters,
    its interval ``b -+ t`` times the root of that, with ``m - 1`` degrees of freedom.
    """
    y = np.asarray(outcome, dtype=np.float64)
    n = len(y)
    codes, m = codes_of(clusters, n)
    given = [np.asarray(each, dtype=np.float64) for each in columns]
    x = np.stack([*given, *([np.ones(n)] if intercept else [])], axis=1)
    if m <= x.shape[1]:
        return Estimate(value=None, n=n, reason=f"{m} samples are too few")
    if float(np.ptp(y)) <= _ROUNDING * max(1.0, float(np.max(np.abs(y)))):
        return Estimate(value=None, n=n, reason="all of them were judged the same")
    scale = np.sqrt(np.mean(x**2, axis=0))
    if not scale.all() or np.linalg.cond(x / scale) > _SINGULAR:
        return Estimate(value=None, n=n, reason="they don't differ in it")
    squares, products = _sums(x / scale, y, codes, m)
    whole, crossed = squares.sum(axis=0), products.sum(axis=0)
    value = float(_first(whole[None], crossed[None])[0])
    try:
        without = _first(whole - squares, crossed - products)
    except np.linalg.LinAlgError:
        return Estimate(value=None, n=n, reason="it depends on a single sample")
    error = float(((m - 1) / m * np.sum((without - value) ** 2)) ** 0.5)
    half = t_quantile((1 + level) / 2, m - 1) * error
    unit = float(scale[0])
    low, high = (value - half) / unit, (value + half) / unit
    method = f"t, jackknife over {m:,} clusters"
    made = Interval(low=low, high=high, level=level, method=method)
    return Estimate(value=value / unit, n=n, interval=made)


def _first(squares: Values, products: Values) -> Values:
    """Return the first coefficient of each system of equations."""
    found = np.linalg.solve(squares, products[..., None])
    return found[:, 0, 0].astype(np.float64)


def _sums(x: Values, y: Values, codes: Codes, m: int) -> tuple[Values, Values]:
    """Return X'X and X'y of every cluster."""
    k = x.shape[1]
    squares = np.empty((m, k, k))
    products = np.empty((m, k))
    for i in range(k):
        products[:, i] = np.bincount(codes, x[:, i] * y, m)
        for j in range(i, k):
            squares[:, i, j] = squares[:, j, i] = np.bincount(codes, x[:, i] * x[:, j], m)
    return squares, products
