"""How large a difference is beside its spread, and how large one must be to be found."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.paired.ranks import signed_ranks

Values = NDArray[np.float64]


class EffectSize(msgspec.Struct, frozen=True, kw_only=True):
    """A difference on a scale without a unit; ``None`` with a reason where it is undefined."""

    name: str
    value: float | None
    reason: str | None = None


def cohens_dz(differences: Values) -> EffectSize:
    """Return the mean difference in standard deviations of the differences, ``mean(d) / sd(d)``.

    Reference: J. Cohen (1988), "Statistical Power Analysis for the Behavioral Sciences", section
    2.3.5, where 0.2, 0.5 and 0.8 are called small, medium and large.
    """
    name = "Cohen's dz"
    if len(differences) < 2:  # noqa: PLR2004 - one value has no spread
        return EffectSize(name=name, value=None, reason="fewer than two pairs have no spread")
    if np.ptp(differences) == 0:
        return EffectSize(name=name, value=None, reason="all differences are equal")
    value = float(differences.mean() / differences.std(ddof=1))
    return EffectSize(name=name, value=value)


def rank_biserial(differences: Values) -> EffectSize:
    """Return the matched-pairs rank-biserial correlation, from -1 to 1.

    ``(P - N) / (P + N)``, with P and N the sums of the ranks of the positive and of the negative
    differences, ranked by size without zeros.

    Reference: D. S. Kerby (2014), "The simple difference formula: an approach to teaching
    nonparametric correlation", Comprehensive Psychology 3, 11.IT.3.1.
    """
    name = "rank-biserial correlation"
    ranks, positive = signed_ranks(differences)
    if not len(ranks):
        return EffectSize(name=name, value=None, reason="no pair differs")
    whole = float(ranks.sum())
    return EffectSize(name=name, value=(2 * float(ranks[positive].sum()) - whole) / whole)


def cohens_g(only_a: int, only_b: int) -> EffectSize:
    """Return how far the discordant pairs are from an even split: ``b / (a + b) - 1/2``.

    Reference: J. Cohen (1988), chapter 5, where 0.05, 0.15 and 0.25 are called small, medium and
    large.
    """
    name = "Cohen's g"
    if not only_a + only_b:
        return EffectSize(name=name, value=None, reason="no pair differs")
    return EffectSize(name=name, value=only_b / (only_a + only_b) - 0.5)


def odds_ratio(only_a: int, only_b: int) -> EffectSize:
    """Return the conditional odds ratio of matched pairs, ``b / a``.

    Reference: A. Agresti (2013), "Categorical Data Analysis", section 11.2.3.
    """
    name = "odds ratio of discordant pairs"
    if not only_a:
        reason = "no pair differs" if not only_b else "no pair has a yes for A alone"
        return EffectSize(name=name, value=None, reason=reason)
    return EffectSize(name=name, value=only_b / only_a)


def minimal_detectable(
    standard_error: float, degrees: int, *, level: float = 0.95, power: float = 0.8
) -> float:
    """Return the smallest true difference that would be found with probability ``power``.

    ``(t(1 - (1 - level) / 2) + t(power)) * SE``, both quantiles of Student's t with the degrees
    of freedom that the standard error has: pairs (or clusters) less one.

    Reference: H. S. Bloom (1995), "Minimum detectable effects: a simple way to report the
    statistical power of experimental designs", Evaluation Review 19, 547-556.
    """
    certain = t_quantile((1 + level) / 2, degrees)
    return (certain + t_quantile(power, degrees)) * standard_error
