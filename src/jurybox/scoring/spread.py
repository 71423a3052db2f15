"""How the metrics of a run are spread: what a chart of it needs, without reading a sample again.

Bins are laid before the first value comes, so one pass is enough, and memory grows with the bins,
not with the samples.
"""

import math
from collections import Counter
from itertools import pairwise
from typing import Final

import msgspec

from jurybox.judging.evaluation_report import CONFIDENCES
from jurybox.rubric.metrics import SAMPLE_SCORE
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scale import UNIT_SCALE, ScoreBins
from jurybox.scoring.sample_result import JUDGE_SCORE, WIN, SampleResult
from jurybox.scoring.tally import CHUNK, MetricColumn

Bin = tuple[float, float, int]

MEASURED: Final = ("latency_e2e_ms", "total_tokens")
"""The measures whose spread is kept, in bins that grow with the values."""

_EQUAL_BINS: Final = 20
# Ten bins for each power of ten, at numbers that can be read: Renard's series R10.
_STEPS: Final = ("1", "1.25", "1.6", "2", "2.5", "3.2", "4", "5", "6.3", "8")
_EDGES: Final = (0.0, *(float(f"{step}e{power}") for power in range(-3, 13) for step in _STEPS))
_MEASURE_BINS: Final = ScoreBins(ends=tuple(pairwise(_EDGES)), starts=_EDGES[:-1])


class MetricSpread(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the samples of a run."""

    n: int  # how many samples have it, in all repeats
    mean: float  # of all of them
    # How far all of them spread about their mean, as ``sqrt(m / (m - 1) * v)`` with their
    # variance ``v`` about it and ``m`` as ``independent``: without repeats that is the sample
    # standard deviation. Repeats of a sample add to it whatever they differ by, and never lend it
    # their number. None with fewer than two independent values.
    sd: float | None
    # On how many samples at least the values stand, for the repeats of a sample aren't
    # independent of each other: as many as in the repeat that has most of them.
    independent: int
    # Low end, high end and count of each bin, in order. Where both ends are the same the bin is
    # that one score: so it is on scales of at most 21 whole numbers, and a score between two of
    # them counts for the nearest. Other scores have 20 equal bins from end to end of their scale;
    # empty bins are there, too. Measures have ten bins for each power of ten, from the lowest
    # that is used to the highest. A bin has its low end in it, but not its high end; only the
    # last one of a scale has both.
    bins: tuple[Bin, ...]


class RunSpreads(msgspec.Struct, frozen=True, kw_only=True):
    """The spreads of a run's metrics by name, and how sure its verdicts are."""

    # The criteria, the overall score, ``sample_score`` and ``judge_score`` where there are any,
    # latency and tokens; a metric that no sample has is left out.
    metrics: dict[str, MetricSpread]
    # How many samples with a valid vote are of low, moderate and high confidence.
    confidence: dict[str, int]
    # How many pairs have the same winner in both orders, or not: ``unstable``.
    stable: dict[str, int]
    votes: dict[str, int]  # how many were ``requested``, ``valid``, ``skipped`` and ``lost``


class SpreadTally:
    """The spreads of a run as its samples come in."""

    def __init__(self, rubric: Rubric) -> None:
        scales = {each.id: each.scale for each in rubric.criteria} | {
            rubric.overall_name: UNIT_SCALE
        }
        if rubric.components:
            scales[SAMPLE_SCORE] = UNIT_SCALE
        self._metrics = {name: _Metric(scale.bins(_EQUAL_BINS)) for name, scale in scales.items()}
        self._metrics |= {name: _Metric(_MEASURE_BINS, trimmed=True) for name in MEASURED}
        # A judge's overall score is its only criterion, or the weighted overall score.
        whole = rubric.criteria[0].scale if len(rubric.criteria) == 1 else UNIT_SCALE
        self._judge = _Metric(whole.bins(_EQUAL_BINS))
        self._wins = _Metric(UNIT_SCALE.bins(_EQUAL_BINS))
        self._confidence: dict[str, int] = dict.fromkeys(CONFIDENCES, 0)
        self._stable = {"stable": 0, "unstable": 0}
        self._samples = self._requested = self._valid = self._skipped = 0

    def add(self, result: SampleResult, repeat: int) -> None:
        """Add a sample of a repeat."""
        for name, metric in self._metrics.items():
            value = result.metrics.get(name)
            if value is not None:
                metric.add(value)
                metric.repeats[repeat] += 1
        if result.judge_score is not None:
            self._judge.add(result.judge_score)
            self._judge.repeats[repeat] += 1
        if result.win is not None:
            self._wins.add(result.win)
            self._wins.repeats[repeat] += 1
        if result.confidence is not None and result.votes_valid:
            self._confidence[result.confidence] += 1
        if result.stable is not None:
            self._stable["stable" if result.stable else "unstable"] += 1
        self._requested += result.votes_requested
        self._valid += result.votes_valid
        self._skipped += result.votes_skipped
        self._samples += 1
        if self._samples % CHUNK == 0:
            for metric in (*self._metrics.values(), self._judge, self._wins):
                metric.add_up()

    def describe(self) -> RunSpreads:
        """Return the spreads of the samples so far."""
        metrics = {**self._metrics, JUDGE_SCORE: self._judge, WIN: self._wins}
        reported = {name: each.describe() for name, each in metrics.items()}
        return RunSpreads(
            metrics={name: each for name, each in reported.items() if each is not None},
            confidence=dict(self._confidence),
            stable=dict(self._stable),
            votes={
                "requested": self._requested,
                "valid": self._valid,
                "skipped": self._skipped,
                "lost": self._requested - self._skipped - self._valid,
            },
        )


class _Metric(MetricColumn):
    """One metric as its values come in; ``trimmed`` leaves out empty bins at both ends."""

    def __init__(self, bins: ScoreBins, *, trimmed: bool = False) -> None:
        super().__init__()
        self._bins = bins
        self._trimmed = trimmed
        self._counts: Counter[int] = Counter()
        self.repeats: Counter[int] = Counter()
        """How many values each repeat has."""

    def add_up(self) -> None:
        """Add up the values that came since the last time, and put them into their bins."""
        self._counts.update(map(self._bins.place, self._fresh))
        super().add_up()

    def describe(self) -> MetricSpread | None:
        """Return the spread; None without a value."""
        mean = self.statistic("mean")
        if mean is None:
            return None
        independent = max(self.repeats.values())
        variance = self.variance() if independent > 1 else None
        return MetricSpread(
            n=self.count,
            mean=mean,
            sd=None if variance is None else math.sqrt(variance * independent / (independent - 1)),
            independent=independent,
            bins=self._counted_bins(),
        )

    def _counted_bins(self) -> tuple[Bin, ...]:
        counts = self._counts
        bins = tuple((low, high, counts[at]) for at, (low, high) in enumerate(self._bins.ends))
        return bins[min(counts) : max(counts) + 1] if self._trimmed and counts else bins
