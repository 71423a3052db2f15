"""Two runs on the same samples: whether they differ, by how much, and how sure that is.

Samples differ far more from each other than two runs do on one sample, so everything here works on
the differences within samples. A difference is always B's value minus A's.
"""

import math
from collections.abc import Hashable, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from jurybox.statistics.bootstrap import DEFAULT, Resampling, bca
from jurybox.statistics.distributions import beta_quantile, normal_quantile, t_quantile
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import Values, codes_of
from jurybox.statistics.paired_tests import (
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

# With fewer units BCa covers less often than Student's t: 91% of the time for 50 scores of 1 to 5.
_FEWEST_DRAWN: Final = 300
_PIECE: Final = 2_000_000
# A p value near 5% must be known better than the ends of an interval: 10,000 flips by default.
_FLIPS_PER_RESAMPLE: Final = 5
_SMALLEST_P: Final = 0.0001


class PairedComparison(msgspec.Struct, frozen=True, kw_only=True):
    """How a metric of run B differs from that of run A on the same ``n`` samples.

    ``verdict`` is ``higher`` or ``lower`` only where both the interval and the (adjusted) p value
    leave no doubt at the level.
    """

    n: int
    clusters: int | None = None  # how many independent groups, where clusters were given
    differing: int = 0
    mean_a: float | None = None
    mean_b: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    p_value: float | None = None  # 1 where no pair differs
    p_adjusted: float | None = None  # after Holm's correction over several criteria
    test: str | None = None
    others: tuple[Significance, ...] = ()
    effects: tuple[EffectSize, ...] = ()
    detectable: float | None = None  # the smallest true difference found with probability 0.8
    verdict: Direction = "undecided"
    reason: str | None = None
    sentence: str = ""


class Units(msgspec.Struct, frozen=True, kw_only=True):
    """Differences summed by what is independent: pairs, or clusters of them."""

    sums: Values
    sizes: Values

    @property
    def mean(self) -> float:
        """The mean over all pairs."""
        return float(self.sums.sum() / self.sizes.sum())

    @property
    def alike(self) -> bool:
        """Whether every unit has the same mean, so that their spread is unknown."""
        means = self.sums / self.sizes
        return bool(np.ptp(means) <= 1e-12 * max(1.0, float(np.max(np.abs(means)))))

    @property
    def standard_error(self) -> float:
        """Of the mean; ``sqrt(G / (G - 1) sum((s_g - n_g mean)^2)) / n`` over G units."""
        count = len(self.sums)
        apart = self.sums - self.sizes * self.mean
        return float(np.sqrt(count / (count - 1) * np.sum(apart**2)) / self.sizes.sum())

    @property
    def name(self) -> str:
        """What the units are called."""
        return "pairs" if len(self.sums) == self.sizes.sum() else "clusters"


def gather(differences: Values, clusters: Sequence[Hashable] | None) -> Units:
    """Return the differences by cluster, in the order in which clusters appear."""
    if clusters is None:
        return Units(sums=differences, sizes=np.ones(len(differences)))
    codes, count = codes_of(clusters, len(differences))
    sums = np.bincount(codes, weights=differences, minlength=count)
    return Units(sums=sums.astype(np.float64), sizes=np.bincount(codes).astype(np.float64))


def mean_interval(units: Units, resampling: Resampling) -> Interval | str:
    """Return the interval of the mean difference, or why there is none.

    From 300 units on by resampling (BCa), below that by Student's t with the units' standard
    error. Where all units have the same mean difference there is no spread, and two more units are
    imagined: one that doesn't differ, and one that moved as far the other way. There is none where
    nothing differs: from zero to zero would promise that nothing ever will.
    """
    count = len(units.sums)
    if count < 2:  # noqa: PLR2004 - one value has no spread
        return "one independent difference has no spread" if count else "there are no pairs"
    if not units.alike:
        drawn = _bootstrapped(units, resampling) if count >= _FEWEST_DRAWN else None
        return drawn or _student(units, resampling.level)
    if not units.mean:
        clustered = float(units.sizes.max()) > 1
        return (
            "no cluster differs on the whole" if clustered else "the runs are equal on every sample"
        )
    size = float(units.sizes.mean())
    more = Units(
        sums=np.append(units.sums, [0.0, -size * units.mean]),
        sizes=np.append(units.sizes, [size, size]),
    )
    return _student(more, resampling.level, ", two of them imagined")


def _student(units: Units, level: float, note: str = "") -> Interval:
    count = len(units.sums)
    half = t_quantile((1 + level) / 2, count - 1) * units.standard_error
    method = f"Student's t, {count} {units.name}{note}"
    return Interval(low=units.mean - half, high=units.mean + half, level=level, method=method)


def _bootstrapped(units: Units, resampling: Resampling) -> Interval | None:
    """Draw units, and compute the means of many draws at once."""
    count = len(units.sums)
    rng = np.random.default_rng(resampling.seed)
    drawn = np.empty(resampling.resamples)
    step = max(1, _PIECE // count)
    for start in range(0, len(drawn), step):
        chosen = rng.integers(0, count, (min(step, len(drawn) - start), count))
        sums, sizes = units.sums[chosen].sum(axis=1), units.sizes[chosen].sum(axis=1)
        drawn[start : start + step] = sums / sizes
    left_out = (units.sums.sum() - units.sums) / (units.sizes.sum() - units.sizes)
    unit = "rows" if units.name == "pairs" else "clusters"
    return bca(units.mean, drawn, left_out, resampling=resampling, unit=unit)


def rates_interval(only_a: int, only_b: int, n: int, level: float) -> Interval:
    """Return the interval of the difference of two rates on the same ``n`` samples.

    One is added to either kind of discordant pair, so that the interval stays honest where few
    or no pairs differ: with ``a = (only_a + 1) / (n + 2)`` and ``b`` likewise, it is
    ``b - a +- z sqrt((a + b - (b - a)^2) / (n + 2))``, within -1 and 1.

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
    resampling: Resampling = DEFAULT,
) -> PairedComparison:
    """Compare one metric of two runs on the same samples, in the same order.

    Scores are tested by permutation of signs, next to Wilcoxon's test; yes-or-no metrics
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
        return _concluded(PairedComparison(n=0, reason="no sample has the metric in both"))
    units = gather(differences, clusters)
    only_a, only_b = int(np.sum(differences < 0)), int(np.sum(differences > 0))
    flips = _FLIPS_PER_RESAMPLE * resampling.resamples
    flipped = permutation(units.sums, resamples=flips, seed=resampling.seed)
    plain = binary and clusters is None
    interval: Interval | str
    if plain:
        interval = rates_interval(only_a, only_b, n, resampling.level)
        main, others = mcnemar(only_a, only_b), (flipped,)
    else:
        interval = mean_interval(units, resampling)
        main, others = flipped, () if clusters is not None else (wilcoxon(differences),)
    if binary:
        effects = cohens_g(only_a, only_b), odds_ratio(only_a, only_b)
    else:
        effects = cohens_dz(differences), rank_biserial(differences)
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
        others=others,
        effects=effects,
        detectable=_detectable(units, resampling.level, yes_or_no=plain),
        reason=interval if isinstance(interval, str) else None,
    )
    return _concluded(made)


def _check(
    first: Values, second: Values, clusters: Sequence[Hashable] | None, *, binary: bool
) -> None:
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(f"{first.shape} and {second.shape} values are no pairs")
    if clusters is not None and len(clusters) != len(first):
        raise ValueError(f"{len(clusters)} clusters for {len(first)} pairs")
    both = np.concatenate([first, second])
    if not np.isfinite(both).all():
        raise ValueError("a value isn't finite; leave out samples without the metric")
    if binary and not np.isin(both, (0.0, 1.0)).all():
        raise ValueError("a yes-or-no metric must be 0 or 1")


def _detectable(units: Units, level: float, *, yes_or_no: bool) -> float | None:
    """Return the minimal detectable difference where the differences have a spread.

    Of yes and no, McNemar's test needs a number of samples that differ, whatever their spread: with
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


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p values adjusted by Holm's method, in the order they were given.

    Sorted upwards, the i-th of m is multiplied by ``m - i + 1``; none may be smaller than the one
    before it, and none larger than 1. Rejecting where the adjusted value is at most 5% keeps the
    chance of even one false alarm at 5%, however the tests depend on each other.

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


def adjusted(comparisons: Sequence[PairedComparison]) -> tuple[PairedComparison, ...]:
    """Return the comparisons with Holm's correction over all of them that have a p value.

    The detectable difference grows too: it has to pass the strictest of the tests.
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
    return msgspec.structs.replace(decided, sentence=_sentence(decided))


def _verdict(made: PairedComparison) -> Direction:
    """Go by both, because they are computed differently and may disagree near the border."""
    interval = made.interval
    p = made.p_value if made.p_adjusted is None else made.p_adjusted
    # 1 - 0.95 is a little more than 0.05; a p value of just 0.05 must not depend on that.
    if interval is None or p is None or p > round(1 - interval.level, 12):
        return "undecided"
    if interval.low > 0:
        return "higher"
    return "lower" if interval.high < 0 else "undecided"


def _sentence(made: PairedComparison) -> str:
    if made.difference is None:
        return f"not measurable: {made.reason}"
    samples = "1 sample" if made.n == 1 else f"{made.n:,} samples"
    if made.clusters is not None:
        samples += f" in {made.clusters:,} cluster{'' if made.clusters == 1 else 's'}"
    if not made.differing:
        return f"no significant difference: A and B are equal on {samples}"
    seen = f"B minus A is {_number(made.difference)}"
    interval = made.interval
    if interval is None:
        reason = f"and there is no interval ({made.reason})"
        return f"no significant difference: {seen} on {samples}, {reason}"
    ends = f"{_number(interval.low)} to {_number(interval.high)}"
    basis = f"{100 * interval.level:g}% interval {ends}, {_p(made)}, {samples}"
    if made.verdict != "undecided":
        return f"B is {made.verdict} than A by {_number(abs(made.difference))} ({basis})"
    said = f"no significant difference: {seen} ({basis})"
    if made.detectable is None:
        return said
    detectable = _number(made.detectable)
    return f"{said}; a true difference of {detectable} would be found with probability {POWER}"


def _p(made: PairedComparison) -> str:
    p = made.p_value if made.p_adjusted is None else made.p_adjusted
    if p is None:
        return "not tested"
    value = f"p < {_SMALLEST_P}" if p < _SMALLEST_P else f"p = {p:.2g}"
    return value if made.p_adjusted is None else f"{value} after Holm's correction"


def _number(value: float) -> str:
    # Adding zero keeps nothing from being shown as minus nothing.
    return f"{value + 0.0:.4g}"
