"""Bias-corrected and accelerated (BCa) bootstrap intervals.

BCa takes other quantiles of the resampled values than 2.5% and 97.5%, namely those that make up for
a bias of the statistic (``z0``) and for a spread that changes with its value (``a``).

Reference: B. Efron (1987), "Better bootstrap confidence intervals", Journal of the American
Statistical Association 82, 171-185; B. Efron and R. Tibshirani (1993), "An Introduction to the
Bootstrap", chapter 14. Clusters: A. C. Davison and D. V. Hinkley (1997), "Bootstrap Methods and
their Application", section 3.8.
"""

from typing import Final

import msgspec
import numpy as np

from jurybox.statistics.distributions import normal_cdf, normal_quantile
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import Values

# Statistics of the same rows in another order differ in the last digits.
_SAME: Final = 1e-12
# With more undefined draws than this, the defined ones no longer represent the statistic.
_UNDEFINED: Final = 0.05


class Resampling(msgspec.Struct, frozen=True, kw_only=True):
    """How often data are drawn anew, with which seed, and the level of the interval."""

    resamples: int = 2000
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        """Refuse values that give no interval."""
        if self.resamples < 1:
            raise ValueError(f"{self.resamples} resamples; at least 1 is needed")
        if not 0 < self.level < 1:
            raise ValueError(f"the level {self.level} is not between 0 and 1")


DEFAULT: Final = Resampling()


def bca(
    value: float,
    drawn: Values,
    left_out: Values,
    *,
    weights: Values | None = None,
    resampling: Resampling = DEFAULT,
    unit: str = "rows",
) -> Interval | None:
    """Return the BCa interval of a statistic, from its values for draws of the rows.

    ``None`` where resampling can't give one: every draw gives the same value (which is no
    certainty), or more than 5% of the draws leave it undefined. Fewer undefined draws are left out
    and counted in the interval's ``method``.

    With ``G`` the standard normal distribution and ``z`` its quantile, the ends are the quantiles
    ``G(z0 + (z0 + z) / (1 - a (z0 + z)))`` of the draws, where ``z0`` is the normal quantile of
    the share of draws below the value (equal ones count half) and
    ``a = sum(d^3) / (6 sum(d^2)^1.5)`` over the differences ``d`` between the mean of the
    leave-one-out values and each of them.

    Args:
        value: the statistic of all rows.
        drawn: its values for the draws; NaN where undefined.
        left_out: its values without one row (or cluster, or group of rows) each.
        weights: how many rows each of ``left_out`` represents, where equal rows share one value.
        resampling: the level; draws were made as it says.
        unit: what was drawn, for the method's name.

    """
    defined = drawn[~np.isnan(drawn)]
    missing = len(drawn) - len(defined)
    if not len(defined) or missing > _UNDEFINED * len(drawn):
        return None
    near = _SAME * max(1.0, abs(value))
    if float(np.max(np.abs(defined - value))) <= near:
        return None
    same = np.abs(defined - value) <= near
    below = (np.sum((defined < value) & ~same) + np.sum(same) / 2) / len(defined)
    # All draws on one side would put z0 at infinity; one more draw on the other side would not.
    edge = 1 / (len(defined) + 1)
    z0 = normal_quantile(float(np.clip(below, edge, 1 - edge)))
    low, high = _ends(z0, acceleration(left_out, weights), resampling.level)
    ends = np.quantile(defined, [low, high])
    method = f"BCa bootstrap, {len(drawn):,} resamples"
    method += " of whole clusters" if unit == "clusters" else ""
    method += f", {missing:,} of them undefined" if missing else ""
    return Interval(low=float(ends[0]), high=float(ends[1]), level=resampling.level, method=method)


def acceleration(left_out: Values, weights: Values | None = None) -> float:
    """Return ``a``, a sixth of the skewness of the leave-one-out values; 0 where they are equal."""
    # Undefined ones are left out: a value that depends on one row has no interval anyway.
    known = ~np.isnan(left_out)
    if not known.any():
        return 0.0
    values = left_out[known]
    mass = np.ones(len(values)) if weights is None else weights[known]
    if not mass.sum():
        return 0.0
    apart = np.average(values, weights=mass) - values
    spread = float(np.sum(mass * apart**2))
    scale = float(np.max(np.abs(values), initial=0.0))
    if spread <= (_SAME * max(scale, 1e-300)) ** 2:
        return 0.0
    return float(np.sum(mass * apart**3)) / (6 * spread**1.5)


def _ends(z0: float, a: float, level: float) -> tuple[float, float]:
    shares: list[float] = []
    for side in ((1 - level) / 2, (1 + level) / 2):
        z = z0 + normal_quantile(side)
        # Past its pole the formula turns around; there the end is the outermost draw.
        below = 1 - a * z
        shares.append(normal_cdf(z0 + z / below) if below > 0 else float(z > 0))
    return shares[0], shares[1]
