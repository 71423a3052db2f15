"""Adds up a run, one sample at a time.

Sums are exact and percentiles are taken from all values, so a run's metrics don't depend on the
order in which its samples finished, to the last digit, and ``verify`` finds the same again. Memory
grows by eight bytes per sample for each metric that has a percentile, and for nothing else.
"""

import math
from array import array
from collections.abc import Iterator
from typing import Final

from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import (
    AGGREGATE_SCORE,
    AGGREGATES,
    LOWEST_MEAN,
    RATES,
    SAMPLE_SCORE,
    SAMPLES,
    WIN_RATE,
    Formula,
    Ratio,
    Share,
    Statistic,
    Values,
)
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import JUDGE_SCORE, SampleResult

CHUNK: Final = 1024
"""The number of samples after which their values are added up."""
_LARGEST: Final = 1e140  # the square of a larger number may be none

Metrics = dict[str, float | None]
Counts = dict[str, int]


class MetricColumn:
    """One metric of the samples: how many have it, and what statistics need of it.

    Values are only taken in by ``add``; ``add_up`` is for their owner to call now and then, so that
    memory doesn't grow with them.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self._fresh: list[float] = []
        self.add = self._fresh.append
        self._count = 0
        self._sum: list[float] = []
        self._squares: list[float] = []
        self._low, self._high = math.inf, -math.inf
        self._kept: array[float] | None = array("d") if keep else None

    @property
    def count(self) -> int:
        """How many values there are."""
        return self._count + len(self._fresh)

    def add_up(self) -> None:
        """Add up the values that came since the last time."""
        fresh = self._fresh
        if not fresh:
            return
        self._count += len(fresh)
        self._low, self._high = min(self._low, *fresh), max(self._high, *fresh)
        if self._kept is not None:
            self._kept.extend(fresh)
        squares = [value * value for value in fresh if abs(value) < _LARGEST]
        self._squares = _exact_parts([*self._squares, *squares])
        self._sum = _exact_parts([*self._sum, *fresh])
        fresh.clear()

    def values(self, *, ordered: bool = False) -> Values:
        """Return the data that statistics are computed from; all values only if they are kept."""
        self.add_up()
        return Values(
            count=self._count,
            sum=math.fsum(self._sum),
            low=self._low,
            high=self._high,
            ordered=sorted(self._kept or ()) if ordered else (),
        )

    def statistic(self, by: str) -> float | None:
        """Return one of `AGGREGATES`; None without any value."""
        aggregate = AGGREGATES[by]
        values = self.values(ordered=aggregate.needs_all)
        return aggregate.compute(values) if self.count else None

    def variance(self) -> float | None:
        """Return the variance about the mean; None without values, or with too large ones."""
        self.add_up()
        if not self.count or max(abs(self._low), abs(self._high)) >= _LARGEST:
            return None
        if self._low == self._high:
            return 0.0
        mean = self.values().sum / self.count
        return max(0.0, math.fsum(self._squares) / self.count - mean * mean)


def _exact_parts(numbers: list[float]) -> list[float]:
    """Return a few numbers with the same exact sum; changes ``numbers``."""
    parts: list[float] = []
    # The remainder after each rounded sum is exact; repeat until it is zero.
    while part := math.fsum(numbers):
        parts.append(part)
        numbers.append(-part)
    return parts


class MetricTally:
    """The metrics of a run, or of a part of it, as its samples come in."""

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric
        self._criteria = tuple(criterion.id for criterion in rubric.criteria)
        overall = rubric.overall_name
        self._means = {name: rubric.mean_of(name) for name in self._criteria}
        self._means[overall] = f"{overall}_mean"
        formulas = [metric.formula for metric in rubric.metrics]
        statistics = [each for each in formulas if isinstance(each, Statistic)]
        kept = {each.of for each in statistics if AGGREGATES[each.by].needs_all}
        named = dict.fromkeys(
            (
                *self._criteria,
                overall,
                *((SAMPLE_SCORE,) if rubric.components else ()),
                *(each.of for each in formulas if isinstance(each, Statistic | Ratio)),
            )
        )
        self._columns = {name: MetricColumn(keep=name in kept) for name in named}
        self._judge = MetricColumn()
        self._wins = MetricColumn()
        wheres = [each.where for each in formulas if isinstance(each, Share | Ratio)]
        self._held: dict[Comparison, int] = dict.fromkeys(wheres, 0)
        self._reported: dict[Comparison, int] = dict.fromkeys(wheres, 0)
        self.samples = self._judged = 0
        self._flags: dict[str, int] = dict.fromkeys(RATES, 0)

    def add(self, result: SampleResult) -> None:
        """Add a sample."""
        self.samples += 1
        for name, column in self._columns.items():
            value = result.metrics.get(name)
            if value is not None:
                column.add(value)
        for where in self._held:
            value = result.metrics.get(where.name)
            if value is not None:
                self._reported[where] += 1
                self._held[where] += where.passes(value)
        self._judged += result.judged and result.votes_valid > 0
        if result.judge_score is not None:
            self._judge.add(result.judge_score)
        if result.win is not None:
            self._wins.add(result.win)
        for name in _flags_of(result, self._rubric.overall_name):
            self._flags[name] += 1
        if self.samples % CHUNK == 0:
            for column in (*self._columns.values(), self._judge, self._wins):
                column.add_up()

    def metrics(self) -> tuple[Metrics, Counts]:
        """Return every metric of the run by name, and from how many samples it comes."""
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
        for metric in self._rubric.metrics:
            metrics[metric.name], counts[metric.name] = self._value(metric.formula)
        return metrics, counts

    def _add_rates(self, metrics: Metrics, counts: Counts) -> None:
        for name, count in self._flags.items():
            metrics[name] = count / self.samples if self.samples else None
            counts[name] = self.samples
        if not self._rubric.pass_rules:
            metrics["pass_rate"], counts["pass_rate"] = None, 0
        # Of the samples that a judge replied to: the others have no reply to be read (C15).
        fallen = self._flags["judge_fallback_rate"]
        reported = self._judged if self._rubric.protocol.fallback_score is not None else 0
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


def _flags_of(result: SampleResult, overall: str) -> Iterator[str]:  # noqa: C901 - one line a rate
    """Yield the rates that count a sample."""
    if result.passed is True:
        yield "pass_rate"
    unmeasured = result.by_rules and result.metrics.get(overall, 0) is None
    if unmeasured or (result.judged and not result.votes_valid and not result.by_rules):
        yield "unscored_rate"
    if result.evaluator_error is not None:
        yield "evaluator_error_rate"
    if result.judge_fallback is True:
        yield "judge_fallback_rate"
    if result.needs_review:
        yield "review_rate"
    if result.safety_flag:
        yield "safety_rate"
    if result.stable is False:
        yield "unstable_rate"
    if result.confidence == "low" and result.votes_valid > 0:
        yield "low_confidence_rate"
    if result.timed_out:
        yield "timeout_rate"
    if result.target_error is not None:
        yield "target_error_rate"
