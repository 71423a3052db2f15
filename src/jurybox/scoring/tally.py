"""Accumulates a run's metrics, one sample at a time.

Sums are exact and percentiles use all values, so a run's metrics don't depend on the order in which
its samples finished, and ``verify`` reproduces them to the last digit. Bins are fixed before the
first value. Memory grows only by eight bytes per sample for each metric with a percentile.
"""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Final

import msgspec

from jurybox.rubric.metrics import (
    AGGREGATE_SCORE,
    AGGREGATES,
    LOW_CONFIDENCE_RATE,
    LOWEST_MEAN,
    RATES,
    SAMPLE_SCORE,
    SAMPLES,
    WIN_RATE,
    Comparison,
    Formula,
    Ratio,
    Share,
    Statistic,
    Values,
)
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import UNIT_SCALE, ScoreBins
from jurybox.scoring.sample_result import JUDGE_SCORE, KINDS, MARKS, WIN, SampleResult

_LARGEST: Final = 1e140  # the square of a larger number may overflow

MEASURED: Final = ("latency_e2e_ms", "total_tokens")
"""The measures whose spread is kept, in logarithmic bins."""

_OF_VOTES: Final = ("safety_rate", "unstable_rate", LOW_CONFIDENCE_RATE)  # known from valid votes
_EQUAL_BINS: Final = 20
# Ten bins per power of ten at round numbers: Renard's series R10.
_STEPS: Final = ("1", "1.25", "1.6", "2", "2.5", "3.2", "4", "5", "6.3", "8")
_EDGES: Final = (0.0, *(float(f"{step}e{power}") for power in range(-3, 13) for step in _STEPS))
_MEASURE_BINS: Final = ScoreBins(ends=tuple(pairwise(_EDGES)), starts=_EDGES[:-1])

Metrics = dict[str, float | None]
Counts = dict[str, int]
Bin = tuple[float, float, int]


class MetricSpread(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the samples of a run."""

    n: int  # how many samples have it, in all repeats
    mean: float  # of all of them
    # The standard deviation, ``sqrt(m / (m - 1) * v)`` with the variance ``v`` about the mean and
    # ``m = independent``; without repeats, the sample standard deviation. Repeats contribute their
    # differences, but don't count as independent. None with fewer than two independent values.
    sd: float | None
    # The minimum number of independent samples, since repeats of a sample depend on each other: the
    # count in the repeat with the most values.
    independent: int
    # Low end, high end and count of each bin, in order. On scales of at most 21 whole numbers, each
    # score has a bin with equal ends, and a score between two of them counts as the nearest. Other
    # scores have 20 equal bins over their scale, including empty ones. Measures have ten bins per
    # power of ten, from the lowest used to the highest. A bin includes its low end but not its high
    # end; only the last bin of a scale includes both.
    bins: tuple[Bin, ...]


class _ExactSum:
    """A sum without rounding errors: every float is a fraction."""

    def __init__(self) -> None:
        self._numerators: Counter[int] = Counter()  # their sums, by denominator

    def add(self, value: float) -> None:
        numerator, denominator = value.as_integer_ratio()
        self._numerators[denominator] += numerator

    def __float__(self) -> float:
        return float(sum((Fraction(n, d) for d, n in self._numerators.items()), Fraction()))


class MetricColumn:
    """One metric over the samples, with the data for its statistics and charts."""

    def __init__(self, bins: ScoreBins | None = None, *, keep: bool = False) -> None:
        self.count = 0
        """The number of values."""
        self._sum, self._squares = _ExactSum(), _ExactSum()
        self._low, self._high = math.inf, -math.inf
        self._kept: array[float] | None = array("d") if keep else None
        self._bins = bins
        self._in_bin: Counter[int] = Counter()
        self._in_repeat: Counter[int] = Counter()

    def add(self, value: float | None, repeat: int = 0) -> None:
        """Add the value of a sample, if it has one."""
        if value is None:
            return
        self.count += 1
        self._in_repeat[repeat] += 1
        self._sum.add(value)
        self._low, self._high = min(self._low, value), max(self._high, value)
        if self._kept is not None:
            self._kept.append(value)
        if self._bins is not None:
            self._in_bin[self._bins.place(value)] += 1
            self._squares.add(value * value if abs(value) < _LARGEST else 0.0)

    def values(self, *, ordered: bool = False) -> Values:
        """Return the data for statistics; with ``ordered``, also all values, if they are kept."""
        return Values(
            count=self.count,
            sum=float(self._sum),
            low=self._low,
            high=self._high,
            ordered=sorted(self._kept or ()) if ordered else (),
        )

    def statistic(self, by: str) -> float | None:
        """Compute one of `AGGREGATES`; None if there are no values."""
        aggregate = AGGREGATES[by]
        values = self.values(ordered=aggregate.needs_all)
        return aggregate.compute(values) if self.count else None

    def spread(self) -> MetricSpread | None:
        """Return the spread; None without a value."""
        mean = self.statistic("mean")
        if mean is None:
            return None
        independent = max(self._in_repeat.values())
        variance = self._variance(mean) if independent > 1 else None
        return MetricSpread(
            n=self.count,
            mean=mean,
            sd=None if variance is None else math.sqrt(variance * independent / (independent - 1)),
            independent=independent,
            bins=self._counted_bins(),
        )

    def _variance(self, mean: float) -> float | None:
        """Return the variance about the mean; None if values are too large."""
        if max(abs(self._low), abs(self._high)) >= _LARGEST:
            return None
        if self._low == self._high:
            return 0.0
        return max(0.0, float(self._squares) / self.count - mean * mean)

    def _counted_bins(self) -> tuple[Bin, ...]:
        counts, ends = self._in_bin, () if self._bins is None else self._bins.ends
        bins = tuple((low, high, counts[at]) for at, (low, high) in enumerate(ends))
        if self._bins is not _MEASURE_BINS:
            return bins
        used = [at for at, (_, _, count) in enumerate(bins) if count]
        return bins[used[0] : used[-1] + 1]


class MetricTally:
    """Accumulates the metrics of a run, or of a part of it."""

    def __init__(self, rubric: Rubric, *, spread: bool = False) -> None:
        self._rubric = rubric
        self._criteria = tuple(criterion.id for criterion in rubric.criteria)
        overall = rubric.overall_name
        self._means = {name: rubric.mean_of(name) for name in (*self._criteria, overall)}
        formulas = rubric.metrics.values()
        statistics = [each for each in formulas if isinstance(each, Statistic)]
        kept = {each.of for each in statistics if AGGREGATES[each.by].needs_all}
        self._bins = _bins_of(rubric) if spread else {}
        named = dict.fromkeys(
            (
                *self._criteria,
                overall,
                *((SAMPLE_SCORE,) if rubric.components else ()),
                *(each.of for each in formulas if isinstance(each, Statistic | Ratio)),
                *self._bins,
            )
        )
        self._columns = {
            name: MetricColumn(self._bins.get(name), keep=name in kept) for name in named
        }
        # A judge's overall score is its only criterion, or the weighted overall score.
        whole = rubric.criteria[0].scale if len(rubric.criteria) == 1 else UNIT_SCALE
        self._judge = MetricColumn(whole.bins(_EQUAL_BINS))
        self._wins = MetricColumn(UNIT_SCALE.bins(_EQUAL_BINS))
        wheres = [each.where for each in formulas if isinstance(each, Share | Ratio)]
        self._held: dict[Comparison, int] = dict.fromkeys(wheres, 0)
        self._reported: dict[Comparison, int] = dict.fromkeys(wheres, 0)
        self.samples = self._asked = self._judged = self._examined = 0
        self.flags: dict[str, int] = dict.fromkeys(RATES, 0)

    def add(self, result: SampleResult, repeat: int = 0) -> None:
        """Add a sample of a repeat."""
        self.samples += 1
        for name, column in self._columns.items():
            column.add(result.metrics.get(name), repeat)
        for where in self._held:
            value = result.metrics.get(where.name)
            if value is not None:
                self._reported[where] += 1
                self._held[where] += where.passes(value)
        self._asked += result.judged
        self._judged += result.judged and result.votes_valid > 0
        self._examined += result.safety_known
        self._judge.add(result.judge_opinion, repeat)
        self._wins.add(result.win, repeat)
        self.flags["unscored_rate"] += _is_unscored(result, self._rubric.overall_name)
        for name, holds in _HOLDS.items():
            self.flags[name] += holds(result)

    def spreads(self) -> dict[str, MetricSpread]:
        """Return the spreads of the scores and of `MEASURED`; a metric without values has none."""
        columns = {name: self._columns[name] for name in self._bins}
        columns |= {JUDGE_SCORE: self._judge, WIN: self._wins}
        found = {name: column.spread() for name, column in columns.items()}
        return {name: each for name, each in found.items() if each is not None}

    def metrics(self) -> tuple[Metrics, Counts]:
        """Return every metric of the run by name, with the number of samples behind it."""
        metrics: Metrics = {SAMPLES: self.samples}
        counts: Counts = {}
        self._add_rates(metrics, counts)
        for name, mean in self._means.items():
            metrics[mean] = self._columns[name].statistic("mean")
            counts[mean] = self._columns[name].count
        if self._judge.count:
            metrics[f"{JUDGE_SCORE}_mean"] = self._judge.statistic("mean")
            counts[f"{JUDGE_SCORE}_mean"] = self._judge.count
        if self._wins.count:
            metrics[WIN_RATE] = self._wins.statistic("mean")
            counts[WIN_RATE] = self._wins.count
        known = [metrics[self._means[name]] for name in self._criteria]
        metrics[LOWEST_MEAN] = min((each for each in known if each is not None), default=None)
        if self._rubric.components:
            column = self._columns[SAMPLE_SCORE]
            metrics[AGGREGATE_SCORE] = column.statistic("mean")
            counts[AGGREGATE_SCORE] = column.count
        for name, formula in self._rubric.metrics.items():
            metrics[name], counts[name] = self._value(formula)
        return metrics, counts

    def _add_rates(self, metrics: Metrics, counts: Counts) -> None:
        for name, count in self.flags.items():
            metrics[name] = count / self.samples if self.samples else None
            counts[name] = self.samples
        if not self._rubric.pass_rules:
            metrics["pass_rate"], counts["pass_rate"] = None, 0
        if self._asked and not self._judged:
            # No vote was valid, so that nothing was flagged says nothing.
            for name in _OF_VOTES:
                if not self.flags[name]:
                    metrics[name], counts[name] = None, 0
        if self._judged:
            metrics[LOW_CONFIDENCE_RATE] = self.flags[LOW_CONFIDENCE_RATE] / self._judged
            counts[LOW_CONFIDENCE_RATE] = self._judged
        if self._asked and self._examined:
            metrics["safety_rate"] = self.flags["safety_rate"] / self._examined
            counts["safety_rate"] = self._examined
        # A share of the samples with a vote, since the others have no reply to read.
        fallen = self.flags["judge_fallback_rate"]
        reported = self._judged if self._rubric.fallback_score is not None else 0
        metrics["judge_fallback_rate"] = fallen / reported if reported else None
        counts["judge_fallback_rate"] = reported

    def _value(self, formula: Formula) -> tuple[float | None, int]:
        match formula:
            case Statistic(by=by, of=of):
                return self._columns[of].statistic(by), self._columns[of].count
            case Share(where=where):
                reported = self._reported[where]
                return self._held[where] / reported if reported else None, reported
            case Ratio(of=of, where=where):
                column = self._columns[of]
                if not column.count:
                    return None, 0
                return column.values().sum / max(self._held[where], 1), column.count


def _bins_of(rubric: Rubric) -> dict[str, ScoreBins]:
    """Return the bins of each metric whose spread is kept."""
    scales = {each.id: each.scale for each in rubric.criteria} | {rubric.overall_name: UNIT_SCALE}
    if rubric.components:
        scales[SAMPLE_SCORE] = UNIT_SCALE
    bins = {name: scale.bins(_EQUAL_BINS) for name, scale in scales.items()}
    return bins | dict.fromkeys(MEASURED, _MEASURE_BINS)


_HOLDS: Final[Mapping[str, Callable[[SampleResult], bool]]] = {
    "pass_rate": MARKS["passed"].concerns,
    "evaluator_error_rate": lambda result: result.evaluator_error is not None,
    "judge_fallback_rate": KINDS["judge_fallback"].concerns,
    "review_rate": MARKS["needs_review"].concerns,
    "safety_rate": KINDS["safety"].concerns,
    "unstable_rate": KINDS["unstable"].concerns,
    LOW_CONFIDENCE_RATE: KINDS["low_confidence"].concerns,
    "timeout_rate": lambda result: result.timed_out,
    "target_error_rate": KINDS["target_error"].concerns,
}
"""Whether a rate counts a sample; `_is_unscored` decides for the remaining one."""


def _is_unscored(result: SampleResult, overall: str) -> bool:
    if result.by_rules:
        return result.metrics.get(overall, 0) is None
    return result.judged and not result.votes_valid
