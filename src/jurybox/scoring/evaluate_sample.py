"""One sample from its row to its result, as a conversation without I/O.

The system under test is asked first, where there is one, then the judges. The same flow driven over
stored replies is how a run is resumed, audited and re-scored.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec

from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.flow import Failure, Flow, ModelReply, ModelRequest, Outcome
from jurybox.judging.jury import jury
from jurybox.judging.protocol import Judging
from jurybox.rubric.check_kinds import COST, CheckedAnswer
from jurybox.rubric.checks import ROW_CHECKS, Check, CheckOutcome, read_check, run_check
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.sample import Response, Row, Timing, emptiness
from jurybox.scoring.by_rules import with_rules
from jurybox.scoring.prices import Price, cost_at
from jurybox.scoring.rules import (
    AutomatedReport,
    CheckedCriterion,
    CompiledRules,
    overall_score,
    score_by_rules,
)
from jurybox.scoring.sample_result import Exchange, SampleResult, conclude, demographic_of, measures

T = TypeVar("T")

_DECIMALS: Final = 6
_NOTHING: Final = AutomatedReport(criteria=(), overall=None, band=None, measures={})


class TargetRequests(Protocol):
    """The system under test as a run sees it: which request a row becomes."""

    def request(self, row: Row) -> ModelRequest:
        """Return the request to the system under test."""
        ...


class Procedure(msgspec.Struct, frozen=True, kw_only=True):
    """How every sample of a run is treated.

    ``target`` is None where the dataset brings the responses, ``judges`` are none where the
    rubric's own rules and checks are all the judgment there is. ``price`` is the target's, for
    checks of what a response cost. ``overlays`` are for the rows of a demographic (C13).
    """

    judging: Judging
    judges: tuple[str, ...]
    votes: int
    target: TargetRequests | None = None
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

    A system under test that timed out, failed or said nothing is not judged (A7, D2).
    """
    exchanges: list[Exchange] = []
    overlay = procedure.overlays.get(demographic_of(row) or "")
    procedure = overlay or procedure
    if procedure.target is None:
        # The dataset was checked before the run: without a target every row has a response.
        response = row.response or Response(text="", error="the row has no response")
    else:
        request = procedure.target.request(row)
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
            automated = _with_checks(procedure.judging.rubric, row, answer, automated)
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
    """Run a flow of judges, and note each request with its outcome."""
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
            return Response(text="", timing=timing, error=f"{outcome.kind}: {outcome.message}")


def _with_checks(
    rubric: Rubric, row: Row, answer: CheckedAnswer, automated: AutomatedReport | None
) -> AutomatedReport:
    """Return the scores of the rules together with those of the checks."""
    report = msgspec.structs.replace(
        automated or _NOTHING,
        checked=tuple(_checked(each, row, answer) for each in rubric.checked),
    )
    overall = overall_score(rubric, report.scores)
    band = None if overall is None else rubric.band(overall)
    return msgspec.structs.replace(
        report, overall=overall, band=None if band is None else band.label
    )


def _checked(criterion: Criterion, row: Row, answer: CheckedAnswer) -> CheckedCriterion:
    checks = _with_own(criterion.checks, row)
    outcomes = tuple(run_check(each, partial(_part_of, row), answer) for each in checks)
    score = _score(criterion, outcomes)
    level = None if score is None else criterion.band(score)
    return CheckedCriterion(
        id=criterion.id,
        score=score,
        band=(level.label or None) if level else None,
        checks=outcomes,
    )


def _with_own(checks: tuple[Check, ...], row: Row) -> Iterator[Check]:
    """Yield the checks, the row's own in their place."""
    for check in checks:
        if check.kind != ROW_CHECKS:
            yield check
            continue
        for entry in () if row.checks is msgspec.UNSET else row.checks:
            own, _ = read_check(entry)
            if own is not None:  # faults are refused where the row is read
                yield own


def _score(criterion: Criterion, outcomes: tuple[CheckOutcome, ...]) -> float | None:
    """Return the share of checks that passed; on a scale of whole numbers, all or nothing."""
    passed = [each.passed for each in outcomes]
    if None in passed or not passed:
        return None
    scale = criterion.scale
    share = passed.count(True) / len(passed) if scale.continuous else float(all(passed))
    return round(scale.low + share * (scale.high - scale.low), _DECIMALS)


def _part_of(row: Row, name: str) -> object:
    """Return a part of a row by its name, `metadata.author.name` included."""
    first, *keys = name.split(".")
    value: object = getattr(row, first)
    for key in keys:
        value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return value
