"""Tests of differences within pairs, and sizes of the effect."""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.distributions import binomial_cdf, normal_tail, t_quantile
from jurybox.statistics.intervals import Values

MOST_EXACT_DISCORDANT: Final = 25
"""McNemar's test counts exactly up to here, and uses the mid-p beyond."""

MOST_EXACT_RANKS: Final = 50
"""Wilcoxon's test counts exactly up to here, and uses the normal distribution beyond."""

MOST_ENUMERATED: Final = 18
"""The permutation test tries all sign flips of this many units; of more, a sample."""

_NEAR: Final = 1e-9
_PIECE: Final = 2_000_000


class Significance(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a test on ``n`` pairs (or clusters) that differ."""

    test: str
    n: int
    p_value: float


def mcnemar(only_a: int, only_b: int) -> Significance:
    """Test whether two yes-or-no figures differ on the same samples.

    Only the discordant pairs count: ``only_a`` where A alone says yes, ``only_b`` where B alone
    does. Without a difference either is as likely, so with ``n`` of them
    ``p = min(1, 2 P(X <= min(only_a, only_b)))``, X binomial with n and 1/2. Up to 25 discordant
    pairs this exact value is given. It is too careful (its true level is below its nominal one),
    so beyond that half the probability of the observed split is taken off on either side: the
    mid-p, ``2 P(X <= k) - P(X = k)``.

    Reference: Q. McNemar (1947), "Note on the sampling error of the difference between correlated
    proportions or percentages", Psychometrika 12, 153-157; M. W. Fagerland, S. Lydersen and
    P. Laake (2013), "The McNemar test for binary matched-pairs data: mid-p and asymptotic are
    better than exact conditional", BMC Medical Research Methodology 13, 91.
    """
    n = only_a + only_b
    exact = n <= MOST_EXACT_DISCORDANT
    kind = "exact" if exact else "mid-p"
    p = mcnemar_p(only_a, only_b, exact=exact)
    return Significance(test=f"McNemar, {kind}", n=n, p_value=p)


def mcnemar_p(only_a: int, only_b: int, *, exact: bool) -> float:
    """Return McNemar's p value, exact or mid-p."""
    n, fewer = only_a + only_b, min(only_a, only_b)
    if exact:
        return min(1.0, 2 * binomial_cdf(fewer, n, 0.5))
    here = binomial_cdf(fewer, n, 0.5) - binomial_cdf(fewer - 1, n, 0.5)
    return min(1.0, 2 * binomial_cdf(fewer, n, 0.5) - here)


def wilcoxon(differences: Values) -> Significance:
    """Test whether differences are centred at zero, by their signed ranks.

    ``W`` is the sum of the ranks of the positive differences, ranked by size. Zeros are dropped
    (Wilcoxon's own way) and equal sizes share the mean of their ranks. Up to 50 differences, p
    is counted over all ``2^n`` ways to give the ranks signs, ties included; beyond that, W is
    taken for normal with mean ``S/2`` and variance ``sum(rank^2)/4``, S the sum of the ranks,
    without a correction for continuity.

    Reference: F. Wilcoxon (1945), "Individual comparisons by ranking methods", Biometrics
    Bulletin 1, 80-83; W. J. Conover (1999), "Practical Nonparametric Statistics", section 5.7.
    """
    ranks, positive = _signed_ranks(differences)
    n = len(ranks)
    exact = n <= MOST_EXACT_RANKS
    test = f"Wilcoxon signed-rank, {'exact' if exact else 'normal approximation'}"
    above = float(ranks[positive].sum())
    if n == 0:
        p = 1.0
    elif exact:
        p = _exact_ranks(ranks, above)
    else:
        apart = abs(above - float(ranks.sum()) / 2)
        p = min(1.0, 2 * normal_tail(apart / float(np.sqrt(np.sum(ranks**2) / 4))))
    return Significance(test=test, n=n, p_value=p)


def _signed_ranks(differences: Values) -> tuple[Values, NDArray[np.bool_]]:
    """Return the ranks of all differences but zeros, by size, and which of them are positive.

    Equal sizes share the mean of the ranks that they take up.
    """
    moved = differences[differences != 0]
    _, where, counts = np.unique(np.abs(moved), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared = (last - counts + 1 + last) / 2
    return shared[where].astype(np.float64), moved > 0


def _exact_ranks(ranks: Values, above: float) -> float:
    # Shared ranks are halves, so that twice a rank is always whole and sums can be counted.
    doubled = np.rint(2 * ranks).astype(np.int64)
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled.tolist():
        ways[rank:] = (ways[rank:] + ways[: len(ways) - rank]) / 2
        ways[:rank] /= 2
    observed = round(2 * above)
    fewer = min(observed, len(ways) - 1 - observed)
    return min(1.0, 2 * float(ways[: fewer + 1].sum()))


def permutation(units: Values, *, resamples: int = 10_000, seed: int = 0) -> Significance:
    """Test whether differences sum to zero but for chance, by flipping their signs.

    If the runs don't differ, each unit's difference is as likely to have the other sign; p is the
    share of all sign flips whose absolute sum is at least the one seen. A unit is a pair, or the
    sum over a whole cluster, which flips as one because its pairs are not independent. Up to 18
    units that differ, all ``2^n`` flips are tried. Of more, ``resamples`` are drawn, and the data
    themselves count as one more: ``p = (1 + as extreme) / (1 + resamples)``, never zero.

    Reference: R. A. Fisher (1935), "The Design of Experiments", section 21; B. Phipson and
    G. K. Smyth (2010), "Permutation p-values should never be zero", Statistical Applications in
    Genetics and Molecular Biology 9, 39.
    """
    moved = np.abs(units[units != 0])
    bound = abs(float(units.sum())) - _NEAR * float(moved.sum())
    if len(moved) <= MOST_ENUMERATED:
        sums = np.zeros(1)
        for value in moved.tolist():
            sums = np.concatenate([sums - value, sums + value])
        p, how = float(np.mean(np.abs(sums) >= bound)), "exact"
    else:
        extreme = _extreme_flips(moved, bound, resamples, seed)
        p, how = (1 + extreme) / (1 + resamples), f"{resamples:,} sign flips"
    return Significance(test=f"paired permutation, {how}", n=len(moved), p_value=p)


def _extreme_flips(moved: Values, bound: float, resamples: int, seed: int) -> int:
    """Count the random flips with an absolute sum of at least ``bound``.

    Units of equal size are flipped together: how many of them stay positive is binomial.
    """
    rng = np.random.default_rng(seed)
    sizes, counts = np.unique(moved, return_counts=True)
    whole = float(moved.sum())
    step = max(1, _PIECE // len(sizes))
    extreme = 0
    for start in range(0, resamples, step):
        shape = (min(step, resamples - start), len(sizes))
        positive = rng.binomial(counts, 0.5, shape)
        extreme += int(np.sum(np.abs(2 * (positive @ sizes) - whole) >= bound))
    return extreme


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
    ranks, positive = _signed_ranks(differences)
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
