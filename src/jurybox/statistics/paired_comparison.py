"""Compares two runs on the same samples: the difference, its interval and its significance.

Samples differ far more from each other than two runs do on one sample, so everything here works on
the differences within samples. A difference is always B's value minus A's.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from jurybox.documents.numbers import short
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import (
    Codes,
    Values,
    beta_quantile,
    binomial_cdf,
    codes_of,
    mean_of,
    normal_quantile,
    normal_tail,
    standard_error,
    t_quantile,
)
from jurybox.text_format import counted

Direction = Literal["higher", "lower", "undecided"]

POWER: Final = 0.8
"""The probability with which the minimal detectable difference would be found."""

MOST_ENUMERATED: Final = 18
"""The permutation test tries all sign flips of up to this many units; with more, random ones."""

MOST_FLIPPED: Final = 500
"""With more units than this, the sum of sign flips is approximated as normal."""

_FLIPS: Final = 10_000
_SMALLEST_P: Final = 0.0001
_NEAR: Final = 1e-9


class PairedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """How a metric of run B differs from that of run A on the same ``n`` samples.

    ``verdict`` is ``higher`` or ``lower`` only if both the interval and the (adjusted) p value are
    significant at the level.
    """

    n: int
    clusters: int | None = None  # the number of clusters, if given
    differing: int = 0
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    p_value: float | None = None  # 1 if no pair differs
    p_adjusted: float | None = None  # after Holm's correction over several criteria
    test: str | None = None
    detectable: float | None = None  # the smallest true difference found with probability 0.8
    verdict: Direction = "undecided"
    reason: str | None = None
    sentence: str = ""


def mean_interval(
    differences: Values, clusters: Sequence[Hashable] | None, level: float
) -> Interval | str:
    """Return Student's interval of the mean difference, or why there is none.

    If all units have the same mean difference, two pseudo-units are added: one without a
    difference, and one with the opposite difference. If nothing differs, there is no interval,
    since zero to zero would claim certainty.
    """
    units = len(differences) if clusters is None else len(set(clusters))
    if units == 1:
        return "one independent difference has no spread"
    found, note = mean_of(differences, clusters=clusters, level=level), ""
    if found.interval is None and found.value:
        rows = round(len(differences) / units)
        more = np.append(differences, np.repeat([0.0, -found.value], rows))
        both = [("imagined", i // rows) for i in range(2 * rows)]
        named = None if clusters is None else [*clusters, *both]
        found = mean_of(more, clusters=named, level=level)
        units, note = units + 2, ", two of them added"
    if found.interval is None:
        alone = clusters is None or units == len(differences)
        return "the runs are equal on every sample" if alone else "clusters' differences cancel out"
    what = "pairs" if units == found.n else "clusters"
    return msgspec.structs.replace(found.interval, method=f"Student's t, {units} {what}{note}")


def rates_interval(only_a: int, only_b: int, n: int, level: float) -> Interval:
    """Return the interval of the difference of two rates on the same ``n`` samples.

    One is added to each kind of discordant pair, so that the interval stays valid if few or no
    pairs differ: with ``a = (only_a + 1) / (n + 2)`` and ``b`` likewise, it is ``b - a +- z sqrt((a
    + b - (b - a)^2) / (n + 2))``, within -1 and 1.

    Reference: D. G. Bonett and R. M. Price (2012), "Adjusted Wald confidence interval for a
    difference of binomial proportions based on paired data", Journal of Educational and
    Behavioral Statistics 37, 479-488.
    """
    a, b = (only_a + 1) / (n + 2), (only_b + 1) / (n + 2)
    half = normal_quantile((1 + level) / 2) * float(np.sqrt((a + b - (b - a) ** 2) / (n + 2)))
    low, high = max(-1.0, b - a - half), min(1.0, b - a + half)
    return Interval(low=low, high=high, level=level, method="Bonett-Price")


def compare_paired(
    a: Sequence[float] | Values,
    b: Sequence[float] | Values,
    *,
    binary: bool = False,
    clusters: Sequence[Hashable] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> PairedComparison:
    """Compare one metric of two runs on the same samples, in the same order.

    Scores are tested by permutation of signs, with Student's interval; yes-or-no metrics
    (``binary``, 0 and 1) by McNemar's test, with the interval of Bonett and Price. With clusters,
    both are tested by flipping whole clusters, with Student's interval over clusters. ``seed`` is
    the seed of the random flips.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    # Rounded, because sums of equal fractions may differ in the last digit.
    differences = np.round(second - first, 12)
    n = len(differences)
    if n == 0:
        return _concluded(PairedComparison(n=0, reason="no sample has the metric in both runs"))
    codes, count = (None, n) if clusters is None else codes_of(clusters, n)
    sums = differences
    if codes is not None:
        sums = np.bincount(codes, differences, count).astype(np.float64)
    only_a, only_b = int(np.sum(differences < 0)), int(np.sum(differences > 0))
    plain = binary and clusters is None
    interval: Interval | str
    if plain:
        test, p_value = mcnemar(only_a, only_b)
        interval = rates_interval(only_a, only_b, n, level)
    else:
        test, p_value = permutation(sums, seed=seed)
        interval = mean_interval(differences, clusters, level)
    made = PairedComparison(
        n=n,
        clusters=None if clusters is None else count,
        differing=only_a + only_b,
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        difference=float(differences.mean()),
        interval=None if isinstance(interval, str) else interval,
        p_value=p_value,
        test=test,
        detectable=_detectable(differences, codes, count, level, yes_or_no=plain),
        reason=interval if isinstance(interval, str) else None,
    )
    return _concluded(made)


def mcnemar(only_a: int, only_b: int) -> tuple[str, float]:
    """Test whether two yes-or-no metrics differ on the same samples; return the test and p.

    Only the discordant pairs count: in ``only_a`` pairs A alone says yes, in ``only_b`` B alone
    does. If the runs don't differ, both kinds are equally likely, so with ``n`` discordant pairs
    ``p = min(1, 2 P(X <= min(only_a, only_b)))``, where X is binomial with n and 1/2.

    Reference: Q. McNemar (1947), "Note on the sampling error of the difference between correlated
    proportions or percentages", Psychometrika 12, 153-157.
    """
    below = binomial_cdf(min(only_a, only_b), only_a + only_b, 0.5)
    return "McNemar, exact", min(1.0, 2 * below)


def permutation(units: Values, *, seed: int = 0) -> tuple[str, float]:
    """Test whether differences sum to zero, by flipping their signs; return the test and p.

    If the runs don't differ, both signs of a unit's difference are equally likely; p is the share
    of all sign flips whose absolute sum is at least the observed one. A unit is a pair, or the sum
    over a cluster, which flips as a whole because its pairs are not independent. If up to 18 units
    differ, all ``2^n`` flips are tried. If more differ, 10,000 flips are drawn, and the data count
    as one more flip, so ``p = (1 + as extreme) / 10,001`` is never zero. If more than 500 differ,
    the sum of the flips is approximated as normal, with the variance ``sum(unit^2)``.

    Reference: R. A. Fisher (1935), "The Design of Experiments", section 21; B. Phipson and
    G. K. Smyth (2010), "Permutation p-values should never be zero", Statistical Applications in
    Genetics and Molecular Biology 9, 39.
    """
    moved = np.abs(units[units != 0])
    seen = abs(float(units.sum()))
    bound = seen - _NEAR * float(moved.sum())
    if len(moved) <= MOST_ENUMERATED:
        sums = np.zeros(1)
        for value in moved.tolist():
            sums = np.concatenate([sums - value, sums + value])
        p, how = float(np.mean(np.abs(sums) >= bound)), "exact"
    elif len(moved) <= MOST_FLIPPED:
        flips = np.random.default_rng(seed).integers(0, 2, (_FLIPS, len(moved)), dtype=np.int8)
        sums = (2.0 * flips - 1) @ moved
        extreme = int(np.sum(np.abs(sums) >= bound))
        p, how = (1 + extreme) / (1 + _FLIPS), f"{_FLIPS:,} sign flips"
    else:
        p, how = 2 * normal_tail(seen / float(np.sqrt(np.sum(moved**2)))), "normal approximation"
    return f"paired permutation, {how}", p


def minimal_detectable(
    standard_error: float, degrees: int, *, level: float = 0.95, power: float = 0.8
) -> float:
    """Return the smallest true difference that would be found with probability ``power``.

    It is ``(t(1 - (1 - level) / 2) + t(power)) * SE``. Both ``t`` are quantiles of Student's t with
    the degrees of freedom of the standard error: the number of pairs (or clusters) minus one.

    Reference: H. S. Bloom (1995), "Minimum detectable effects: a simple way to report the
    statistical power of experimental designs", Evaluation Review 19, 547-556.
    """
    certain = t_quantile((1 + level) / 2, degrees)
    return (certain + t_quantile(power, degrees)) * standard_error


def _detectable(
    differences: Values, codes: Codes | None, count: int, level: float, *, yes_or_no: bool
) -> float | None:
    """Return the minimal detectable difference; None without variance.

    For yes-or-no metrics, McNemar's test can be significant only with at least ``k`` discordant
    samples, where ``2^(1 - k) <= 1 - level``.
    """
    error = standard_error(differences, codes, count) if count > 1 else 0.0
    if not error:
        return None
    found = minimal_detectable(error, count - 1, level=level, power=POWER)
    if not yes_or_no:
        return found
    needed = math.ceil(1 - math.log2(1 - level))
    return max(found, beta_quantile(POWER, needed, count - needed + 1)) if needed <= count else None


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values adjusted by Holm's method, in the order they were given.

    In ascending order, the i-th of m values is multiplied by ``m - i + 1``; no result may be
    smaller than the one before it, or larger than 1. Rejecting at adjusted values up to 5% keeps
    the probability of any false alarm at 5%, regardless of how the tests depend on each other.

    Reference: S. Holm (1979), "A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6, 65-70.
    """
    p = np.array(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    p[order] = np.maximum.accumulate(np.minimum(1.0, p[order] * np.arange(len(p), 0, -1)))
    return tuple(p.tolist())


def adjusted(comparisons: Sequence[PairedComparison]) -> tuple[PairedComparison, ...]:
    """Return the comparisons with Holm's correction over all that have a p value.

    The detectable difference grows too, because the difference has to pass the strictest test.
    """
    tested = [each.p_value for each in comparisons if each.p_value is not None]
    corrected = iter(holm(tested))
    return tuple(
        each if each.p_value is None else _corrected(each, next(corrected), len(tested))
        for each in comparisons
    )


def _corrected(made: PairedComparison, p: float, tests: int) -> PairedComparison:
    detectable = made.detectable
    if detectable is not None and made.interval is not None:
        missed = 1 - made.interval.level
        strict, plain = (
            normal_quantile(1 - each / 2) + normal_quantile(POWER)
            for each in (missed / tests, missed)
        )
        detectable *= strict / plain
    return _concluded(msgspec.structs.replace(made, p_adjusted=p, detectable=detectable))


def _concluded(made: PairedComparison) -> PairedComparison:
    decided = msgspec.structs.replace(made, verdict=_verdict(made))
    return msgspec.structs.replace(decided, sentence=described(decided))


def _verdict(made: PairedComparison) -> Direction:
    """Return the verdict; a significant one needs both the interval and the p value."""
    interval = made.interval
    p = made.p_value if made.p_adjusted is None else made.p_adjusted
    # In floats, 1 - 0.95 is slightly more than 0.05; this must not decide about a p value of
    # exactly 0.05.
    if interval is None or p is None or p > round(1 - interval.level, 12):
        return "undecided"
    if interval.low > 0:
        return "higher"
    return "lower" if interval.high < 0 else "undecided"


def described(made: PairedComparison, a: str = "A", b: str = "B", pair: str = "sample") -> str:
    """Return the result in words, with names for the two sides and for a pair of values."""
    if made.difference is None:
        return f"not measurable: {made.reason}"
    samples = counted(made.n, pair)
    if made.clusters is not None:
        samples += f" in {counted(made.clusters, 'cluster')}"
    if not made.differing:
        return f"no significant difference: {a} and {b} are equal on {samples}"
    seen = f"{b} minus {a} is {short(made.difference)}"
    interval = made.interval
    if interval is None:
        reason = f"and there is no interval ({made.reason})"
        return f"no significant difference: {seen} on {samples}, {reason}"
    ends = f"{short(interval.low)} to {short(interval.high)}"
    basis = f"{100 * interval.level:.4g}% interval {ends}, {_p(made)}, {samples}"
    if made.verdict != "undecided":
        return f"{b} is {made.verdict} than {a} by {short(abs(made.difference))} ({basis})"
    said = f"no significant difference: {seen} ({basis})"
    if not interval.low <= 0 <= interval.high and made.p_adjusted is not None:
        said += f"; on its own, without the other tests, {_shown_p(made.p_value)}"
    if made.detectable is None:
        return said
    detectable = short(made.detectable)
    return f"{said}; a true difference of {detectable} would be found with probability {POWER}"


def _p(made: PairedComparison) -> str:
    if made.p_adjusted is None:
        return _shown_p(made.p_value)
    return f"{_shown_p(made.p_adjusted)} after Holm's correction"


def _shown_p(p: float | None) -> str:
    if p is None:
        return "not tested"
    return f"p < {_SMALLEST_P}" if p < _SMALLEST_P else f"p = {p:.2g}"
