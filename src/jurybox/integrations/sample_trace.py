"""A stored sample as it is sent to other systems: its calls with times, and its scores."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from jurybox.engine import records
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.flow import ModelRequest, Outcome
from jurybox.reporting.stored import SampleRecord, exchange_notes
from jurybox.rubric.metrics import MEASURES
from jurybox.scoring.sample_result import JUDGE_SCORE, SampleResult

_MS: Final = 1_000_000
_FLAGS_AND_LABELS: Final = (
    *("passed", "safety_flag", "needs_review"),
    *("decision", "winner", "confidence", "evaluator_error"),
)


class TracedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model; times are nanoseconds since 1970."""

    position: int
    role: str
    request: ModelRequest
    outcome: Outcome
    start: int
    end: int


class TracedScore(msgspec.Struct, frozen=True, kw_only=True):
    """One score of a sample, with its reasoning."""

    name: str
    value: float | str
    kind: Literal["NUMERIC", "BOOLEAN", "CATEGORICAL"] = "NUMERIC"
    comment: str = ""


class SampleTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A sample with its calls and scores; ``timed`` is false if no call's time is stored."""

    record: SampleRecord
    calls: tuple[TracedCall, ...]
    scores: tuple[TracedScore, ...]
    start: int
    end: int
    timed: bool


def read_trace(
    run: records.RunRow, sample: records.SampleRow, exchanges: Sequence[records.ExchangeRow]
) -> SampleTrace:
    """Read a stored sample."""
    begun = int(datetime.fromisoformat(run.created_at).timestamp() * 1000) * _MS
    asked = records.in_order(sample, exchanges)
    calls = tuple(_call(row, begun) for row in asked)
    record = SampleRecord(sample)
    return SampleTrace(
        record=record,
        calls=calls,
        scores=tuple(_scores(record.result, record.report)),
        start=min((call.start for call in calls), default=begun),
        end=max((call.end for call in calls), default=begun),
        timed=any(exchange_notes(row).at is not None for row in asked),
    )


def _call(row: records.ExchangeRow, begun: int) -> TracedCall:
    """Read an exchange; without a stored time, it starts when the run did."""
    notes, outcome = exchange_notes(row), records.read_outcome(row)
    took = notes.latency_ms if outcome.latency_ms is None else outcome.latency_ms
    end = begun if notes.at is None else notes.at * _MS
    return TracedCall(
        position=row.position,
        role=row.role,
        request=records.read_request(row),
        outcome=outcome,
        start=end if notes.at is None else end - int((took or 0) * _MS),
        end=end,
    )


def _scores(result: SampleResult, report: EvaluationReport | None) -> Iterator[TracedScore]:
    """Yield the scores of a sample; a missing score is left out, not sent as 0."""
    comments = {} if report is None else {each.id: each.reasoning for each in report.criteria}
    comments["needs_review"] = ", ".join(result.review_reasons)
    comments["target_error"] = result.target_error or ""
    values: dict[str, float | str | None] = {
        **{name: value for name, value in result.metrics.items() if name not in MEASURES},
        **result.components,
        JUDGE_SCORE: result.judge_score,
    }
    values |= {name: getattr(result, name) for name in _FLAGS_AND_LABELS}
    values["target_error"] = None if result.target_error is None else True
    for name, value in values.items():
        if value is not None:
            flag = isinstance(value, bool)
            kind = "BOOLEAN" if flag else "CATEGORICAL" if isinstance(value, str) else "NUMERIC"
            score = int(value) if flag else value
            yield TracedScore(name=name, value=score, kind=kind, comment=comments.get(name, ""))
