"""The page of a run as plain data, built from the run's row without reading samples.

The caller passes in content that needs samples, such as the worst ones and their reasoning.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from jurybox.documents.numbers import difference, metric_change, metric_value, show_number
from jurybox.errors import ParseError
from jurybox.reporting.attention import Concern, QualityLevel, quality_level
from jurybox.reporting.html.charts import Distribution, measure_distributions, score_distributions
from jurybox.reporting.html.extras import NO_EXTRAS, Extras
from jurybox.reporting.metric_text import (
    NO_RESPONSE,
    failures_of,
    key_metric,
    lost_votes,
    metrics_of,
    required_value,
    ruled_title,
)
from jurybox.reporting.run_metrics import (
    Axis,
    Gauge,
    PlottedMetric,
    Position,
    RunMetrics,
    axis_of,
)
from jurybox.reporting.run_verdict import (
    Verdict,
    verdict_of,
)
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import AGGREGATE_SCORE, SAMPLES, UNSTABLE_RATE, WIN_RATE, Comparison
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import JUDGE_SCORE
from jurybox.text_format import counted


class FailureCause(msgspec.Struct, frozen=True, kw_only=True):
    """A reason for failures, its count, and the query for its samples."""

    cause: str
    words: str
    count: int
    share: float
    query: str


class CriterionMetric(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a criterion, or of the overall score."""

    id: str
    label: str
    mean: PlottedMetric
    scale: str = "0.0-1.0"
    weight: float | None = None
    level: str = ""


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """A run, with everything else that its page shows."""

    view: RunView
    verdict: Verdict
    concerns: tuple[Concern, ...]
    headlines: tuple[PlottedMetric, ...]
    failures: tuple[FailureCause, ...]
    gates: tuple[Gauge, ...]
    criteria: tuple[CriterionMetric, ...]
    metrics: tuple[PlottedMetric, ...]
    scores: tuple[Distribution, ...]
    groupings: dict[str, dict[str, Axis]]
    position: Position | None
    measures: tuple[Distribution, ...]
    extras: Extras = NO_EXTRAS

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that the verdict doesn't mention, without the one on missing votes."""
        view = self.view
        others = (each.sentence for each in view.release.elsewhere)
        known = {*view.release.blockers, *others, *lost_votes(view.summary), view.unread_note}
        known.add(f"re-scored from the replies of run {view.derived_from}")  # in the page's head
        return tuple(note for note in view.notes if note not in known)

    @property
    def ordered(self) -> str:
        """The query for the pairs that were judged in both orders; empty if it isn't known."""
        votes = self.extras.jury_agreement
        return f"metric=win.{next(iter(votes.preferences))}" if votes and votes.preferences else ""

    def change(self, metric: PlottedMetric) -> str:
        """Describe the change of a metric since the run's baseline; empty if unknown."""
        diff = self.extras.baseline
        if diff is None:
            return ""
        apart = difference(diff.a.summary.get(metric.name), metric.value)
        if apart is None or diff.a.estimates.of(metric.name).n != metric.n:
            return ""  # it would come from which samples have a score
        other = "".join(f", by another {each}" for each in diff.other_standards)
        return f"{metric_change(metric.name, apart)} against {diff.a.name}{other}"

    def corrected(self, metric: PlottedMetric) -> str:
        """Describe a metric as corrected by reviews, or why it isn't; empty without any."""
        people, name, view = self.extras.people, metric.name, self.view
        found = people.by_gated_metric(view.rubric, view.summary[SAMPLES]) if people else {}
        if name == AGGREGATE_SCORE or not found:
            return ""  # people score only some of an aggregate's components
        if name not in found:
            return "not corrected: no review has all scores for it"
        mean = found[name].mean
        if mean.corrected.value is None or mean.corrected.interval is None:
            return f"not corrected by reviews: {mean.reason}" if mean.reason else ""
        ends = (mean.corrected.interval.low, mean.corrected.interval.high)
        low, high = (metric_value(name, end) for end in ends)
        by = counted(mean.human.n, "reviewed sample")
        value = metric_value(name, mean.corrected.value)
        return f"corrected by {by}: {value} ({low} to {high})"

    @property
    def level(self) -> QualityLevel | None:
        """The quality level, with what people's reviews make of it."""
        level = quality_level(self.view, self.extras.people)
        if level is None or not (self.extras.pending and self.view.release.every):
            return level
        who = "rules" if "rules" in self.view.conclusion.methods else "judge"
        return msgspec.structs.replace(level, label=f"{level.label} by the {who}")

    def scored(self, group: Mapping[str, Any]) -> int:
        """Return how many samples of a group have a score."""
        known: dict[str, int] = self.view.summary["n"]
        overall = known.get(f"{self.view.rubric.overall_name}_mean") or known.get(WIN_RATE)

        def rated(of: Mapping[str, Any]) -> int:
            lacking = (of.get("unscored_rate") or 0) + (of.get("target_error_rate") or 0)
            return round(of[SAMPLES] * (1 - lacking))

        # Rules give a score also where judges give none.
        return rated(group) if rated(self.view.summary) == overall else group[SAMPLES]

    @property
    def calm(self) -> bool:
        """Whether there are no notes, lost votes, concerns or samples to review."""
        view = self.view
        return not (self.notes or self.concerns or view.queued or view.summary["unscored_votes"])


def run_page(view: RunView, concerns: Sequence[Concern], *, extras: Extras = NO_EXTRAS) -> RunPage:
    """Return the page of a run."""
    summary, rubric = view.summary, view.rubric
    estimates = view.estimates
    criteria = _criteria(view, rubric, estimates)
    position = estimates.position()
    reported = {each.mean.name for each in criteria} | {SAMPLES}
    if position is None or not position.n:
        # Without comparisons in two orders, a zero would be misleading.
        reported.add(UNSTABLE_RATE)
    return RunPage(
        view=view,
        verdict=verdict_of(view, extras.people, pending=extras.pending),
        concerns=tuple(concerns),
        headlines=_headlines(view, rubric, estimates),
        failures=tuple(_failure(*each, view) for each in failures_of(summary)),
        gates=tuple(estimates.gauges()),
        criteria=criteria,
        metrics=tuple(
            estimates.of(metric.name)
            for metric in metrics_of(summary, rubric)
            if metric.name not in reported
        ),
        scores=score_distributions(rubric, estimates),
        # Without a score, every group would have a pass rate of 0%.
        groupings={} if view.none_scored else groupings(summary, rubric),
        position=position,
        measures=measure_distributions(rubric, estimates),
        extras=extras,
    )


def groupings(summary: Mapping[str, Any], rubric: Rubric) -> dict[str, dict[str, Axis]]:
    """Return the metrics of a run's scenarios and demographics, each with its axis."""
    found: dict[str, dict[str, Axis]] = {}
    for name in ("scenario", "demographic"):
        groups: dict[str, dict[str, Any]] = summary.get(f"{name}s") or {}
        if groups:
            found[name] = {
                metric: axis_of(metric, rubric, *(known.get(metric) for known in groups.values()))
                for metric in _columns(groups, rubric)
            }
    return found


def _columns(groups: Mapping[str, Mapping[str, Any]], rubric: Rubric) -> tuple[str, ...]:
    """Return the metrics that any group has, the most informative first."""
    means = (rubric.mean_of(criterion.id) for criterion in rubric.criteria)
    overall = f"{rubric.overall_name}_mean"
    wanted = dict.fromkeys((WIN_RATE, key_metric(rubric), "pass_rate", overall, *means))
    found = [
        name for name in wanted if any(known.get(name) is not None for known in groups.values())
    ]
    # The unstable rate gets a column only if it isn't zero in every group.
    if any(known.get(UNSTABLE_RATE) for known in groups.values()):
        found.append(UNSTABLE_RATE)
    return tuple(found)


def _headlines(view: RunView, rubric: Rubric, estimates: RunMetrics) -> tuple[PlottedMetric, ...]:
    """Return the headline metrics with a value, such as the pass rate and the overall score."""
    overall = f"{rubric.overall_name}_mean"
    names = dict.fromkeys(("pass_rate", WIN_RATE, key_metric(rubric), overall))
    # If no sample has a score, a pass rate of 0% says nothing about the responses.
    found = () if view.none_scored else (estimates.of(name) for name in names)
    return tuple(each for each in found if each.value is not None)


_ENDS: Final = {">=": "below", ">": "high", "<=": "above", "<": "low"}


def _failure(cause: str, count: int, view: RunView) -> FailureCause:
    """Return a cause in words, with the query for the samples that failed for it."""
    query = "flag=target_error" if cause.startswith(NO_RESPONSE) else "flag=unscored"
    words = cause
    with suppress(ParseError):
        rule = Comparison.parse(cause)
        end = _ENDS.get(rule.operator)
        value = f"&metric={rule.name}&{end}={show_number(rule.number)}" if end else ""
        words = f"{ruled_title(rule.name, view.rubric)} {required_value(rule, failed=True)}"
        query = f"flag=failed{value}"
    share = count / view.summary[SAMPLES]
    return FailureCause(cause=cause, words=words, count=count, share=share, query=query)


def _criteria(view: RunView, rubric: Rubric, estimates: RunMetrics) -> tuple[CriterionMetric, ...]:
    """Return the means of the overall score and of all criteria that have scores."""
    rows = [
        CriterionMetric(
            id=rubric.overall_name,
            label="Overall, by the criteria's weights",
            mean=estimates.of(f"{rubric.overall_name}_mean"),
        )
    ]
    if rubric.components:
        label, mean = "Aggregate, by the components' weights", estimates.of(AGGREGATE_SCORE)
        rows.insert(0, CriterionMetric(id=AGGREGATE_SCORE, label=label, mean=mean))
    whole_weight = sum(each.weight for each in rubric.criteria)
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
                weight=each.weight / whole_weight if whole_weight else None,
                level="" if band is None else band.label,
                mean=mean,
            )
        )
    judge = estimates.of(f"{JUDGE_SCORE}_mean")
    by_rules = "rules" in view.conclusion.methods
    if judge.value is not None or (by_rules and view.unread):
        known = judge.value is not None
        label = "not part of the overall score" if known else "no reply could be read"
        judge = judge if known else msgspec.structs.replace(judge, n=0)
        label = f"The judge's score, {label}"
        rows.append(CriterionMetric(id=JUDGE_SCORE, label=label, mean=judge))
    return tuple(rows) if any(row.mean.n for row in rows) else ()
