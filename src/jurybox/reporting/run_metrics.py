"""The metrics and gates of a run, with their intervals and axes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from jurybox.documents.numbers import metric_value
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.rubric.metrics import (
    AGGREGATE_SCORE,
    LOW_CONFIDENCE_RATE,
    LOWEST_MEAN,
    LOWEST_SCENARIO,
    RATES,
    SAFETY_RATE,
    SAMPLE_SCORE,
    SAMPLES,
    WIN_RATE,
    Comparison,
    Ratio,
    Share,
    Statistic,
)
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import JUDGE_SCORE, WIN
from jurybox.scoring.summary import Conclusion, GateOutcome
from jurybox.scoring.tally import MetricSpread
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import bounded_mean, t_quantile, wilson

_STEPS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_AIR: Final = 1.15


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis from ``low`` to ``high``; ``bounded`` if no value can lie outside it."""

    low: float
    high: float
    bounded: bool

    def share(self, value: float) -> float:
        """Return the position of a value as a share from 0 to 1; values outside are clamped."""
        if self.high <= self.low:
            return 0.0
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


WHOLE: Final = Axis(low=0.0, high=1.0, bounded=True)


def axis_of(name: str, rubric: Rubric, *values: float | None) -> Axis:
    """Return the axis of a run's metric: its scale, 0 to 1, or one that fits the values."""
    known = [value for value in values if value is not None]
    axis = _declared(name, rubric)
    if axis is None:
        return Axis(low=min(0.0, *known, 0.0), high=above(max(0.0, *known, 0.0)), bounded=False)
    # A gate may require a value that its metric can't have.
    low, high = min(axis.low, *known, axis.low), max(axis.high, *known, axis.high)
    return Axis(low=low, high=high, bounded=axis.bounded)


def _declared(name: str, rubric: Rubric) -> Axis | None:
    formula = rubric.metrics.get(name)
    if isinstance(formula, Share):
        return WHOLE
    if isinstance(formula, Statistic):
        return None if formula.by == "sum" else of_sample_metric(formula.of, rubric)
    if formula is not None:
        return None
    if name in (*RATES, WIN_RATE, AGGREGATE_SCORE, LOWEST_SCENARIO):
        return WHOLE
    if name == LOWEST_MEAN:
        scales = [criterion.scale for criterion in rubric.criteria]
        low = min(scale.low for scale in scales)
        return Axis(low=low, high=max(scale.high for scale in scales), bounded=True)
    return of_sample_metric(name.removesuffix("_mean"), rubric) if name.endswith("_mean") else None


def of_sample_metric(name: str, rubric: Rubric) -> Axis | None:
    """Return the axis of a sample metric; None if it has no scale."""
    if name in (rubric.overall_name, "sample_score"):
        return WHOLE
    criterion = rubric.criterion(name)
    if criterion is None and name == JUDGE_SCORE:
        # A judge's overall score is its only criterion, or the weighted overall score.
        if len(rubric.criteria) != 1:
            return WHOLE
        criterion = rubric.criteria[0]
    if criterion is None:
        return None
    low, high = criterion.scale.ends
    return Axis(low=low, high=high, bounded=True)


def above(value: float) -> float:
    """Return a round number somewhat above a value."""
    if value <= 0:
        return 1.0
    wanted = value * _AIR
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step for step in (*_STEPS, 20.0) if step * power >= wanted) * power


LEVEL: Final = 0.95

_MEAN: Final = "_mean"
_TWO: Final = 2


class PlottedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of a run, with its interval and the axis to plot it on."""

    name: str  # the metric's name in rules and gates
    value: float | None  # None if no sample has a value
    n: int | None  # the number of samples behind it; None for counts
    query: str | None = None  # the query for these samples; None if no filter finds them
    interval: Interval | None  # the confidence interval
    reason: str | None  # why there is no interval
    axis: Axis  # the axis to plot it on


_CLOSE: Final = 0.3


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """A gate of a run with the statistics of its metric."""

    outcome: GateOutcome
    rule: Comparison
    metric: PlottedMetric

    @property
    def close(self) -> bool:
        """Whether the threshold lies within the interval, so that chance may have decided."""
        interval = self.metric.interval
        return interval is not None and interval.low <= self.rule.number <= interval.high

    @property
    def eventless(self) -> bool:
        """Whether it is a rate without an event: only in large runs does this exclude chance."""
        return self.close and self.rule.name.endswith("_rate") and not self.metric.value

    @property
    def unsure(self) -> bool:
        """Whether chance may have decided; no run is large enough to exclude it at zero."""
        return self.close and not (self.eventless and not self.rule.number)


class CorrectedGate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate, and its outcome with the value that reviews corrected."""

    rule: Comparison
    judged: GateOutcome
    outcome: GateOutcome
    interval: Interval | None

    @property
    def worse(self) -> bool:
        """Whether the gate passes only with the judge's value."""
        return self.judged.passed and not self.outcome.passed

    @property
    def better(self) -> bool:
        """Whether the gate passes only with the corrected value."""
        return self.outcome.passed and not self.judged.passed

    @property
    def close(self) -> bool:
        """Whether the threshold is within the interval of the corrected value."""
        made = self.interval
        return made is not None and made.low <= self.rule.number <= made.high

    @property
    def in_words(self) -> str:
        """The interval of the corrected value, if chance isn't excluded."""
        if self.interval is None or not self.close:
            return ""
        ends = (self.interval.low, self.interval.high)
        low, high = (metric_value(self.rule.name, each) for each in ends)
        return f" (interval {low} to {high}, so chance isn't excluded)"


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How the order of two responses affects winners; ``n`` is 0 if each was scored alone."""

    n: int  # how many pairs were judged in both orders
    unstable: int  # how many of them have a vote whose winner changes with the order
    interval: Interval | None
    winners: dict[str, int]


class RunMetrics:
    """Returns the statistics of a run's metrics and gates."""

    def __init__(self, conclusion: Conclusion, rubric: Rubric) -> None:
        self._conclusion, self._summary = conclusion, conclusion.summary
        self.spreads = conclusion.spreads.metrics
        self._rubric = rubric
        self._counts: dict[str, int] = self._summary.get("n", {})
        self._repeats: int = self._summary.get("repeats", {}).get("n", 1)
        self._formulas = rubric.metrics

    def of(self, name: str) -> PlottedMetric:
        """Return the statistics of one metric."""
        return self.at(name, self._summary.get(name))

    def at(self, name: str, value: float | None) -> PlottedMetric:
        """Return the statistics of a metric with the value that its gate has."""
        n = self._counts.get(name)
        axis = axis_of(name, self._rubric, value)
        interval, reason = self._interval(name, value, n, axis)
        return PlottedMetric(
            name=name,
            value=value,
            n=n,
            query=self._query(name, n),
            interval=interval,
            reason=reason,
            axis=axis,
        )

    def gauges(self, corrected: Mapping[str, Interval | None] = {}) -> Iterator[Gauge]:
        """Yield the gates with the statistics of their metrics, perhaps of corrected values."""
        for gate in self._conclusion.gates:
            rule = Comparison.parse(gate.gate)
            known = self.at(rule.name, gate.value)
            axis = axis_of(rule.name, self._rubric, gate.value, rule.number)
            high = None if known.interval is None else known.interval.high
            interval = corrected.get(gate.gate, known.interval)
            metric = msgspec.structs.replace(
                known, axis=_near(axis, [gate.value, rule.number, high]), interval=interval
            )
            yield Gauge(outcome=gate, rule=rule, metric=metric)

    def corrected_gates(self, people: ReviewAgreement | None) -> dict[str, CorrectedGate]:
        """Return the gates whose metric is corrected by reviews."""
        found = people.by_gated_metric(self._rubric, self._summary[SAMPLES]) if people else {}
        made: dict[str, CorrectedGate] = {}
        for gate in self._conclusion.gates:
            rule = Comparison.parse(gate.gate)
            best = found[rule.name].mean.corrected if rule.name in found else None
            if best is not None and best.value is not None:
                passed = rule.passes(best.value)
                outcome = GateOutcome(gate=gate.gate, value=best.value, passed=passed)
                made[gate.gate] = CorrectedGate(
                    rule=rule, judged=gate, outcome=outcome, interval=best.interval
                )
        return made

    def position(self) -> Position | None:
        """Return the effect of the order; None if no pairs were compared."""
        winners: dict[str, int] = self._summary.get("winners") or {}
        stable = self._conclusion.spreads.stable
        n, unstable = sum(stable.values()), stable.get("unstable", 0)
        if not winners and not n:
            return None
        interval = wilson(unstable / self._repeats, n / self._repeats, LEVEL) if n else None
        return Position(n=n, unstable=unstable, interval=interval, winners=winners)

    def _query(self, name: str, n: int | None) -> str | None:
        """Return the query for the samples behind a metric; None if no filter finds them."""
        formula = self._formulas.get(name)
        if not n:
            return None
        if n == self._summary[SAMPLES]:
            return ""
        measured = formula.where.name if isinstance(formula, Share) else self._source(name)
        if isinstance(formula, Statistic | Ratio):
            measured = formula.of
        if name in {SAFETY_RATE, LOW_CONFIDENCE_RATE}:
            # Of the samples with a valid vote, so with a score or a winner.
            means = {
                WIN_RATE: WIN,
                f"{self._rubric.overall_name}{_MEAN}": self._rubric.overall_name,
            }
            measured = next((means[each] for each in means if self._counts.get(each) == n), None)
        if measured == WIN:
            return "winner=any"
        return None if measured is None else f"metric={measured}"

    def _interval(
        self, name: str, value: float | None, n: int | None, axis: Axis
    ) -> tuple[Interval | None, str | None]:
        if value is None or n == 0:
            return None, "there are no values"
        if n is None:
            lowest = "the lowest of several means has no interval"
            return None, lowest if name in (LOWEST_MEAN, LOWEST_SCENARIO) else "it is a count"
        formula = self._formulas.get(name)
        if isinstance(formula, Share) or (formula is None and name in RATES):
            # Repeats of a sample aren't independent, so only the samples of one repeat count.
            alone = n / self._repeats
            return wilson(value * alone, alone, LEVEL), None
        source = self._source(name)
        if source is None:
            return None, "sums, extremes, percentiles and ratios have no interval"
        spread = self.spreads.get(source)
        if spread is None:
            return None, f"the spread of {source} isn't kept"
        return mean_interval(spread, axis)

    def _source(self, name: str) -> str | None:
        """Return the sample metric of which a run metric is the mean; None if it isn't a mean."""
        formula = self._formulas.get(name)
        if formula is not None:
            return formula.of if isinstance(formula, Statistic) and formula.by == "mean" else None
        if name in (AGGREGATE_SCORE, WIN_RATE):
            return SAMPLE_SCORE if name == AGGREGATE_SCORE else WIN
        return name.removesuffix(_MEAN) if name.endswith(_MEAN) else None


def _near(axis: Axis, values: Sequence[float | None]) -> Axis:
    """Zoom in if all values lie at the lower end."""
    most = max((value for value in values if value is not None), default=axis.high)
    if axis.low < 0 or not 0 < most <= _CLOSE * axis.high:
        return axis
    return msgspec.structs.replace(axis, high=above(most), bounded=False)


def mean_interval(spread: MetricSpread, axis: Axis) -> tuple[Interval | None, str | None]:
    """Return the interval of a mean (Student's on an unbounded axis), or why there is none."""
    n, sd = spread.independent, spread.sd
    if n < _TWO:
        return None, "one sample can't show how samples vary"
    if sd is None:
        return None, "the values are too large"
    if axis.bounded:
        variance, ends = sd**2 * (n - 1) / n, (axis.low, axis.high)
        return bounded_mean(spread.mean, variance, n, ends, degrees=n - 1, level=LEVEL), None
    if sd == 0:
        return None, "all values are the same, so they don't show how values vary"
    half = t_quantile((1 + LEVEL) / 2, n - 1) * sd / n**0.5
    return Interval(low=spread.mean - half, high=spread.mean + half, level=LEVEL, method="t"), None
