"""Computes scores from checks, and reports that combine rules with a judge."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, cast

import msgspec

from jurybox.documents.numbers import show_number
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport, RubricName
from jurybox.judging.safety import SafetyFinding, scan
from jurybox.rubric.check_kinds import CheckedAnswer
from jurybox.rubric.checks import ROW_CHECKS, Check, CheckOutcome, read_check, run_check
from jurybox.rubric.metrics import TOTAL_SCORE
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.sample import Row, Sample
from jurybox.scoring.rules.rule_report import (
    AutomatedReport,
    CheckedCriterion,
    CriterionScore,
    FiredRule,
)
from jurybox.scoring.sample_result import SampleResult, all_verified, whole_score

_DECIMALS: Final = 6
_OF_SAMPLE: Final = (
    "passed",
    "rules",
    "decision",
    "evaluator_error",
    "target_error",
    "timed_out",
    "needs_review",
    "review_reasons",
)
"""The fields of a run's sample that a report lacks."""
_TRACES: Final = ("band", "base", "trace", "checks")
"""The reported fields of a criterion scored by rules or checks."""
_OF_JUDGE: Final = ("safety_flag", "safety_findings", "usage", "judge_fallback")
"""The fields of a judge's report that the report by rules has as well."""


class SingleReport(EvaluationReport, frozen=True, kw_only=True):
    """The report on a single evaluation, with the result that a sample of a run has."""

    result: SampleResult

    @property
    def passed(self) -> bool | None:
        """Whether every pass rule passes; a rule whose metric wasn't measured doesn't pass."""
        return self.result.passed

    @property
    def decision(self) -> str | None:
        """The rubric's decision on the sample."""
        return self.result.decision

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, with every field of a sample."""
        data = super().as_data()
        del data["result"]
        data |= {name: msgspec.to_builtins(getattr(self.result, name)) for name in _OF_SAMPLE}
        data["version_verified"] = all_verified(self.result.uses)
        # A criterion with the name of a report field never replaces that field.
        metrics = {**self.result.metrics, **self.result.components}
        return data | {name: value for name, value in metrics.items() if name not in data}


class RulesReport(SingleReport, frozen=True, kw_only=True):
    """A report whose scores come from rules or checks alone.

    ``automated`` explains each score; ``judge`` is the separate report of the judges on the same
    response.
    """

    automated: AutomatedReport
    judge: EvaluationReport | None = None

    @property
    def judge_score(self) -> float | None:
        """The judges' overall score of the response."""
        return None if self.judge is None else whole_score(self.judge)

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: each score with its band and its trace."""
        data = super().as_data()
        del data["automated"], data["judge"]
        scored = {each.id: each for each in (*self.automated.criteria, *self.automated.checks)}
        for criterion in data["criteria"]:
            reported = msgspec.to_builtins(scored[criterion["id"]])
            criterion |= {name: reported[name] for name in _TRACES if name in reported}
        data["band"] = self.automated.band
        if self.judge is not None:
            data["judge"] = _judge_as_data(self.judge)
        return data


def with_rules(
    rubric: Rubric, report: EvaluationReport, automated: AutomatedReport
) -> EvaluationReport:
    """Add the criteria that rules or checks score to the judges' report on one response."""
    if not rubric.is_mixed or report.winner is not None or report.responses:
        return report
    judged = {each.id: each for each in report.criteria}
    criteria = [judged.get(each.id) or _by_program(each, automated) for each in rubric.criteria]
    scores = {each.id: each.score for each in criteria if each.score is not None}
    means = {each.id: each.vote_mean for each in criteria if each.vote_mean is not None}
    whole = len(scores) == len(criteria)
    return msgspec.structs.replace(
        report,
        criteria=tuple(criteria),
        total_score=round(sum(scores.values()), _DECIMALS) if whole else None,
        max_score=sum(each.scale.high for each in rubric.criteria),
        overall=rubric.overall(scores) if whole else None,
        overall_by_votes=rubric.overall(means) if whole else None,
    )


def single_report(
    rubric: Rubric,
    sample: Sample,
    judge: EvaluationReport | None,
    automated: AutomatedReport | None,
    result: SampleResult,
) -> SingleReport:
    """Return the report on a single evaluation: by rules if they score everything, else by judges.

    If a judge finds a danger, or no vote is valid, the sample is still queued for review.
    """
    if result.by_rules and automated is not None:
        findings = scan(sample.response.text) if judge is None else judge.response_findings
        return _by_rules(rubric, automated, findings, result, judge)
    report = _unanswered(rubric, sample, result) if judge is None else judge
    fields = {name: getattr(report, name) for name in EvaluationReport.__struct_fields__}
    return SingleReport(**fields, result=result)


def _unanswered(rubric: Rubric, sample: Sample, result: SampleResult) -> EvaluationReport:
    """Return the report on a failed, late or empty response, which isn't judged."""
    criteria = [
        CriterionReport(
            id=each.id,
            score=result.metrics.get(each.id),
            scale=each.scale.ends,
            weight=each.weight,
            reasoning=f"no response: {result.target_error}",
            confidence="low",
            votes=(),
        )
        for each in rubric.criteria
    ]
    return EvaluationReport(
        rubric=RubricName.of(rubric),
        method="rubric" if sample.reference is None else "reference",
        criteria=tuple(criteria),
        total_score=result.metrics.get(TOTAL_SCORE),
        max_score=sum(each.scale.high for each in rubric.criteria),
        overall=result.metrics.get(rubric.overall_name),
        confidence="low",
    )


def _by_rules(
    rubric: Rubric,
    automated: AutomatedReport,
    findings: tuple[SafetyFinding, ...],
    result: SampleResult,
    judge: EvaluationReport | None,
) -> RulesReport:
    criteria = [each for each in rubric.criteria if each.source != "judge"]
    total = round(sum(automated.scores.values()), _DECIMALS)
    of_judge: dict[str, Any] = {}
    if judge is not None:
        of_judge = {name: getattr(judge, name) for name in _OF_JUDGE}
    return RulesReport(
        **of_judge,
        rubric=RubricName.of(rubric),
        method="rules",
        criteria=tuple(_by_program(each, automated) for each in criteria),
        total_score=None if automated.overall is None else total,
        max_score=sum(each.scale.high for each in criteria),
        overall=automated.overall,
        confidence="low" if automated.overall is None else "high",
        response_findings=findings,
        needs_review=result.needs_review,
        review_reasons=result.review_reasons,
        automated=automated,
        judge=judge,
        result=result,
    )


def _by_program(criterion: Criterion, automated: AutomatedReport) -> CriterionReport:
    """Return the report on one criterion that rules or checks score."""
    found = (*automated.criteria, *automated.checks)
    scored = next(each for each in found if each.id == criterion.id)
    return CriterionReport(
        id=criterion.id,
        score=scored.score,
        scale=criterion.scale.ends,
        weight=criterion.weight,
        reasoning=in_words(scored),
        confidence="low" if scored.score is None else "high",
        votes=(),
        # There are no votes, so comparisons use the score itself.
        vote_mean=scored.score,
    )


def in_words(scored: CriterionScore | CheckedCriterion) -> str:
    """Describe in one line how a score was computed."""
    if isinstance(scored, CheckedCriterion):
        return scored.in_words
    parts = [f"base {show_number(scored.base)}", *(_rule(rule) for rule in scored.trace)]
    total = scored.base + sum(rule.amount for rule in scored.trace)
    if round(total, _DECIMALS) != scored.score:
        parts.append(f"kept within the scale: {show_number(scored.score)}")
    return "; ".join(parts)


def _rule(rule: FiredRule) -> str:
    sign = "+" if rule.amount > 0 else ""
    quotes = quoted(rule)
    return f"{sign}{show_number(rule.amount)} {rule.why or rule.rule}{quotes and f' ({quotes})'}"


def quoted(rule: FiredRule) -> str:
    """Return the words that triggered a rule; the user's words are marked."""
    words = dict.fromkeys(
        f"{'user: ' if quote.text == 'user' else ''}\u201c{quote.words}\u201d"
        for quote in rule.quotes
    )
    return ", ".join(words)


def _judge_as_data(judge: EvaluationReport) -> dict[str, Any]:
    whole = judge.criteria[0] if len(judge.criteria) == 1 else None
    return judge.as_data() | {
        "score": whole_score(judge),
        "reasoning": None if whole is None else whole.reasoning,
        "fallback": bool(judge.judge_fallback),
        "votes": None if whole is None else list(whole.votes),
    }


_NOTHING: Final = AutomatedReport(criteria=(), overall=None, band=None, measures={})


def with_checks(
    rubric: Rubric, row: Row, answer: CheckedAnswer, automated: AutomatedReport | None
) -> AutomatedReport:
    """Return the scores of the rules together with those of the checks."""
    report = msgspec.structs.replace(
        automated or _NOTHING,
        checks=tuple(_checked(each, row, answer) for each in rubric.checked),
    )
    overall = rubric.overall(report.scores)
    band = None if overall is None else rubric.band(overall)
    return msgspec.structs.replace(
        report, overall=overall, band=None if band is None else band.label
    )


def _checked(criterion: Criterion, row: Row, answer: CheckedAnswer) -> CheckedCriterion:
    checks = _with_own(criterion.checks, row)
    outcomes = tuple(run_check(each, partial(part_of_row, row), answer) for each in checks)
    score = _score(criterion, outcomes)
    level = None if score is None else criterion.band(score)
    return CheckedCriterion(
        id=criterion.id,
        score=score,
        band=(level.label or None) if level else None,
        checks=outcomes,
    )


def _with_own(checks: tuple[Check, ...], row: Row) -> Iterator[Check]:
    """Yield the checks, with the row's own checks inserted."""
    for check in checks:
        if check.kind != ROW_CHECKS:
            yield check
            continue
        for entry in row.checks:
            own, _ = read_check(entry)
            if own is not None:  # rows with faulty checks are refused when they are read
                yield own


def _score(criterion: Criterion, outcomes: tuple[CheckOutcome, ...]) -> float | None:
    """Return the score for the share of passed checks; on a whole-number scale, all or nothing."""
    passed = [each.passed for each in outcomes]
    if None in passed or not passed:
        return None
    scale = criterion.scale
    share = passed.count(True) / len(passed) if scale.continuous else float(all(passed))
    return round(scale.low + share * (scale.high - scale.low), _DECIMALS)


def part_of_row(row: Row, name: str) -> object:
    """Return a part of a row by its name, such as `metadata.author.name`."""
    first, *keys = name.split(".")
    value: object = getattr(row, first)
    for key in keys:
        value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return value
