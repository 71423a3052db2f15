"""Evaluates one sample, from its row to its result, without I/O.

The system under test is asked first, if there is one, then the judges. Runs are resumed, audited
and rescored by driving the same flow over stored replies.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Final, TypeVar

import msgspec

from jurybox.judging.evaluation_report import EvaluationReport, LostVote
from jurybox.judging.flow import Failure, Flow, ModelReply, ModelRequest, Outcome, reported_models
from jurybox.judging.jury import jury
from jurybox.judging.protocol import Judging
from jurybox.rubric.check_kinds import COST, CheckedAnswer
from jurybox.rubric.metrics import MEASURES, SAMPLE_SCORE, TOTAL_SCORE, Comparison
from jurybox.rubric.rubric_model import Component, Decision, ReviewReason, Rubric, releases
from jurybox.sample import Response, Row, Sample, Timing, added_usage, emptiness
from jurybox.scoring.by_rules import with_checks, with_rules
from jurybox.scoring.prices import Price, cost_at
from jurybox.scoring.rules.rule_compiler import CompiledRules, score_by_rules
from jurybox.scoring.rules.rule_report import AutomatedReport
from jurybox.scoring.sample_result import (
    DEMOGRAPHIC,
    JUDGE_SCORE,
    NEEDS_REVIEW,
    POINTS,
    POINTS_OF_B,
    EvaluatorError,
    Exchange,
    ModelUse,
    Role,
    RuleOutcome,
    SampleResult,
    cause_of,
    whole_score,
)

T = TypeVar("T")

_DECIMALS: Final = 6
_APART: Final = 0.3  # a judge and the rules disagree if their scores differ by more than this
Metrics = Mapping[str, float | None]


class Procedure(msgspec.Struct, frozen=True, kw_only=True):
    """How every sample of a run is evaluated.

    ``target`` returns the request to the system under test for a row; it is None if the dataset
    contains the responses. ``judges`` is empty if the rubric's rules and checks score everything.
    ``price`` is the target's, for checks on the cost of a response. ``overlays`` are the procedures
    for demographics with an overlay.
    """

    judging: Judging
    judges: tuple[str, ...]
    votes: int
    target: Callable[[Row], ModelRequest] | None = None
    rules: CompiledRules | None = None
    overlays: dict[str, "Procedure"] = {}
    price: Price | None = None


class SampleOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one sample: its response, the reports on it, and its result."""

    response: Response
    report: EvaluationReport | None
    automated: AutomatedReport | None
    result: SampleResult


def evaluate_sample(procedure: Procedure, row: Row) -> Flow[SampleOutcome]:
    """Get a response from the target, judge it, and return the outcome.

    A response that failed, timed out or is empty is not judged.
    """
    exchanges: list[Exchange] = []
    overlay = procedure.overlays.get(demographic_of(row) or "")
    procedure = overlay or procedure
    if procedure.target is None:
        # The dataset was checked before the run: without a target every row has a response.
        response = row.response or Response(text="", error="the row has no response")
    else:
        request = procedure.target(row)
        (outcome,) = yield (request,)
        exchanges.append(("target", request.model, outcome))
        response = response_of(outcome)
    sample = row.sample(response)
    report, automated = None, None
    if sample.failure is None:
        if procedure.rules is not None:
            automated = score_by_rules(
                procedure.rules, task=row.task, response=response.text, messages=row.messages
            )
        if procedure.judging.has_checks:
            price = cost_at(procedure.price, response.usage)
            answer = CheckedAnswer(response.text, {**measures(response), COST: price})
            automated = with_checks(procedure.judging.rubric, row, answer, automated)
        if procedure.judges:
            judged = jury(procedure.judging, sample, procedure.judges, procedure.votes)
            report = yield from _recorded(judged, exchanges)
            if automated is not None:
                report = with_rules(procedure.judging.rubric, report, automated)
    result = conclude(procedure.judging.rubric, row, sample, report, automated, exchanges)
    if overlay is not None:
        result = msgspec.structs.replace(result, overlay=overlay.judging.rubric.id)
    return SampleOutcome(response=response, report=report, automated=automated, result=result)


def _recorded(flow: Flow[T], exchanges: list[Exchange]) -> Flow[T]:
    """Run a flow of judges, and record each request with its outcome."""
    try:
        requests = next(flow)
        while True:
            outcomes = yield requests
            for request, outcome in zip(requests, outcomes, strict=True):
                exchanges.append(("judge", request.model, outcome))
            requests = flow.send(outcomes)
    except StopIteration as done:
        return done.value
    finally:
        flow.close()


def response_of(outcome: Outcome) -> Response:
    """Return the target's response, with its time and tokens."""
    match outcome:
        case ModelReply():
            timing = Timing(
                latency_e2e_ms=outcome.latency_ms,
                latency_model_ms=outcome.latency_model_ms,
                cached=outcome.cached,
                attempts=outcome.attempts,
                latency_attempt_ms=(
                    outcome.latency_ms if outcome.attempt_ms is None else outcome.attempt_ms
                ),
            )
            error = emptiness(outcome.text)
            return Response(text=outcome.text, timing=timing, usage=outcome.usage, error=error)
        case Failure():
            late = outcome.kind == "timeout"
            timing = Timing(
                latency_e2e_ms=outcome.latency_ms, timed_out=late, attempts=outcome.attempts
            )
            # A function or command that fails has said itself that it did.
            kind = "" if outcome.kind == "failed" else f"{outcome.kind}: "
            return Response(text="", timing=timing, error=f"{kind}{outcome.message}")


def conclude(
    rubric: Rubric,
    row: Row,
    sample: Sample,
    report: EvaluationReport | None,
    automated: AutomatedReport | None,
    exchanges: Iterable[Exchange] = (),
) -> SampleResult:
    """Compute a sample's result from its responses, the jury's report and the rules' scores."""
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
    # If the rubric's rules give the scores, a judge without a valid vote doesn't matter.
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


def measures(response: Response) -> dict[str, float | None]:
    """Return all measures in ``rubric.metrics.MEASURES``; None if not measured.

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
    # Cached, because the rules are rendered as text for every sample.
    return str(rule)


def _holds(rule: Comparison, metrics: Metrics) -> bool | None:
    value = metrics.get(rule.name)
    return None if value is None and rule.name in MEASURES else rule.passes(value)


def passes_with(rubric: Rubric, scores: Mapping[str, float], own: Metrics) -> bool | None:
    """Return whether a sample passes with other scores than its own; None if some are missing.

    ``scores`` are those of its criteria, and of the overall score if it isn't computed from them.
    The sample's own metrics have its measures.
    """
    metrics: dict[str, float | None] = {name: own.get(name) for name in MEASURES}
    metrics |= {rubric.overall_name: rubric.overall(scores), **scores}
    known = [scores[each.id] for each in rubric.criteria if each.id in scores]
    metrics[TOTAL_SCORE] = math.fsum(known) if len(known) == len(rubric.criteria) else None
    parts = {name: _component(rubric, part, metrics) for name, part in rubric.components.items()}
    metrics[SAMPLE_SCORE] = _sample_score(rubric, parts)
    outcomes = [outcome.passed for outcome in check_rules(rubric.pass_rules, metrics)]
    lacking = (
        metrics.get(each.name) is None for each in rubric.pass_rules if each.name not in MEASURES
    )
    return None if any(lacking) else all(outcome is True for outcome in outcomes)


def decide(decisions: Sequence[Decision], metrics: Metrics) -> Decision | None:
    """Return the first decision whose conditions are met; the last one has no conditions."""
    for decision in decisions:
        some = any(rule.passes(metrics.get(rule.name)) for rule in decision.when_any)
        every = all(rule.passes(metrics.get(rule.name)) for rule in decision.when_all)
        if some if decision.when_any else every:
            return decision
    return None


def _whole_vote_mean(judge: EvaluationReport) -> float | None:
    """Return the mean overall score of a judge's votes on the response."""
    if len(judge.criteria) == 1:
        return judge.criteria[0].vote_mean
    return judge.overall_by_votes


def _review_reasons(
    report: EvaluationReport | None, overall: float | None, *, by_rules: bool
) -> tuple[ReviewReason, ...]:
    """Return why a sample needs review; judges who differ much from the rules are a reason."""
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
        return {} if report.judge_fallback else {JUDGE_SCORE: _whole_vote_mean(report)}
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
    """Return the scores as metrics, and the judge's score if rules give the scores."""
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
    """Return the scores of a sample without a response, and if complete, its overall score."""
    scores: dict[str, float | None] = dict(rubric.without_response)
    if len(scores) == len(rubric.criteria):
        scores[rubric.overall_name] = rubric.overall(rubric.without_response)
        scores[TOTAL_SCORE] = round(sum(rubric.without_response.values()), _DECIMALS)
    return scores


def _component(
    rubric: Rubric, part: Component, metrics: Mapping[str, float | None]
) -> float | None:
    """Return one component of the sample's score, from 0 to 1."""
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
    """Return why a judged sample has no scores."""
    if report is None or report.votes_valid:
        return None
    causes = {lost.cause for lost in report.lost_votes}
    return "parse_error" if "defect" in causes else "model_error"


def _lost_cause(lost: LostVote, report: EvaluationReport) -> str:
    """Return why a vote is missing, with its judge if there are several."""
    cause = cause_of(lost.reason)
    named = len(report.judges) == 1 or cause.startswith(f"{lost.judge}:")
    return cause if named else f"{lost.judge}: {cause}"


def _passed(rules: tuple[RuleOutcome, ...], *, scored: bool, one: bool) -> bool | None:
    if not one:
        return None
    if not scored:
        return False
    outcomes = [rule.passed for rule in rules]
    # A rule that could not be measured doesn't pass, so the sample doesn't either.
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
