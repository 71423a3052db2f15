"""Means and shares with their intervals, over rows or over clusters of rows.

References: Student (1908), "The probable error of a mean", Biometrika 6, 1-25. Clusters: K.-Y.
Liang and S. L. Zeger (1986), "Longitudinal data analysis using generalized linear models",
Biometrika 73, 13-22, with the factor m/(m - 1) and m - 1 degrees of freedom for few clusters, as A.
C. Cameron and D. L. Miller (2015), "A practitioner's guide to cluster-robust inference", Journal of
Human Resources 50, 317-372, describe. Shares: E. B. Wilson (1927), "Probable inference, the law of
succession, and statistical inference", Journal of the American Statistical Association 22, 209-212.
Clusters of bounded values: the effective sample size and its degrees of freedom of E. L. Korn and
B. I. Graubard (1998), "Confidence intervals for proportions with small expected number of positive
counts estimated from survey data", Survey Methodology 24, 193-201, put into Wilson's interval as N.
Dean and M. Pagano (2015), "Evaluating confidence interval methods for binomial proportions in
clustered surveys", Journal of Survey Statistics and Methodology 3, 484-503, recommend.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.distributions import beta_quantile, normal_cdf, normal_quantile, t_quantile
from jurybox.statistics.estimates import Estimate, Interval

Values = NDArray[np.float64]
Codes = NDArray[np.intp]
Ends = tuple[float, float]
"""The lowest and the highest value that is possible."""

_ROUNDING: Final = 1e-9
# With parameters above this, a beta distribution is normal to four digits.
_NEARLY_NORMAL: Final = 10_000.0


def codes_of(clusters: Sequence[Hashable], n: int) -> tuple[Codes, int]:
    """Number the clusters of ``n`` rows in the order in which they appear; return how many, too."""
    if len(clusters) != n:
        raise ValueError(f"{len(clusters)} clusters are named for {n} rows")
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(cluster, len(numbers)) for cluster in clusters]
    return np.array(codes, dtype=np.intp), len(numbers)


def mean_of(
    values: Sequence[float] | Values,
    *,
    clusters: Sequence[Hashable] | None = None,
    ends: Ends | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the mean with its interval: `bounded_mean` between ``ends``, else Student's.

    Student's is ``mean -+ t * error``, where the standard error is ``sd / sqrt(n)`` with ``n - 1``
    degrees of freedom; with clusters it is the root of ``m/(m - 1) sum(e^2) / n^2`` over the summed
    residuals ``e`` of the ``m`` clusters, with ``m - 1`` degrees. It has no interval where all
    values are the same, which shows as little of how they vary as one value would.
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
    among = "" if clusters is None else f", {m:,} clusters"
    if ends is not None:
        rows = _effective_rows(x, codes, m)
        made = bounded_mean(mean, float(x.var()), rows, ends, degrees=m - 1, level=level)
        named = msgspec.structs.replace(made, method=f"{made.method}{among}")
        return Estimate(value=mean, n=n, interval=named)
    if float(np.ptp(x)) == 0:
        why = "all values are the same, so they don't show how values vary"
        return Estimate(value=mean, n=n, reason=why)
    error = standard_error(x, codes, m)
    if not error:
        why = "all clusters have the same mean, so they don't show how clusters vary"
        return Estimate(value=mean, n=n, reason=why)
    half = t_quantile((1 + level) / 2, m - 1) * error
    made = Interval(low=mean - half, high=mean + half, level=level, method=f"t{among}")
    return Estimate(value=mean, n=n, interval=made)


def bounded_mean(
    mean: float, variance: float, n: float, ends: Ends, *, degrees: float, level: float = 0.95
) -> Interval:
    """Return the interval of the mean of ``n`` values that can't lie beyond ``ends``.

    Half a value at either end is added to the data, as Jeffreys does for shares, so that a mean
    near an end stays uncertain on the side where values are rare. Of the data so extended, each
    value's weight is uncertain as in the Bayesian bootstrap; the mean has then nearly a beta
    distribution, with the parameters that its mean and variance give. Its quantiles are those of
    Student's t on ``degrees``. ``variance`` is about the mean, over ``n``.

    References: L. D. Brown, T. T. Cai and A. DasGupta (2001), "Interval estimation for a binomial
    proportion", Statistical Science 16, 101-133; D. B. Rubin (1981), "The Bayesian bootstrap",
    Annals of Statistics 9, 130-134.
    """
    low, width = ends[0], ends[1] - ends[0]
    at = min(1.0, max(0.0, (mean - low) / width))
    mass = n + 1
    center = (n * at + 0.5) / mass
    square = (n * (variance / width**2 + at**2) + 0.5) / mass
    spread = (square - center**2) / (mass + 1)
    t = t_quantile((1 + level) / 2, degrees)
    weight = center * (1 - center) / spread - 1
    a, b = center * weight, (1 - center) * weight
    if min(a, b) > _NEARLY_NORMAL:
        lower, upper = center - t * spread**0.5, center + t * spread**0.5
    else:
        lower, upper = beta_quantile(normal_cdf(-t), a, b), beta_quantile(normal_cdf(t), a, b)
    return Interval(
        # At an end of the scale, where values are on one side only, it is open to that end.
        low=low + width * max(0.0, min(lower, at)),
        high=low + width * min(1.0, max(upper, at)),
        level=level,
        method="beta",
    )


def standard_error(x: Values, codes: Codes | None, m: int) -> float:
    """Return the standard error of the mean, from ``m`` rows or clusters; 0 if all are alike."""
    apart = x - x.mean()
    sums = apart if codes is None else np.bincount(codes, apart, m)
    error = float((m / (m - 1) * np.sum(sums**2)) ** 0.5 / len(x))
    return 0.0 if error <= _ROUNDING * float(x.std(ddof=1)) else error


def _effective_rows(x: Values, codes: Codes | None, m: int) -> float:
    """Return how many independent rows have a mean as uncertain as that of clustered ones.

    Where all values are equal their dependence can't be seen; then each cluster counts as one row.
    """
    if codes is None:
        return float(len(x))
    if float(np.ptp(x)) == 0:
        return float(m)
    error = standard_error(x, codes, m)
    return min(float(len(x)), max(1.0, float(x.var()) / error**2)) if error else float(len(x))


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


def proportion(
    outcomes: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the share of true outcomes with Wilson's interval; a single cluster has none.

    With clusters the number of rows is that of independent ones with the same uncertainty, and
    Student's quantile of ``m - 1`` degrees replaces the normal one.
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
    rows = _effective_rows(y, codes, m)
    made = wilson(p * rows, rows, level, z=t_quantile((1 + level) / 2, m - 1))
    named = msgspec.structs.replace(made, method=f"Wilson, {m:,} clusters")
    return Estimate(value=p, n=n, interval=named)
