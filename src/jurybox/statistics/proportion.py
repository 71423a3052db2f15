"""A share, and where it probably lies: Wilson's interval, also for rows that are not independent.

References: E. B. Wilson (1927), "Probable inference, the law of succession, and statistical
inference", Journal of the American Statistical Association 22, 209-212. Clusters: the effective
sample size and its degrees of freedom of E. L. Korn and B. I. Graubard (1998), "Confidence
intervals for proportions with small expected number of positive counts estimated from survey data",
Survey Methodology 24, 193-201, put into Wilson's interval as N. Dean and M. Pagano (2015),
"Evaluating confidence interval methods for binomial proportions in clustered surveys", Journal of
Survey Statistics and Methodology 3, 484-503, recommend.
"""

from collections.abc import Hashable, Sequence

import msgspec
import numpy as np

from jurybox.statistics.clusters import codes_of
from jurybox.statistics.distributions import normal_quantile, t_quantile
from jurybox.statistics.interval import Interval


class Proportion(msgspec.Struct, frozen=True, kw_only=True):
    """How many of ``n`` rows, and where the true share probably lies.

    Attributes:
        successes: how many.
        n: of how many rows.
        clusters: how many independent clusters these are, where they were given.
        effective_n: how many independent rows would tell as much.
        value: the share; ``None`` of no rows.
        interval: Wilson's; ``None`` of no rows and of a single cluster.
        reason: why one of the two is ``None``.

    """

    successes: int
    n: int
    clusters: int | None = None
    effective_n: float | None = None
    value: float | None = None
    interval: Interval | None = None
    reason: str | None = None


def wilson(successes: float, n: float, level: float = 0.95, *, z: float | None = None) -> Interval:
    """Return Wilson's interval of a share.

    ``(p + z^2/2n -+ z sqrt(p(1 - p)/n + z^2/4n^2)) / (1 + z^2/n)``, with ``p = successes / n`` and
    ``z`` the normal quantile of the level unless another one is given.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} is no share")
    z = normal_quantile((1 + level) / 2) if z is None else z
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    below = 1 + z * z / n
    # At the ends of the scale rounding would leave 1e-17 where there is a zero.
    low = 0.0 if successes == 0 else max(0.0, (centre - half) / below)
    high = 1.0 if successes == n else min(1.0, (centre + half) / below)
    return Interval(low=low, high=high, level=level, method="Wilson")


def proportion(
    outcomes: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Proportion:
    """Return the share of true outcomes with its interval.

    With clusters the variance of the share is ``m/(m - 1) sum(e^2) / n^2`` over the summed
    residuals ``e`` of the ``m`` clusters. As many independent rows as would have it are the
    effective n (never more than ``n``); it goes into Wilson's formula with Student's quantile of
    ``m - 1`` degrees. Where all outcomes are equal their dependence can't be seen; then each
    cluster counts as one row, as if its rows were copies.
    """
    y = np.asarray(outcomes, dtype=np.float64)
    n, successes = len(y), int(y.sum())
    if n == 0:
        return Proportion(successes=0, n=0, reason="there are no rows")
    p = successes / n
    if clusters is None:
        made = wilson(successes, n, level)
        return Proportion(successes=successes, n=n, effective_n=n, value=p, interval=made)
    codes, m = codes_of(clusters, n)
    if m == 1:
        why = "all rows belong to one cluster, which can't show how clusters differ"
        return Proportion(successes=successes, n=n, clusters=1, value=p, reason=why)
    effective = float(m)
    if 0 < successes < n:
        sums = np.bincount(codes, y - p, m)
        variance = m / (m - 1) * float(np.sum(sums**2)) / n**2
        effective = min(float(n), p * (1 - p) / variance) if variance else float(n)
    z = t_quantile((1 + level) / 2, m - 1)
    made = wilson(p * effective, effective, level, z=z)
    named = msgspec.structs.replace(made, method=f"Wilson, {m:,} clusters")
    return Proportion(
        successes=successes, n=n, clusters=m, effective_n=effective, value=p, interval=named
    )
