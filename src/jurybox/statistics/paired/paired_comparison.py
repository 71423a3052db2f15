"""One figure of two runs, sample by sample: the entry to everything in this room."""

import math
from collections.abc import Hashable, Sequence
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.bootstrap import DEFAULT, Resampling
from jurybox.statistics.distributions import beta_quantile, normal_quantile
from jurybox.statistics.estimate import Interval
from jurybox.statistics.paired.differences import Units, gather, mean_interval, rates_interval
from jurybox.statistics.paired.significance import (
    EffectSize,
    Significance,
    cohens_dz,
    cohens_g,
    mcnemar,
    minimal_detectable,
    odds_ratio,
    permutation,
    rank_biserial,
    wilcoxon,
)

Direction = Literal["higher", "lower", "undecided"]

POWER: Final = 0.8
"""With which probability the minimal detectable difference would be found."""


class PairedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """How a figure of run B differs from that of run A on the same samples.

    Attributes:
        n: how many samples have the figure in both.
        clusters: how many independent groups they form, where that was said.
        differing: on how many of them the runs differ.
        mean_a: the mean (or rate) in A; ``None`` without samples, as all that follows.
        mean_b: the mean (or rate) in B.
        difference: B's minus A's.
        interval: where the difference lies; ``None`` where nothing can be said.
        p_value: of ``test``; 1 where no pair differs.
        p_adjusted: the p value after Holm's correction over several criteria, where made.
        test: the test's name and variant.
        others: other tests of the same question.
        effects: sizes of the effect, each on its own scale.
        detectable: the smallest true difference that this many samples, spread like these, would
            show with probability 0.8.
        verdict: whether B is ``higher`` or ``lower``: only where both the interval and the
            (adjusted) p value leave no doubt at the level, else ``undecided``.
        reason: why a figure is missing, in words.
        sentence: all that in one plain sentence.

    """

    n: int
    clusters: int | None = None
    differing: int = 0
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    test: str | None = None
    others: tuple[Significance, ...] = ()
    effects: tuple[EffectSize, ...] = ()
    detectable: float | None = None
    verdict: Direction = "undecided"
    reason: str | None = None
    sentence: str = ""


_SMALLEST_P = 0.0001


def sentence(made: PairedComparison) -> str:
    """Return what the comparison says, for people."""
    if made.difference is None:
        return f"no difference can be told: {made.reason}"
    if not made.differing:
        return f"no difference can be told: A and B are equal on {_samples(made)}"
    if made.interval is None:
        seen = f"B minus A is {_number(made.difference)} on {_samples(made)}"
        return f"no difference can be told: {seen}, and there is no interval ({made.reason})"
    basis = f"{_interval(made.interval)}, {_p(made)}, {_samples(made)}"
    if made.verdict != "undecided":
        size = _number(abs(made.difference))
        return f"B is {made.verdict} than A by {size} ({basis})"
    seen = f"no difference can be told: B minus A is {_number(made.difference)} ({basis})"
    if made.detectable is None:
        return seen
    return (
        f"{seen}; a true difference of {_number(made.detectable)} would be found"
        f" with probability {POWER}"
    )


def _interval(interval: Interval) -> str:
    level = f"{100 * interval.level:g}%"
    return f"{level} interval {_number(interval.low)} to {_number(interval.high)}"


def _p(made: PairedComparison) -> str:
    p = made.p_value if made.p_adjusted is None else made.p_adjusted
    if p is None:
        return "not tested"
    value = f"p < {_SMALLEST_P}" if p < _SMALLEST_P else f"p = {p:.2g}"
    return value if made.p_adjusted is None else f"{value} after Holm's correction"


def _samples(made: PairedComparison) -> str:
    samples = "1 sample" if made.n == 1 else f"{made.n:,} samples"
    if made.clusters is None:
        return samples
    return f"{samples} in {made.clusters:,} cluster{'' if made.clusters == 1 else 's'}"


def _number(value: float) -> str:
    # Four digits; adding zero keeps what is nothing from being shown as minus nothing.
    return f"{value + 0.0:.4g}"


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values adjusted by Holm's method, in the order they were given.

    Sorted upwards, the i-th of m is multiplied by ``m - i + 1``; none may be smaller than the one
    before it, and none larger than 1. Rejecting where the adjusted value is at most 5% keeps the
    chance of even one false alarm at 5%, whatever the tests have to do with each other.

    Reference: S. Holm (1979), "A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6, 65-70.

    Raises:
        ValueError: one of them is no probability.

    """
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"the p value {p} is not between 0 and 1")
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for done, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - done) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


Values = NDArray[np.float64]

# A p value near 5% must be known better than the ends of an interval: 10,000 flips by default.
_FLIPS_A_RESAMPLE = 5


def compare_paired(
    a: Sequence[float] | Values,
    b: Sequence[float] | Values,
    *,
    binary: bool = False,
    clusters: Sequence[Hashable] | None = None,
    resampling: Resampling = DEFAULT,
) -> PairedComparison:
    """Compare one figure of two runs on the same samples, in the same order.

    Scores are tested by permutation of signs, with Wilcoxon's test beside it; yes-or-no figures
    (``binary``, 0 and 1) by McNemar's, with the interval of Bonett and Price. With clusters both
    are tested by flipping whole clusters, and drawn as whole clusters for the interval.

    Raises:
        ValueError: they have different lengths, something isn't finite, or isn't 0 or 1.

    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    _check(first, second, clusters, binary=binary)
    # Sums of decimal fractions differ in the last digit where the fractions don't.
    differences = np.round(second - first, 12)
    n = len(differences)
    if n == 0:
        return _worded(PairedComparison(n=0, reason="no sample has the figure in both"))
    units = gather(differences, clusters)
    only_a, only_b = int(np.sum(differences < 0)), int(np.sum(differences > 0))
    plain = binary and clusters is None
    interval: Interval | str
    if plain:
        interval = rates_interval(only_a, only_b, n, resampling.level)
        main, *others = mcnemar(only_a, only_b), _flipped(units, resampling)
    else:
        interval = mean_interval(units, resampling)
        main = _flipped(units, resampling)
        others = [wilcoxon(differences)] if clusters is None else []
    made = PairedComparison(
        n=n,
        clusters=None if clusters is None else len(units.sums),
        differing=only_a + only_b,
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        difference=units.mean,
        interval=None if isinstance(interval, str) else interval,
        p_value=main.p_value,
        test=main.test,
        others=tuple(others),
        effects=_effects(differences, binary=binary),
        detectable=_detectable(units, resampling.level, yes_or_no=plain),
        reason=interval if isinstance(interval, str) else None,
    )
    return _worded(made)


def adjusted(comparisons: Sequence[PairedComparison]) -> tuple[PairedComparison, ...]:
    """Return the comparisons with Holm's correction over all of them that have a p value.

    What could have been found is then larger too: it has to pass the strictest of the tests.
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
    return _worded(msgspec.structs.replace(made, p_adjusted=p, detectable=detectable))


def _check(
    first: Values, second: Values, clusters: Sequence[Hashable] | None, *, binary: bool
) -> None:
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"{first.shape} and {second.shape} values are no pairs")
    if clusters is not None and len(clusters) != len(first):
        raise ValueError(f"{len(clusters)} clusters for {len(first)} pairs")
    both = np.concatenate([first, second])
    if not np.isfinite(both).all():
        raise ValueError("a value isn't finite; leave samples without the figure out")
    if binary and not np.isin(both, (0.0, 1.0)).all():
        raise ValueError("a yes-or-no figure must be 0 or 1")


def _flipped(units: Units, resampling: Resampling) -> Significance:
    return permutation(
        units.sums, resamples=_FLIPS_A_RESAMPLE * resampling.resamples, seed=resampling.seed
    )


def _effects(differences: Values, *, binary: bool) -> tuple[EffectSize, ...]:
    if not binary:
        return cohens_dz(differences), rank_biserial(differences)
    only_a, only_b = int(np.sum(differences < 0)), int(np.sum(differences > 0))
    return cohens_g(only_a, only_b), odds_ratio(only_a, only_b)


def _detectable(units: Units, level: float, *, yes_or_no: bool) -> float | None:
    """Return it where the differences have a spread to go by.

    Of yes and no, McNemar's test needs so many samples that differ, whatever their spread: with
    fewer than ``k`` of them, ``2^(1 - k)`` is more than the level allows.
    """
    count = len(units.sums)
    if count < 2 or units.alike:  # noqa: PLR2004 - one value has no spread
        return None
    found = minimal_detectable(units.standard_error, count - 1, level=level, power=POWER)
    if not yes_or_no:
        return found
    needed = math.ceil(1 - math.log2(1 - level))
    return max(found, beta_quantile(POWER, needed, count - needed + 1)) if needed <= count else None


def _worded(made: PairedComparison) -> PairedComparison:
    verdict = _verdict(made)
    said = msgspec.structs.replace(made, verdict=verdict)
    return msgspec.structs.replace(said, sentence=sentence(said))


def _verdict(made: PairedComparison) -> Direction:
    """Go by both, because they are made differently and may disagree near the border."""
    interval = made.interval
    p = made.p_value if made.p_adjusted is None else made.p_adjusted
    # 1 - 0.95 is a little more than 0.05; a p value of just 0.05 must not hang on that.
    if interval is None or p is None or p > round(1 - interval.level, 12):
        return "undecided"
    if interval.low > 0:
        return "higher"
    return "lower" if interval.high < 0 else "undecided"
