"""Means and shares with their intervals, over rows or over clusters of rows.

References: Student (1908), "The probable error of a mean", Biometrika 6, 1-25. Clusters: K.-Y.
Liang and S. L. Zeger (1986), "Longitudinal data analysis using generalized linear models",
Biometrika 73, 13-22, with the factor m/(m - 1) and m - 1 degrees of freedom for few clusters, as A.
C. Cameron and D. L. Miller (2015), "A practitioner's guide to cluster-robust inference", Journal of
Human Resources 50, 317-372, describe. Shares: E. B. Wilson (1927), "Probable inference, the law of
succession, and statistical inference", Journal of the American Statistical Association 22, 209-212.
Shares over clusters: the effective sample size and its degrees of freedom of E. L. Korn and B. I.
Graubard (1998), "Confidence intervals for proportions with small expected number of positive counts
estimated from survey data", Survey Methodology 24, 193-201, put into Wilson's interval as N. Dean
and M. Pagano (2015), "Evaluating confidence interval methods for binomial proportions in clustered
surveys", Journal of Survey Statistics and Methodology 3, 484-503, recommend.
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.distributions import beta_quantile, normal_quantile, t_quantile
from jurybox.statistics.estimates import Estimate, Interval

Values = NDArray[np.float64]
Codes = NDArray[np.intp]

_ROUNDING: Final = 1e-9


def codes_of(clusters: Sequence[Hashable], n: int) -> tuple[Codes, int]:
    """Number the clusters of ``n`` rows in the order in which they appear; return how many, too."""
    if len(clusters) != n:
        raise ValueError(f"{len(clusters)} clusters are named for {n} rows")
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    return np.array(codes, dtype=np.intp), len(numbers)


def mean_of(
    values: Sequence[float],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean with Student's interval ``mean -+ t * error``.

    There is no interval with fewer than two values or clusters, nor where all values are the same,
    which shows as little of how they vary as one value would.

    The standard error is ``sd / sqrt(n)`` with ``n - 1`` degrees of freedom; with clusters it is
    the root of ``m/(m - 1) sum(e^2) / n^2`` over the summed residuals ``e`` of the ``m`` clusters,
    with ``m - 1`` degrees. Clusters of one row each give the same as no clusters.
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n == 0:
        return Estimate(value=None, n=0, reason="there are no values")
    mean = float(x.mean())
    codes, m = (None, n) if clusters is None else codes_of(clusters, n)
    if m == 1:
        one = "one value" if clusters is None else "one cluster"
        return Estimate(value=mean, n=n, reason=f"{one} can't show how values vary")
    sums = x - mean if codes is None else np.bincount(codes, x - mean, m)
    error = float((m / (m - 1) * np.sum(sums**2)) ** 0.5 / n)
    if float(np.ptp(x)) == 0:
        why = "all values are the same, so they don't show how values vary"
        return Estimate(value=mean, n=n, reason=why)
    if error <= _ROUNDING * float(x.std(ddof=1)):
        why = "all clusters have the same mean, so they don't show how clusters vary"
        return Estimate(value=mean, n=n, reason=why)
    half = t_quantile((1 + level) / 2, m - 1) * error
    method = "t" if clusters is None else f"t, {m:,} clusters"
    made = Interval(low=mean - half, high=mean + half, level=level, method=method)
    return Estimate(value=mean, n=n, interval=made)


def wilson(successes: float, n: float, level: float = 0.95, *, z: float | None = None) -> Interval:
    """Return Wilson's interval of a share.

    ``(p + z^2/2n -+ z sqrt(p(1 - p)/n + z^2/4n^2)) / (1 + z^2/n)``, with ``p = successes / n`` and
    ``z`` the normal quantile of the level unless another one is given.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is no share")
    z = normal_quantile((1 + level) / 2) if z is None else z
    p = successes / n
    center = p + z * z / (2 * n)
    half = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    below = 1 + z * z / n
    # At the ends of the scale rounding would leave 1e-17 where there is a zero.
    low = 0.0 if successes == 0 else max(0.0, (center - half) / below)
    high = 1.0 if successes == n else min(1.0, (center + half) / below)
    return Interval(low=low, high=high, level=level, method="Wilson")


@lru_cache(maxsize=1024)
def jeffreys(successes: float, n: float, level: float = 0.95) -> Interval:
    """Return Jeffreys' interval of a share, for rates that enter another interval.

    Its ends are quantiles of the beta distribution with ``successes + 1/2`` and
    ``n - successes + 1/2``; 0 and 1 where there is no success or nothing else.

    Reference: L. D. Brown, T. T. Cai and A. DasGupta (2001), "Interval estimation for a binomial
    proportion", Statistical Science 16, 101-133.
    """
    a, b = successes + 0.5, n - successes + 0.5
    low = beta_quantile((1 - level) / 2, a, b) if successes else 0.0
    high = beta_quantile((1 + level) / 2, a, b) if successes < n else 1.0
    return Interval(low=low, high=high, level=level, method="Jeffreys")


def proportion(
    outcomes: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the share of true outcomes with Wilson's interval; a single cluster has none.

    With clusters the variance of the share is ``m/(m - 1) sum(e^2) / n^2`` over the summed
    residuals ``e`` of the ``m`` clusters. The effective n is the number of independent rows with
    that variance (never more than ``n``); it enters Wilson's formula with Student's quantile of
    ``m - 1`` degrees. Where all outcomes are equal their dependence can't be seen; then each
    cluster counts as one row.
    """
    y = np.asarray(outcomes, dtype=np.float64)
    n, successes = len(y), int(y.sum())
    if n == 0:
        return Estimate(value=None, n=0, reason="there are no rows")
    p = successes / n
    if clusters is None:
        return Estimate(value=p, n=n, interval=wilson(successes, n, level))
    codes, m = codes_of(clusters, n)
    if m == 1:
        why = "all rows belong to one cluster, which can't show how clusters differ"
        return Estimate(value=p, n=n, reason=why)
    effective = float(m)
    if 0 < successes < n:
        sums = np.bincount(codes, y - p, m)
        variance = m / (m - 1) * float(np.sum(sums**2)) / n**2
        effective = min(float(n), p * (1 - p) / variance) if variance else float(n)
    z = t_quantile((1 + level) / 2, m - 1)
    made = wilson(p * effective, effective, level, z=z)
    named = msgspec.structs.replace(made, method=f"Wilson, {m:,} clusters")
    return Estimate(value=p, n=n, interval=named)
