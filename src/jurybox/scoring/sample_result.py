"""The result of one sample: scores, measures, pass or fail, flags and usage."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

import msgspec

from jurybox.judging.evaluation_report import (
    Confidence,
    EvaluationReport,
    LostVote,
    Method,
)
from jurybox.judging.flow import ModelReply, Outcome, ReportedModel, reported_models
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.model_versions import check_version
from jurybox.rubric.conditions import Comparison
from jurybox.rubric.metrics import MEASURES, SAMPLE_SCORE, TOTAL_SCORE
from jurybox.rubric.rubric_model import (
    Component,
    Decision,
    ReviewReason,
    Rubric,
    releases,
)
from jurybox.sample import Response, Row, Sample, Usage, added_usage
from jurybox.scoring.rules import AutomatedReport, overall_score
from jurybox.text_format import cut

Measures = dict[str, float | None]


def measures(response: Response) -> Measures:
    """Return every measure of ``rubric.metrics.MEASURES``; None if it was not measured.

    Times of cached replies weren't measured in this run, so they are left out.
    """
    timing, usage = response.timing, response.usage
    measured = not timing.cached
    put_in, put_out = usage.input_tokens, usage.output_tokens
    total, ratio = None, None
    if put_in is not None and put_out is not None:
        total, ratio = put_in + put_out, put_out / max(put_in, 1)
    return {
        "latency_e2e_ms": timing.latency_e2e_ms if measured else None,
        "latency_model_ms": timing.latency_model_ms if measured else None,
        "input_tokens": put_in,
        "output_tokens": put_out,
        "total_tokens": total,
        "token_efficiency_ratio": ratio,
    }


Metrics = Mapping[str, float | None]


class RuleOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One pass rule, the value it was checked against, and whether it passes.

    ``passed`` is None where the rule is about something that wasn't measured; a missing score
    fails.
    """

    rule: str
    value: float | None
    passed: bool | None


def check_rules(rules: Sequence[Comparison], metrics: Metrics) -> tuple[RuleOutcome, ...]:
    """Check every rule against the metrics."""
    return tuple(
        RuleOutcome(
            rule=_written(rule),
            value=metrics.get(rule.name),
            passed=_holds(rule, metrics),
        )
        for rule in rules
    )


@cache
def _written(rule: Comparison) -> str:
    # The few rules of a rubric are written out for every sample.
    return str(rule)


def _holds(rule: Comparison, metrics: Metrics) -> bool | None:
    value = metrics.get(rule.name)
    return None if value is None and rule.name in MEASURES else rule.passes(value)


def decide(decisions: Sequence[Decision], metrics: Metrics) -> Decision | None:
    """Return the first decision whose conditions are met; the last one has no conditions."""
    for decision in decisions:
        some = any(rule.passes(metrics.get(rule.name)) for rule in decision.when_any)
        every = all(rule.passes(metrics.get(rule.name)) for rule in decision.when_all)
        if some if decision.when_any else every:
            return decision
    return None


def whole_score(judge: EvaluationReport) -> float | None:
    """Return a judge's overall score of the response."""
    return judge.criteria[0].score if len(judge.criteria) == 1 else judge.overall


def _whole_vote_mean(judge: EvaluationReport) -> float | None:
    """Return the mean overall score of a judge's votes on the response."""
    if len(judge.criteria) == 1:
        return judge.criteria[0].vote_mean
    return judge.overall_by_votes


JUDGE_SCORE: Final = "judge_score"
POINTS_OF_B: Final = "points_of_b"
POINTS: Final = {"A": 0.0, "tie": 0.5, "B": 1.0}
WIN: Final = "win"

Role = Literal["target", "judge"]
Exchange = tuple[Role, str, Outcome]
"""Who was asked, which model it is, and what came of the request."""
EvaluatorError = Literal["parse_error", "model_error"]

NEEDS_REVIEW: Final = "needs_review"
"""The decision in place of a release while a required review is missing."""

DEMOGRAPHIC: Final = "demographic"
"""The metadata key for the demographic group that a sample represents."""

_DECIMALS = 6
_APART: Final = 0.3


class ModelUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many calls to a model one sample took, and their tokens.

    ``unknown`` counts the replies that didn't say what they used, ``cached`` those that were paid
    for by an earlier run and are not in ``usage``. ``reported`` is what the provider says it used.
    ``refused`` counts the replies without a parameter that the provider wouldn't take, ``unsent``
    those without one that it doesn't have.
    """

    model: str
    role: Role
    calls: int = 0
    cached: int = 0
    failed: int = 0
    unknown: int = 0
    usage: Usage = Usage()
    reported: tuple[ReportedModel, ...] = ()
    refused: dict[str, int] = {}
    unsent: dict[str, int] = {}


class SampleResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one sample in one repeat.

    ``metrics`` are the values that rules may name. Where the rubric's own rules score the response,
    the judge's score is next to them as ``judge_score`` and is never mixed in (C15).
    ``lost_causes`` counts why votes are missing. ``vote_means`` has, where there are several votes,
    the mean of each score that judges gave.
    ``passed`` is None where the rubric has no pass rules.
    """

    metrics: dict[str, float | None]
    components: dict[str, float | None] = {}
    rules: tuple[RuleOutcome, ...] = ()
    passed: bool | None = None
    decision: str | None = None
    evaluator_error: EvaluatorError | None = None
    target_error: str | None = None
    timed_out: bool = False
    judged: bool = False
    method: Method | None = None
    votes_independent: bool = True
    by_rules: bool = False
    judge_score: float | None = None
    judge_fallback: bool | None = None
    vote_means: dict[str, float | None] = {}
    votes_valid: int = 0
    votes_requested: int = 0
    votes_skipped: int = 0
    lost_causes: dict[str, int] = {}
    confidence: Confidence | None = None
    stable: bool | None = None
    winner: Side | None = None
    safety_flag: bool = False
    needs_review: bool = False
    review_reasons: tuple[ReviewReason, ...] = ()
    scenario: str | None = None
    demographic: str | None = None
    """The demographic group that the sample represents, if its row's metadata names one (C13)."""
    overlay: str | None = None
    """The id of the overlay that scored it, where its demographic has one."""
    uses: tuple[ModelUse, ...] = ()

    @property
    def win(self) -> float | None:
        """The score of the first response in a pair: 1 for a win, 0.5 for a tie, 0 for a loss."""
        return None if self.winner is None else 1 - POINTS[self.winner]


def conclude(
    rubric: Rubric,
    row: Row,
    sample: Sample,
    report: EvaluationReport | None,
    automated: AutomatedReport | None,
    exchanges: Iterable[Exchange] = (),
) -> SampleResult:
    """Return a sample's result from its responses, the jury's report and the rubric's rules."""
    failure = sample.failure
    answered = failure is None
    metrics, judge_score = _metrics(rubric, report, automated, answered=answered)
    metrics |= measures(sample.response)
    components = {
        name: _component(rubric, part, metrics) if answered else 0.0
        for name, part in rubric.components.items()
    }
    if components:
        metrics[SAMPLE_SCORE] = _sample_score(rubric, components)
    error = _evaluator_error(report)
    one = sample.response_b is None
    rules = check_rules(rubric.pass_rules, metrics) if one else ()
    # Where the rubric's own rules give the scores, a judge that gave none takes nothing away.
    by_rules = automated is not None and "judge" not in rubric.sources
    scored = answered and (error is None or by_rules)
    decision = decide(rubric.sample_decisions, metrics) if one and scored else None
    decided = None if decision is None else decision.decide
    reasons = _review_reasons(report, metrics.get(rubric.overall_name), by_rules=by_rules)
    waits = any(reason in rubric.require_review for reason in reasons)
    if waits and releases(rubric.sample_decisions, decided):
        decided = NEEDS_REVIEW
    result = SampleResult(
        metrics=metrics,
        components=components,
        rules=rules,
        passed=_passed(rules, scored=scored, one=one),
        decision=decided,
        by_rules=by_rules,
        method="rules" if by_rules else None,
        evaluator_error=error,
        target_error=failure,
        timed_out=sample.response.timing.timed_out,
        scenario=row.scenario,
        demographic=demographic_of(row),
        uses=model_uses(exchanges),
    )
    if report is None:
        return result
    return msgspec.structs.replace(
        result,
        judged=True,
        method="rules" if by_rules else report.method,
        votes_independent=report.votes_independent,
        judge_score=judge_score,
        judge_fallback=report.judge_fallback,
        vote_means=_vote_means(rubric, report, by_rules=by_rules),
        votes_valid=report.votes_valid,
        votes_requested=report.votes_requested,
        votes_skipped=report.votes_skipped,
        lost_causes=_counted([_lost_cause(lost, report) for lost in report.lost_votes]),
        confidence=report.confidence,
        stable=report.stable,
        winner=report.winner,
        safety_flag=report.safety_flag,
        needs_review=bool(reasons),
        review_reasons=reasons,
    )


def _review_reasons(
    report: EvaluationReport | None, overall: float | None, *, by_rules: bool
) -> tuple[ReviewReason, ...]:
    """Return why the sample needs review: the judges' reasons, or a judge far from the rules."""
    if report is None:
        return ()
    judge = report.overall if by_rules and not report.judge_fallback else None
    if judge is None or overall is None or round(abs(judge - overall), _DECIMALS) <= _APART:
        return report.review_reasons
    return (*report.review_reasons, "judge_disagrees")


def _vote_means(
    rubric: Rubric, report: EvaluationReport, *, by_rules: bool
) -> dict[str, float | None]:
    if report.winner is not None and report.winner_votes:
        points = [POINTS[side] for side in report.winner_votes]
        return {POINTS_OF_B: round(math.fsum(points) / len(points), _DECIMALS)}
    if report.votes_valid <= 1 or report.winner is not None:
        return {}
    if by_rules:
        return {JUDGE_SCORE: _whole_vote_mean(report)}
    means = {each.id: each.vote_mean for each in report.criteria}
    return means | {rubric.overall_name: report.overall_by_votes}


def demographic_of(row: Row) -> str | None:
    """Return the demographic group of a row, if its metadata names one."""
    value = row.metadata.get(DEMOGRAPHIC)
    return value if isinstance(value, str) and value.strip() else None


def _metrics(
    rubric: Rubric,
    report: EvaluationReport | None,
    automated: AutomatedReport | None,
    *,
    answered: bool,
) -> tuple[dict[str, float | None], float | None]:
    """Return the scores among the metrics, and the judge's score where rules give the scores."""
    metrics: dict[str, float | None] = {each.id: None for each in rubric.criteria}
    metrics[rubric.overall_name] = metrics[TOTAL_SCORE] = None
    judge_score = None
    if not answered:
        metrics |= _without_response(rubric)
    elif automated is not None and "judge" not in rubric.sources:
        scores = automated.scores
        metrics |= scores
        metrics[rubric.overall_name] = automated.overall
        if automated.overall is not None:
            metrics[TOTAL_SCORE] = round(sum(scores.values()), _DECIMALS)
        judge_score = None if report is None else whole_score(report)
    elif report is not None:
        metrics |= {criterion.id: criterion.score for criterion in report.criteria}
        metrics[rubric.overall_name], metrics[TOTAL_SCORE] = report.overall, report.total_score
    return metrics, judge_score


def _without_response(rubric: Rubric) -> dict[str, float | None]:
    """Return the scores of a sample without a response, and the overall score if all are known."""
    scores: dict[str, float | None] = dict(rubric.without_response)
    if len(scores) == len(rubric.criteria):
        scores[rubric.overall_name] = overall_score(rubric, rubric.without_response)
        scores[TOTAL_SCORE] = round(sum(rubric.without_response.values()), _DECIMALS)
    return scores


def _component(
    rubric: Rubric, part: Component, metrics: Mapping[str, float | None]
) -> float | None:
    """Return a part of the sample's score, from 0 to 1."""
    value = metrics.get(part.of)
    if value is None:
        return None
    if part.full_until is not None:
        return min(1.0, part.full_until / max(value, 1))
    criterion = rubric.criterion(part.of)
    return value if criterion is None else criterion.scale.normalize(value)


def _sample_score(rubric: Rubric, components: Mapping[str, float | None]) -> float | None:
    parts: list[float] = []
    for name, part in rubric.components.items():
        value = components[name]
        if value is None:
            return None
        parts.append(part.weight * value)
    return math.fsum(parts)


def _evaluator_error(report: EvaluationReport | None) -> EvaluatorError | None:
    """Return why a judged sample has no scores (A4)."""
    if report is None or report.votes_valid:
        return None
    causes = {lost.cause for lost in report.lost_votes}
    return "parse_error" if "defect" in causes else "model_error"


# Parts that differ between errors with the same cause: request ids and numbers of attempts.
_VARIABLE: Final = re.compile(r" after \d+ attempts|^[AB] before [AB]: ")
_NAME_OF_ONE: Final = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{16,}")
_LONGEST_CAUSE: Final = 200


def cause_of(error: str) -> str:
    """Return the text of an error without what differs between errors of one cause."""
    flat = _VARIABLE.sub("", " ".join(error[: 8 * _LONGEST_CAUSE].split()))
    return cut(_NAME_OF_ONE.sub("...", flat), _LONGEST_CAUSE)


def _lost_cause(lost: LostVote, report: EvaluationReport) -> str:
    """Return why a vote is missing, with its judge if there are several."""
    cause = cause_of(lost.reason)
    return f"{lost.judge}: {cause}" if len(report.judges) > 1 else cause


def _passed(rules: tuple[RuleOutcome, ...], *, scored: bool, one: bool) -> bool | None:
    if not one:
        return None
    if not scored:
        return False
    outcomes = [rule.passed for rule in rules]
    # A rule that could not be measured is not known to pass, so the sample does not (A5).
    return all(outcome is True for outcome in outcomes) if outcomes else None


def model_uses(exchanges: Iterable[Exchange]) -> tuple[ModelUse, ...]:
    """Return the calls and tokens of one sample, by model."""
    outcomes: dict[tuple[Role, str], list[Outcome]] = {}
    for role, model, outcome in exchanges:
        outcomes.setdefault((role, model), []).append(outcome)
    return tuple([_use(role, model, each) for (role, model), each in outcomes.items()])


def _use(role: Role, model: str, outcomes: Sequence[Outcome]) -> ModelUse:
    replies = [each for each in outcomes if isinstance(each, ModelReply)]
    paid = [each.usage for each in replies if not each.cached]
    known = [each for each in paid if None not in (each.input_tokens, each.output_tokens)]
    return ModelUse(
        model=model,
        role=role,
        calls=len(outcomes),
        cached=len(replies) - len(paid),
        failed=len(outcomes) - len(replies),
        unknown=len(paid) - len(known),
        usage=added_usage(known),
        reported=reported_models(replies),
        refused=_counted([name for each in replies for name in each.refused]),
        unsent=_counted([name for each in replies for name in each.unsupported]),
    )


def _counted(names: Sequence[str]) -> dict[str, int]:
    return dict(Counter(names)) if names else {}


def sent_parameters(planned: Mapping[str, Any], uses: Sequence[ModelUse]) -> dict[str, Any]:
    """Return a role's parameters as they were sent; null for those that were not (A11)."""
    replies = sum(use.calls - use.failed for use in uses)
    refused: dict[str, dict[str, int]] = {}
    unsent: dict[str, dict[str, int]] = {}
    missing = Counter[str]()
    for use in uses:
        for counts, found in ((use.refused, refused), (use.unsent, unsent)):
            missing.update(counts)
            for name, count in counts.items():
                found.setdefault(name, {})[use.model] = count
    never = {name for name, count in missing.items() if count == replies > 0}
    sent = {name: None if name in never else planned[name] for name in planned}
    overrides = {name: each for name, each in planned["overrides"].items() if name not in never}
    return {**sent, "overrides": overrides, "refused": refused, "not_supported": unsent}


def is_verified(model: str, reported: ReportedModel) -> bool | None:
    """Return whether a provider reported the version that was asked for; None without one."""
    check = check_version(model, reported.model)
    return None if check is None else check == "verified"


def all_verified(uses: Iterable[ModelUse]) -> bool | None:
    """Return whether every provider reported the version that was asked for (A10)."""
    found = {is_verified(use.model, each) for use in uses for each in use.reported} - {None}
    return all(found) if found else None
