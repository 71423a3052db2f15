"""Means and shares with their intervals, over rows or over clusters of rows."""

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.estimates import Estimate, Interval

_NORMAL: Final = NormalDist()
# exp(-700) is close to the smallest float.
_FARTHEST: Final = 700.0
_MOST_STEPS: Final = 200
_EPSILON: Final = 1e-15
_TINY: Final = 1e-300
_MOST_TERMS: Final = 100_000


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution at ``p``."""
    if 0 < p < 1:
        return _NORMAL.inv_cdf(p)
    return math.inf if p > 0 else -math.inf


def normal_cdf(x: float) -> float:
    """Return the probability that a standard normal variable is at most ``x``."""
    return normal_tail(-x)


def normal_tail(x: float) -> float:
    """Return the probability that a standard normal variable is at least ``x``."""
    # Not 1 - cdf, which rounds to zero if x is above 8.3.
    return math.erfc(x / math.sqrt(2)) / 2


# Cached, because the metrics of a table often share level and degrees.
@lru_cache(maxsize=256)
def t_quantile(p: float, df: float) -> float:
    """Return the quantile of Student's t with ``df`` degrees at ``p``.

    ``df / (df + t^2)`` has a beta distribution with the parameters ``df / 2`` and ``1/2``.
    """
    tail = min(p, 1 - p)
    if tail <= 0:
        return math.inf if p > 0 else -math.inf
    t = math.sqrt(df) * math.exp(-_log_odds_below(2 * tail, df / 2, 0.5) / 2)
    return -t if p == tail else t


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most ``k`` successes in ``n`` trials."""
    if not 0 <= k < n:
        return float(k >= n)
    return incomplete_beta(n - k, k + 1, 1 - p, p)


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the quantile of a beta distribution at ``p``."""
    if not 0 < p < 1:
        return float(p > 0)
    return 1 / (1 + math.exp(-_log_odds_below(p, a, b)))


def incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """Return the probability that a beta variable is at most ``x``; ``y`` is ``1 - x``.

    The continued fraction is computed below the mean, where it converges quickly: W. H. Press et
    al. (2007), "Numerical Recipes", 3rd edition, section 6.4.
    """
    if x <= 0 or y <= 0:
        return float(y <= 0)
    mirrored = x > (a + 1) / (a + b + 2)
    if mirrored:
        a, b, x, y = b, a, y, x
    log_density = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_density += a * math.log(x) + b * math.log(y)
    share = math.exp(log_density) * _beta_fraction(a, b, x) / a
    return 1 - share if mirrored else share


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    above = 1.0
    below = value = 1 / ((1 - (a + b) * x / (a + 1)) or _TINY)
    for m in range(1, _MOST_TERMS):
        at = a + 2 * m
        even = m * (b - m) * x / ((at - 1) * at)
        odd = -(a + m) * (a + b + m) * x / (at * (at + 1))
        factor = 1.0
        for coefficient in (even, odd):
            below = 1 / ((1 + coefficient * below) or _TINY)
            above = (1 + coefficient / above) or _TINY
            factor *= above * below
        value *= factor
        if abs(factor - 1) < _EPSILON:
            break
    return value


def _log_odds_below(p: float, a: float, b: float) -> float:
    """Return the log-odds of the quantile of a beta distribution at ``p``.

    Uses Newton's method, or bisection if a Newton step leaves the bracket. Log-odds keep full
    precision at both ends of the distribution.
    """
    low, high = -_FARTHEST, _FARTHEST
    at = math.log(a / b)
    constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    for _ in range(_MOST_STEPS):
        x, y = 1 / (1 + math.exp(-at)), 1 / (1 + math.exp(at))
        beyond = incomplete_beta(a, b, x, y) - p
        low, high = (low, at) if beyond > 0 else (at, high)
        slope = math.exp(constant + a * math.log(x) + b * math.log(y))
        step = at - beyond / slope if slope > _TINY else math.inf
        after = step if low < step < high else (low + high) / 2
        if abs(after - at) <= _EPSILON * max(1.0, abs(at)):
            return after
        at = after
    return at


Values = NDArray[np.float64]
Codes = NDArray[np.intp]
Ends = tuple[float, float]
"""The lowest and the highest possible value."""

_ROUNDING: Final = 1e-9


def codes_of(clusters: Sequence[Hashable], n: int) -> tuple[Codes, int]:
    """Number the clusters of ``n`` rows in order of appearance; also return their count."""
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
    """Return the mean with its interval: `bounded_mean` if ``ends`` are given, else Student's.

    Student's is ``mean -+ t * error``, where the standard error is ``sd / sqrt(n)`` with ``n - 1``
    degrees of freedom; with clusters it is the root of ``m/(m - 1) sum(e^2) / n^2`` over the summed
    residuals ``e`` of the ``m`` clusters, with ``m - 1`` degrees. Without ``ends``, there is no
    interval if all values are the same, since they show no variance.
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
    """Return the interval of the mean of ``n`` values that can't lie outside ``ends``.

    Half a value at each end is added to the data, as in Jeffreys' interval, so that a mean near an
    end stays uncertain. With random weights as in the Bayesian bootstrap, the mean then has
    approximately a beta distribution, whose parameters follow from the mean and variance. The ends
    of the interval are its quantiles at the probabilities ``Phi(-t)`` and ``Phi(t)``, where ``t``
    is Student's quantile with ``degrees`` degrees of freedom.
    ``variance`` is the sum of squares about the mean, divided by ``n``.

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
    lower, upper = beta_quantile(normal_cdf(-t), a, b), beta_quantile(normal_cdf(t), a, b)
    return Interval(
        # The interval includes the mean, even at an end of the scale.
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
    """Return the number of independent rows with the same uncertainty as the clustered ones.

    If all values are equal, each cluster counts as one row.
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
    ``z`` the normal quantile of the level, unless a different one is given.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} of {n} isn't a share")
    z = normal_quantile((1 + level) / 2) if z is None else z
    p = successes / n
    center = p + z * z / (2 * n)
    half = z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
    below = 1 + z * z / n
    # Rounding errors at the ends of the scale would leave 1e-17 instead of 0.
    low = 0.0 if successes == 0 else max(0.0, (center - half) / below)
    high = 1.0 if successes == n else min(1.0, (center + half) / below)
    return Interval(low=low, high=high, level=level, method="Wilson")


def proportion(
    outcomes: Sequence[bool],
    *,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return the share of true outcomes with Wilson's interval; one cluster has no interval.

    With ``m`` clusters, the number of rows is replaced by the number of independent rows with the
    same uncertainty, and the normal quantile by Student's with ``m - 1`` degrees of freedom.
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
