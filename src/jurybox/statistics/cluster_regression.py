"""Cluster-robust least squares and rank correlations.

References: J. G. MacKinnon, M. O. Nielsen and M. D. Webb (2023), "Fast and reliable jackknife and
bootstrap methods for cluster-robust inference", Journal of Applied Econometrics 38, 671-694: the
variance from leaving each cluster out (CV3), which is reliable with few clusters; C. Spearman
(1904), "The proof and measurement of association between two things", American Journal of
Psychology 15, 72-101; M. G. Kendall (1942), "Partial rank correlation", Biometrika 32, 277-283.
"""

from collections.abc import Hashable, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.intervals import Values, codes_of, t_quantile
from jurybox.statistics.jackknife import Patterns, estimates_of
from jurybox.statistics.pair_coefficients import Cells, WeightedCells, divided, spearman

_ROUNDING: Final = 1e-12
_SINGULAR: Final = 1e10

Numbers = Sequence[float] | Values


def coefficient(
    outcome: Numbers,
    columns: Sequence[Numbers],
    clusters: Sequence[Hashable],
    *,
    intercept: bool = True,
    level: float = 0.95,
) -> Estimate:
    """Return the coefficient of the first column, controlled for the other columns.

    It is ``b = (X'X)^-1 X'y``, where ``X`` includes an intercept unless ``intercept`` is false. Its
    variance is ``(m - 1)/m sum((b_g - b)^2)`` over the estimates ``b_g`` without each of the ``m``
    clusters (CV3), and its interval is ``b -+ t`` times the root of the variance, with ``m - 1``
    degrees of freedom.
    """
    y = np.asarray(outcome, dtype=np.float64)
    n = len(y)
    codes, m = codes_of(clusters, n)
    given = [np.asarray(each, dtype=np.float64) for each in columns]
    x = np.stack([*given, *([np.ones(n)] if intercept else [])], axis=1)
    if m <= x.shape[1]:
        return Estimate(value=None, n=n, reason=f"{m} samples are too few")
    if float(np.ptp(y)) <= _ROUNDING * max(1.0, float(np.max(np.abs(y)))):
        return Estimate(value=None, n=n, reason="all samples were judged the same")
    scale = np.sqrt(np.mean(x**2, axis=0))
    if not scale.all() or np.linalg.cond(x / scale) > _SINGULAR:
        return Estimate(value=None, n=n, reason="the samples don't differ in this")
    x = x / scale
    squares, products = np.zeros((m, x.shape[1], x.shape[1])), np.zeros((m, x.shape[1]))
    np.add.at(squares, codes, x[:, :, None] * x[:, None, :])
    np.add.at(products, codes, x * y[:, None])
    whole, crossed = squares.sum(axis=0), products.sum(axis=0)
    value = float(_first(whole[None], crossed[None])[0])
    try:
        without = _first(whole - squares, crossed - products)
    except np.linalg.LinAlgError:
        return Estimate(value=None, n=n, reason="the estimate depends on a single sample")
    error = float(((m - 1) / m * np.sum((without - value) ** 2)) ** 0.5)
    half = t_quantile((1 + level) / 2, m - 1) * error
    low, high = (value - half) / float(scale[0]), (value + half) / float(scale[0])
    method = f"t, jackknife over {m:,} clusters"
    made = Interval(low=low, high=high, level=level, method=method)
    return Estimate(value=value / float(scale[0]), n=n, interval=made)


def _first(squares: Values, products: Values) -> Values:
    """Return the first coefficient of each system of equations."""
    found = np.linalg.solve(squares, products[..., None])
    return found[:, 0, 0].astype(np.float64)


def rank_correlation(
    x: Numbers,
    y: Numbers,
    clusters: Sequence[Hashable],
    *,
    given: Numbers | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return Spearman's correlation of two columns, with its interval over clusters.

    If a third column is ``given``, it is the partial correlation of the ranks,
    ``(r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2))``: the correlation of the two columns at
    equal values of the third. Equal values share the mean of their ranks.
    """
    columns = [np.asarray(each, dtype=np.float64) for each in (x, y, given) if each is not None]
    n = len(columns[0])
    if not n:
        return Estimate(value=None, n=0, reason="there are no values")
    pairs = [_by_item(one, other) for one, other in combinations(columns, 2)]

    def correlation(weights: Values) -> Values:
        plain, *rest = [spearman(WeightedCells(each, weights)) for each in pairs]
        if not rest:
            return plain
        with_x, with_y = rest
        below = (1 - with_x**2) * (1 - with_y**2)
        root = np.sqrt(np.maximum(below, 0))
        return divided(plain - with_x * with_y, root, where=below > _ROUNDING)

    rows = Patterns(pattern_of=np.arange(n), count=n, informative=n, clusters=clusters, width=4 * n)
    why = "one of the two columns doesn't vary"
    return estimates_of({"": correlation}, np.asarray, rows, lambda _: why, level)[""]


def _by_item(x: Values, y: Values) -> Cells:
    """Return a cell for each item, since clusters are left out item by item."""
    values, codes = np.unique(np.concatenate([x, y]), return_inverse=True)
    one, other = np.split(codes.astype(np.intp), 2)
    return Cells(values=values, x=one, y=other, counts=np.ones(len(x)), cell_of=np.arange(len(x)))
