"""Several runs side by side: their metrics, paired tests against the first, and outputs."""

import heapq
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from jurybox.documents.numbers import dollars, metric_value
from jurybox.engine.records import SampleRow
from jurybox.reporting.attention import Badge, badges_of
from jurybox.reporting.compare_runs import CompareOptions, compare_runs
from jurybox.reporting.metric_text import key_metric, metric_title, plain_words
from jurybox.reporting.reasons import failed_rules, main_reason
from jurybox.reporting.release import flag_outcome, read_reviews
from jurybox.reporting.run_changes import MetricPair, SampleChange
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.stored import SampleRecord, reading
from jurybox.reporting.view import RunView
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.tally import MEASURED
from jurybox.statistics.metric_differences import (
    MetricDifference,
    comparable_scores,
    recorded_score,
    rescaled,
    score_of,
    win_of,
)
from jurybox.storage.store import Store
from jurybox.text_format import counted, cut, joined

_LONGEST_TASK = 2000
_LONGEST_REASON = 400


class TargetOutput(msgspec.Struct, frozen=True, kw_only=True):
    """One run's result for a sample; ``number`` is the sample's position in the run.

    ``score`` is the recorded score, which the majority of votes gave and pass rules use;
    ``by_votes`` is the mean of the votes, by which samples are compared, and of a pair how far
    response A wins, from 0 to 1. ``safety`` is what
    reviewers decided on a safety concern, empty if nothing, and None without a concern.
    """

    number: int
    response: str
    other: str | None  # the response B of a pair
    winner: str | None
    score: float | None
    by_votes: float | None
    passed: bool | None
    scored: bool  # false if no judge gave a valid vote, or the target failed
    failed: str  # the pass rules that fail
    reason: str  # of the confirmed safety concern, the criterion that changed most, or the lowest
    safety: str | None
    concern: bool  # whether a reviewer sees a safety concern

    @property
    def outcome(self) -> str:
        """Whether it passed, failed or has no score; empty if the rubric doesn't say."""
        if self.passed is None and self.scored:
            return ""
        scored = self.failed or self.scored
        return "passed" if self.passed else "failed" if scored else "unscored"

    @property
    def badges(self) -> tuple[Badge, ...]:
        """The verdict and the safety concern, as in lists of samples."""
        flags = filter(None, [self.outcome, "" if self.safety is None else "safety"])
        return badges_of([*flags], {"safety": self.safety} if self.safety else {})


class SampleOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """A sample in all runs; ``apart`` is highest minus lowest score by votes, None without.

    ``differs`` says whether it changed from the first run to another one, as a comparison of these
    counts it: what people decided is no change.
    """

    id: str
    repeat: int
    task: str
    outputs: tuple[TargetOutput | None, ...]
    apart: float | None
    differs: bool

    @property
    def concern(self) -> bool:
        """Whether a reviewer sees a safety concern in a run."""
        return any(each is not None and each.concern for each in self.outputs)


class ComparedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of a run; ``n`` is how many pairs of samples a tested mean is over, else None.

    ``shared`` are the values of the first run and of this one that the difference is between, if
    these aren't the ones that are shown.
    """

    value: float | None
    n: int | None = None
    difference: float | None = None
    test: MetricDifference | None = None
    shared: tuple[float | None, float | None] | None = None


def _measured(metric: str, diff: RunDiff) -> tuple[MetricDifference | None, MetricPair | None]:
    """Return a metric's test and values over the shared samples; no values if not comparable."""
    shared = ((None, pair) for pair in diff.shared)
    rows = (*diff.rows(), *shared) if diff.compared else ()
    test, pair = next((each for each in rows if each[1].metric == metric), (None, None))
    known = pair is not None and pair.difference is not None
    return test, pair if known and (test is None or diff.comparable(test)) else None


def _pairs(test: MetricDifference | None) -> int | None:
    return None if test is None or test.is_share else test.comparison.n


def _against(
    first: float | None,
    recorded: float | None,
    test: MetricDifference | None,
    pair: MetricPair | None,
) -> ComparedMetric:
    if pair is None:
        return ComparedMetric(value=recorded, test=test)
    n, ends = _pairs(test), (pair.a, pair.b)
    value = pair.b if n else recorded
    shared = None if ends == (first, value) else ends
    return ComparedMetric(value=value, n=n, difference=pair.difference, test=test, shared=shared)


def standing(diff: RunDiff) -> str:
    """Return whether run B is worse or better, or how else it differs; empty if not comparable."""
    lead, other = diff.leading, diff.other_standards
    if diff.tone:
        worse = "worse" if lead else "with too few scores to compare"
        return worse if diff.tone == "fails" else "better"
    if lead and other and lead.comparison.verdict != "undecided":
        return f"scored {lead.comparison.verdict} by another {joined(other)}"
    return "not clearly better or worse" if diff.compared else ""


class SideBySide(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs; ``differences`` has a comparison of each other run with the first.

    ``samples`` are those with safety concerns of reviewers and then those whose scores differ most;
    ``left`` is how many are left out.
    """

    names: tuple[str, ...]
    runs: tuple[RunView, ...]
    headline: str | None
    metrics: dict[str, tuple[float | None, ...]]
    differences: tuple[RunDiff, ...]
    samples: tuple[SampleOutputs, ...] = ()
    left: int = 0

    def conclusions(self) -> Iterator[tuple[str, RunDiff]]:
        """Yield each comparison with the first run, with its heading."""
        for name, diff in zip(self.names[1:], self.differences, strict=True):
            yield f"{name} against {self.names[0]}", diff

    def standings(self) -> Counter[str]:
        """Count the runs that are worse than the first, then the better ones, then the others."""
        found = filter(None, map(standing, self.differences))
        return Counter(sorted(found, key=lambda word: (word != "worse", word != "better")))

    def row(self, metric: str) -> tuple[ComparedMetric, ...]:
        """Return a metric of each run, with its difference from the first."""
        values = self.metrics[metric]
        found = [_measured(metric, diff) for diff in self.differences]
        # Means of votes are known only over the samples of a comparison.
        means = [(pair.a, _pairs(test)) for test, pair in found if pair and _pairs(test)]
        value, n = max(means, key=lambda each: each[1] or 0, default=(values[0], None))
        others = (_against(value, own, *each) for own, each in zip(values[1:], found, strict=True))
        return (ComparedMetric(value=value, n=n), *others)

    def alone(self) -> list[str]:
        """Return the metrics that only one run has, in words."""
        return [
            f"{metric_title(metric, run.rubric)} {metric_value(metric, value)} ({name})"
            for metric, values in self.metrics.items()
            for run, name, value in zip(self.runs, self.names, values, strict=True)
            if value is not None and values.count(None) == len(values) - 1
        ]

    def used(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the mean times and tokens of whole runs, and the cost if it is known."""
        for name in MEASURED:
            found = [view.conclusion.spreads.metrics.get(name) for view in self.runs]
            if any(found):
                means = [metric_value(name, each and each.mean) for each in found]
                yield f"mean {plain_words(name)}", means
        asked = [None if view.derived_from else view.cost.get("dollars") for view in self.runs]
        if any(asked):
            pairs = zip(self.runs, asked, strict=True)
            yield "cost", ["no calls" if view.derived_from else dollars(own) for view, own in pairs]

    @property
    def unlike(self) -> str:
        """How many samples and votes the first run has, and the runs unlike it; empty if none."""
        same = all(diff.same_samples for diff in self.differences)
        votes = [view.metadata.get("votes") or 0 for view in self.runs]
        if same and len({*votes}) == 1:
            return ""
        over = "; what is compared is over the samples that a run shares with the first"
        shared = "" if same else over
        have = [
            f"has {counted(view.summary['samples'], 'sample')} with {counted(each, 'vote')} each"
            for view, each in zip(self.runs, votes, strict=True)
        ]
        named = zip(self.names, have, strict=True)
        unlike = [f"{name} {said}" for name, said in named if said != have[0]]
        return f"{', '.join((f'{self.names[0]} {have[0]}', *unlike))}{shared}"

    def rescaled(self) -> list[str]:
        """Return the titles of the criteria whose scale differs from the first run's."""
        first, *others = (view.rubric for view in self.runs)
        found = dict.fromkeys(name for other in others for name in rescaled(first, other))
        return [metric_title(name, first) for name in found]

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        pairs = zip(self.names[1:], self.differences, strict=True)
        return {
            "against": self.names[0],
            "targets": list(self.names),
            "run_ids": [view.run_id for view in self.runs],
            "metrics": {name: list(values) for name, values in self.metrics.items()},
            "differences": [{"target": name, **diff.in_short("b")} for name, diff in pairs],
            "samples": msgspec.to_builtins(self.samples),
        }


def side_by_side(
    store: Store, views: Sequence[RunView], options: CompareOptions, most: int = 0
) -> SideBySide:
    """Compare runs with the first of them, and return the outputs of up to ``most`` samples."""
    few = msgspec.structs.replace(options, limit=most)
    differences = tuple(compare_runs(store, views[0], other, few) for other in views[1:])
    # A run with another rubric may have no score in common with the first.
    headline = next((each.headline for each in differences if each.headline is not None), None)
    chosen: list[SampleOutputs] = []
    comparable = (each for each in differences if each.compared or each.same_rubric)
    changed = {(each.id, each.repeat) for diff in comparable for each in diff.samples}
    if most:
        with reading(views[0].row):
            samples = store.samples(views[0].run_id)
            rows = (_outputs(store, row, views, headline, changed) for row in samples)
            chosen = heapq.nlargest(most, rows, key=_urgency)
    return SideBySide(
        names=_names(views),
        runs=tuple(views),
        headline=headline,
        metrics=_metrics(views),
        differences=differences,
        samples=tuple(chosen),
        left=max(0, views[0].summary["samples"] - len(chosen)) if most else 0,
    )


def _urgency(sample: SampleOutputs) -> tuple[bool, bool, float]:
    return sample.differs and sample.concern, sample.differs, sample.apart or 0.0


def _names(views: Sequence[RunView]) -> tuple[str, ...]:
    """Return a label for each run: its target or its name; its id if another run has that name."""
    targets = [view.metadata.get("target_name") for view in views]
    names = [view.name for view in views]
    if None not in targets and len(set(targets)) == len(targets):
        return tuple(map(str, targets))
    return tuple(
        view.run_id if names.count(name) > 1 else name
        for view, name in zip(views, names, strict=True)
    )


def _metrics(views: Sequence[RunView]) -> dict[str, tuple[float | None, ...]]:
    """Return the most informative metrics, in order, and the shares of dangers and failures."""
    names: dict[str, None] = {}
    for rubric in (view.rubric for view in views):
        means = (rubric.mean_of(each.id) for each in rubric.criteria)
        gated = (gate.name for gate in rubric.gates)
        names |= dict.fromkeys((key_metric(rubric), "pass_rate", *means, *gated))
    shares = ("safety_rate", "unscored_rate", "target_error_rate")
    names |= {name: None for name in shares if any(view.summary.get(name) for view in views)}
    return {name: tuple(view.summary.get(name) for view in views) for name in names}


def changed_outputs(
    store: Store, diff: RunDiff, samples: Iterable[SampleChange]
) -> Iterator[tuple[SampleChange, SampleOutputs]]:
    """Yield samples of a comparison with the outputs of both runs."""
    with reading(diff.a.row):
        for change in samples:
            sample = store.find_sample(diff.a.run_id, change.id, change.repeat)
            if sample is not None:
                key = change.id, change.repeat
                yield change, _outputs(store, sample, (diff.a, diff.b), diff.headline, {key})


def _outputs(
    store: Store,
    sample: SampleRow,
    views: Sequence[RunView],
    headline: str | None,
    changed: Container[tuple[str, int]],
) -> SampleOutputs:
    """Return a sample of the first run with its outputs in all runs."""
    key = sample.sample_id, sample.repeat
    found = [sample, *(store.find_sample(view.run_id, *key) for view in views[1:])]
    records = [None if row is None else SampleRecord(row) for row in found]
    criterion = _changed_most(filter(None, records), [view.rubric for view in views])
    outputs = tuple(
        None if record is None else _output(store, record, view, headline, criterion)
        for record, view in zip(records, views, strict=True)
    )
    known = [each.by_votes for each in _compared(outputs) if each.by_votes is not None]
    apart = round(max(known) - min(known), 9) if known else None
    return SampleOutputs(
        id=sample.sample_id,
        repeat=sample.repeat,
        task=cut(SampleRecord(sample).task, _LONGEST_TASK),
        outputs=outputs,
        apart=apart,
        differs=bool(apart) or key in changed,
    )


def _compared(outputs: Iterable[TargetOutput | None]) -> list[TargetOutput]:
    """Return the results that can be compared with the first: of pairs, or of single responses."""
    given = [each for each in outputs if each is not None]
    return [each for each in given if (each.other is None) == (given[0].other is None)]


def _changed_most(records: Iterable[SampleRecord], rubrics: Sequence[Rubric]) -> str:
    """Return the criterion whose score changed most, as a share of its scale; else ``""``."""
    results, moved = [each.result for each in records], {"": 0.0}
    for each in rubrics[0].criteria:
        known = [score for one in results if (score := score_of(one, each.id)) is not None]
        if known and all(each.id in comparable_scores(rubrics[0], other) for other in rubrics):
            moved[each.id] = each.scale.distance(max(known), min(known))
    return max(moved, key=moved.__getitem__)


def _output(
    store: Store, record: SampleRecord, view: RunView, headline: str | None, criterion: str
) -> TargetOutput:
    row, result = record.row, record.result
    concern = row.number in view.release.concerned
    unsafe = concern or result.safety_flag
    reviews = (
        read_reviews(view.row, store.reviews_of(view.run_id, row.number)).every if unsafe else ()
    )
    other = record.responses.response_b
    return TargetOutput(
        number=row.number,
        response=record.response or result.target_error or "",
        other=None if other is None else other.text,
        winner=result.winner,
        score=recorded_score(result, headline or ""),
        by_votes=win_of(result) if other is not None else score_of(result, headline or ""),
        passed=record.passed,
        scored=result.evaluator_error is None and result.target_error is None,
        failed=failed_rules(record, view.rubric),
        reason=cut(main_reason(record, view.rubric, reviews, criterion=criterion), _LONGEST_REASON),
        safety=flag_outcome(reviews, flagged=result.safety_flag) if unsafe else None,
        concern=concern,
    )
