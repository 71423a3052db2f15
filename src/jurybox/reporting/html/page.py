"""The page of a run as plain data, built from the run's row without reading samples.

The caller passes in content that needs samples, such as the worst ones and their reasoning.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from jurybox.calibration.calibration_record import CalibrationStatus
from jurybox.documents.numbers import difference, metric_value, show_number
from jurybox.errors import Unreadable
from jurybox.reporting.attention import Concern, SampleCard
from jurybox.reporting.html.histograms import (
    Distribution,
    PlottedMetric,
    RunMetrics,
    measure_distributions,
    score_distributions,
)
from jurybox.reporting.html.panels import (
    Gauge,
    Grouping,
    Independence,
    Jury,
    OrderMetric,
    Position,
    gauge,
    groupings,
    jury_of,
    position_of,
)
from jurybox.reporting.metric_text import causes_of, failures_of, key_metric, metrics_of
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.view import RunView
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import AGGREGATE_SCORE, SAMPLES
from jurybox.rubric.rubric_model import Rubric, releases
from jurybox.scoring.sample_result import JUDGE_SCORE
from jurybox.statistics.jury_agreement import JuryAgreement

UNSTABLE_RATE: Final = "unstable_rate"
_NOT_YET: Final = "not yet: the run isn't finished"


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The run that this one is compared with: its metrics, and the test results."""

    run_id: str
    name: str
    conclusion: str
    values: dict[str, float | None]

    def change(self, metric: PlottedMetric) -> str:
        """Return by how much a metric changed, in words; nothing where that isn't known."""
        apart = difference(self.values.get(metric.name), metric.value)
        if apart is None:
            return ""
        return f"{'+' if apart > 0 else ''}{metric_value(metric.name, apart)} against {self.name}"


class Extras(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a page that require reading samples; empty unless the caller supplies them."""

    worst: tuple[SampleCard, ...] = ()
    slowest: tuple[SampleCard, ...] = ()
    independence: Independence | None = None
    baseline: Baseline | None = None
    # A text if there is no calibration, or reviews are still being compared.
    calibration: CalibrationStatus | str | None = None
    people: ReviewAgreement | str | None = None
    jury_agreement: JuryAgreement | None = None
    position: tuple[OrderMetric, ...] = ()
    unstable: tuple[SampleCard, ...] = ()


NO_EXTRAS: Final = Extras()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision; of the samples so far unless ``final``.

    ``word`` and ``sentence`` answer whether it can be shipped, and why; ``tone`` is ``passes``,
    ``fails``, ``waits``, or nothing where the rubric decides nothing.
    """

    word: str
    tone: str
    sentence: str
    final: bool
    decision: str | None
    meaning: str
    level: str | None
    level_meaning: str


class FailureCause(msgspec.Struct, frozen=True, kw_only=True):
    """Why samples failed: how many for this reason, and which samples to ask for."""

    cause: str
    count: int
    share: float
    query: str


class CriterionMetric(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a criterion, or of the overall score."""

    id: str
    label: str
    scale: str
    weight: float | None
    level: str
    mean: PlottedMetric


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """All that a run's page shows, in its order."""

    run_id: str
    suite: str
    status: str
    samples: int
    planned: int
    rubric: str
    target: str
    created_at: str
    finished_at: str | None
    notes: tuple[str, ...]
    concerns: tuple[Concern, ...]
    causes: tuple[str, ...]
    queued: int
    queued_for: dict[str, int]
    verdict: Verdict
    headlines: tuple[PlottedMetric, ...]
    failures: tuple[FailureCause, ...]
    gates: tuple[Gauge, ...]
    criteria: tuple[CriterionMetric, ...]
    metrics: tuple[PlottedMetric, ...]
    scores: tuple[Distribution, ...]
    groupings: tuple[Grouping, ...]
    jury: Jury | None
    position: Position | None
    measures: tuple[Distribution, ...]
    repeats: dict[str, Any]
    cost: dict[str, Any]
    metadata: tuple[tuple[str, str], ...]
    digest: str | None
    extras: Extras = NO_EXTRAS

    @property
    def failed_gates(self) -> tuple[Gauge, ...]:
        """The gates that fail."""
        return tuple(gate for gate in self.gates if not gate.passed)

    @property
    def repeated(self) -> int:
        """How many repeats there are."""
        return self.repeats.get("n", 1)

    @property
    def reviewed(self) -> int:
        """How many of the samples that a person should look at have been reviewed blind."""
        people = self.extras.people
        return people.flagged.samples if isinstance(people, ReviewAgreement) else 0

    def corrected(self, metric: PlottedMetric) -> str:
        """Return a metric as corrected by the run's reviews; empty where they correct nothing."""
        people, name = self.extras.people, metric.name
        for each in people.estimates if isinstance(people, ReviewAgreement) else ():
            made = each.mean.corrected
            if f"{each.metric}_mean" == name and made.value is not None and made.interval:
                low, high = (
                    metric_value(name, end) for end in (made.interval.low, made.interval.high)
                )
                labels = f"{each.mean.human.n:,} reviews"
                return f"corrected by {labels}: {metric_value(name, made.value)} ({low} to {high})"
        return ""

    @property
    def calm(self) -> bool:
        """Whether nothing is flagged; what the rubric decides may still be anything."""
        return not (self.notes or self.failed_gates or self.concerns or self.queued)

    @property
    def intervals(self) -> bool:
        """Whether the mean of any criterion has an interval."""
        return any(row.mean.interval is not None for row in self.criteria)


def run_page(
    view: RunView, rubric: Rubric, concerns: Sequence[Concern], *, extras: Extras = NO_EXTRAS
) -> RunPage:
    """Return the page of a run."""
    summary, estimates = view.summary, RunMetrics(view.conclusion, rubric)
    criteria = _criteria(rubric, estimates)
    position = position_of(view, rubric)
    gates = tuple(gauge(gate, rubric, estimates) for gate in view.gates)
    reported = {each.mean.name for each in criteria} | {SAMPLES}
    if position is None or position.stable is None:
        # Where nothing was compared in two orders, a zero would look like praise.
        reported.add(UNSTABLE_RATE)
    return RunPage(
        run_id=view.run_id,
        suite=view.suite,
        status=view.status,
        samples=summary[SAMPLES],
        planned=view.planned,
        rubric=f"{rubric.id} {rubric.version}",
        target=view.answered,
        created_at=view.created_at,
        finished_at=view.finished_at,
        notes=tuple(note for note in view.notes if note not in view.release.held),
        concerns=tuple(concerns),
        causes=tuple(causes_of({**summary, "failed_samples": {}})),
        queued=view.conclusion.review["queued"],
        queued_for=view.conclusion.review["reasons"],
        verdict=_verdict(view, rubric, gates),
        headlines=_headlines(rubric, estimates),
        failures=tuple(
            FailureCause(
                cause=cause, count=count, share=count / summary[SAMPLES], query=_failed_by(cause)
            )
            for cause, count in failures_of(summary)
        ),
        gates=gates,
        criteria=criteria,
        metrics=tuple(
            estimates.of(metric.name)
            for metric in metrics_of(summary, rubric)
            if metric.name not in reported
        ),
        scores=score_distributions(rubric, estimates),
        groupings=groupings(summary, rubric),
        jury=jury_of(view),
        position=position,
        measures=measure_distributions(rubric, estimates),
        repeats=summary.get("repeats") or {},
        cost=view.cost,
        metadata=_metadata(view),
        digest=view.digest,
        extras=extras,
    )


def _headlines(rubric: Rubric, estimates: RunMetrics) -> tuple[PlottedMetric, ...]:
    """Return the metrics that come first: how many samples pass, and how good they are."""
    names = dict.fromkeys(("pass_rate", key_metric(rubric), f"{rubric.overall_name}_mean"))
    found = (estimates.of(name) for name in names)
    return tuple(each for each in found if each.value is not None)


# Scores are rounded to six decimals before they meet a threshold, so this is the nearest to it.
_NEAREST: Final = 1e-6


def _failed_by(cause: str) -> str:
    """Return which samples the list of samples has to show."""
    if cause.startswith("no response"):
        return "flag=target_error"
    try:
        rule = Comparison.parse(cause)
    except Unreadable:
        return "flag=unscored"
    end = {
        ">=": f"&high={show_number(round(rule.number - _NEAREST, 6))}",
        ">": f"&high={show_number(rule.number)}",
        "<=": f"&low={show_number(round(rule.number + _NEAREST, 6))}",
        "<": f"&low={show_number(rule.number)}",
    }.get(rule.operator)
    return "flag=failed" if end is None else f"flag=failed&metric={rule.name}{end}"


def _outcome(view: RunView, rubric: Rubric, gates: Sequence[Gauge]) -> tuple[str, str, str]:
    """Return the verdict in a word, its tone, and the reason in a sentence."""
    conclusion, held = view.conclusion, view.release.held
    failed = [gate for gate in gates if not gate.passed]
    reasons = "; ".join((*map(_why_failed, failed), *held))
    if view.status != "finished":
        return "Not finished", "waits", "The run has to be finished before anything is decided."
    if conclusion.decision is not None:
        word = conclusion.decision.replace("_", " ").capitalize()
        good = releases(rubric.decisions, conclusion.decision)
        tone = "passes" if good else "waits" if held else "fails"
        return word, tone, "; ".join(conclusion.decision_reasons)
    if not gates and conclusion.release_ready is None:
        return "No verdict", "", "The rubric has no gates, so nothing is decided."
    if not failed and held:
        return "Awaiting review", "waits", reasons
    return ("Don't ship", "fails", reasons) if failed else ("Ship", "passes", "Every gate passes")


def _why_failed(gate: Gauge) -> str:
    value = "unknown" if gate.value is None else gate.written
    return f"{gate.metric.name} is {value} and has to be {gate.gate.partition(' ')[2]}"


def _verdict(view: RunView, rubric: Rubric, gates: Sequence[Gauge]) -> Verdict:
    conclusion = view.conclusion
    word, tone, sentence = _outcome(view, rubric, gates)
    meanings = {each.decide: each.meaning for each in rubric.decisions}
    level = rubric.level(view.summary.get(f"{rubric.overall_name}_mean"), conclusion.decision)
    return Verdict(
        word=word,
        tone=tone,
        sentence=sentence,
        final=view.status == "finished",
        decision=conclusion.decision,
        meaning=meanings.get(conclusion.decision or "", ""),
        level=conclusion.quality_level,
        level_meaning="" if level is None else level.meaning,
    )


def _criteria(rubric: Rubric, estimates: RunMetrics) -> tuple[CriterionMetric, ...]:
    """Return the means of the overall score and of all criteria that have scores."""
    whole = f"{rubric.overall_name}_mean"
    rows = [
        CriterionMetric(
            id=rubric.overall_name,
            label="Overall, by the criteria's weights",
            scale="0.0-1.0",
            weight=None,
            level="",
            mean=estimates.of(whole),
        )
    ]
    if rubric.components:
        aggregate = estimates.of(AGGREGATE_SCORE)
        label = "Aggregate, by the components' weights"
        rows.insert(
            0, msgspec.structs.replace(rows[0], id=AGGREGATE_SCORE, label=label, mean=aggregate)
        )
    for each in rubric.criteria:
        mean = estimates.of(rubric.mean_of(each.id))
        # A mean isn't a level: the mean of 1 and 3 doesn't have the meaning of level 2.
        known = mean.value is not None and each.scale.continuous
        band = each.band(mean.value or 0.0) if known else None
        rows.append(
            CriterionMetric(
                id=each.id,
                label=each.name,
                scale=str(each.scale),
                weight=each.weight,
                level="" if band is None else band.label,
                mean=mean,
            )
        )
    judge = estimates.of(f"{JUDGE_SCORE}_mean")
    if judge.value is not None:
        label = "What the judge says beside the rules"
        rows.append(msgspec.structs.replace(rows[0], id=JUDGE_SCORE, label=label, mean=judge))
    return tuple(rows) if any(row.mean.n for row in rows) else ()


def _metadata(view: RunView) -> tuple[tuple[str, str], ...]:
    known: dict[str, Any] = {
        **view.metadata,
        "finished_at": view.finished_at or _NOT_YET,
        "elapsed_s": view.elapsed_s,
    }
    return tuple((name, _value(value)) for name, value in known.items())


def _value(value: object) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
