"""A mean, and where it probably lies: Student's interval, over rows or clusters.

References: Student (1908), "The probable error of a mean", Biometrika 6, 1-25. Clusters: K.-Y.
Liang and S. L. Zeger (1986), "Longitudinal data analysis using generalized linear models",
Biometrika 73, 13-22, with the factor m/(m - 1) and m - 1 degrees of freedom for few clusters, as A.
C. Cameron and D. L. Miller (2015), "A practitioner's guide to cluster-robust inference", Journal of
Human Resources 50, 317-372, describe.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.clusters import codes_of
from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.interval import Interval

# What is left of nothing by rounding.
_NOTHING: Final = 1e-9


class Mean(msgspec.Struct, frozen=True, kw_only=True):
    """A mean and how sure it is.

    Attributes:
        n: how many values.
        clusters: how many independent clusters these are, where they were given.
        value: the mean; ``None`` of no values.
        sd: the standard deviation of the values, with ``n - 1``.
        error: the standard error of the mean.
        interval: Student's; ``None`` with fewer than two values or clusters, and where all values
            are the same, which tells how they vary as little as one value would.
        reason: why there is none.

    """

    n: int
    clusters: int | None = None
    value: float | None = None
    sd: float | None = None
    error: float | None = None
    interval: Interval | None = None
    reason: str | None = None


def mean_of(
    values: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Mean:
    """Return the mean with Student's interval ``mean -+ t * error``.

    The standard error is ``sd / sqrt(n)`` with ``n - 1`` degrees of freedom; with clusters it is
    the root of ``m/(m - 1) sum(e^2) / n^2`` over the summed residuals ``e`` of the ``m`` clusters,
    with ``m - 1`` degrees. Clusters of one row each give the same as no clusters.
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n == 0:
        return Mean(n=0, reason="there are no values")
    mean = float(x.mean())
    codes, m = (None, n) if clusters is None else codes_of(clusters, n)
    known = None if clusters is None else m
    if m == 1:
        one = "one value" if clusters is None else "one cluster"
        return Mean(n=n, clusters=known, value=mean, reason=f"{one} can't show how values vary")
    sd = float(x.std(ddof=1))
    sums = x - mean if codes is None else np.bincount(codes, x - mean, m)
    error = float((m / (m - 1) * np.sum(sums**2)) ** 0.5 / n)
    if float(np.ptp(x)) == 0:
        why = "all values are the same, so they don't show how values vary"
        return Mean(n=n, clusters=known, value=mean, sd=0.0, error=0.0, reason=why)
    if error <= _NOTHING * sd:
        why = "all clusters have the same mean, so they don't show how clusters vary"
        return Mean(n=n, clusters=known, value=mean, sd=sd, error=0.0, reason=why)
    half = t_quantile((1 + level) / 2, m - 1) * error
    method = "t" if clusters is None else f"t, {m:,} clusters"
    made = Interval(low=mean - half, high=mean + half, level=level, method=method)
    return Mean(n=n, clusters=known, value=mean, sd=sd, error=error, interval=made)
