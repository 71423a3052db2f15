"""One sample: what was asked and answered, what it was given, and why."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from jurybox.engine.records import RunRow
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.reporting.html.html_text import cut_pieces, word_diff
from jurybox.reporting.stored import SampleRecord, damaged, rubric_of
from jurybox.web.error_pages import Refusal
from jurybox.web.filters import PageFilter
from jurybox.web.lookup import PlaceOf, TheRecord, TheRun
from jurybox.web.page_text import LONG, SHORT, CutText, cut_text, exchange_of, whole_text
from jurybox.web.pages.neighbours import neighbours
from jurybox.web.template_engine import page_response, segment, text_response
from jurybox.web.vote_view import votes_of

_MOST_TURNS: Final = 50
_MOST_EXCHANGES: Final = 60
_REASONS: Final = {
    "safety": "a judge sees a danger",
    "unscored": "no judge gave a valid vote",
    "unstable": "the winner changed with the order of the responses",
    "low_confidence": "the votes have no majority",
}


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the jury says on one criterion."""

    criterion: CriterionReport
    reasoning: CutText


def sample_page(
    request: Request,
    run: TheRun,
    record: TheRecord,
    asked: Annotated[PageFilter, Query()],
    place: PlaceOf,
) -> Response:
    """Answer with a sample."""
    base = f"/runs/{segment(run.id)}/samples/{record.row.number}"
    try:
        exchanges = [
            exchange_of(position, each)
            for position, each in enumerate(record.exchanges[:_MOST_EXCHANGES])
        ]
        votes = votes_of(record.exchanges)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    responses = _responses(record)
    data: dict[str, Any] = {
        "title": f"Sample {record.row.sample_id[:80]}",
        "run": run,
        "record": record,
        "base": base,
        "around": neighbours(place.store, run, record.row.number, asked),
        "texts": _inputs(record),
        "responses": responses,
        "marking": _marking(responses),
        "judged": _judged(record.report),
        "sides": _sides(record.report),
        "reasons": _REASONS,
        "decision": _decision(run, record),
        "exchanges": exchanges,
        "votes": votes,
        "further": max(0, len(record.exchanges) - _MOST_EXCHANGES),
        "reviews": place.store.reviews_of(run.id, record.row.number),
    }
    return page_response(request, "sample.html", data)


def sample_text(run: TheRun, record: TheRecord, part: str) -> Response:
    """Answer with one text of a sample, whole, as plain text."""
    try:
        text = whole_text(record, part)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    if text is None:
        raise Refusal(404)
    return text_response(text)


def _inputs(record: SampleRecord) -> dict[str, Any]:
    row = record.inputs
    turns = [
        (turn.role, cut_text(turn.content, part=f"message-{place}"))
        for place, turn in enumerate(row.messages[:_MOST_TURNS])
    ]
    metadata = msgspec.json.format(msgspec.json.encode(row.metadata), indent=2).decode()
    return {
        "turns": turns,
        "further_turns": max(0, len(row.messages) - _MOST_TURNS),
        "task": cut_text(row.task, part="task"),
        "context": None if row.context is None else cut_text(row.context, part="context"),
        "reference": None if row.reference is None else cut_text(row.reference, part="reference"),
        "metadata": cut_text(metadata, SHORT, part="metadata") if row.metadata else None,
    }


def _responses(record: SampleRecord) -> list[dict[str, Any]]:
    """Return the responses, in pieces where two of them were compared."""
    first, second = record.responses.response, record.responses.response_b
    one = cut_text(first.text, part="response")
    told: list[dict[str, Any]] = [{"name": "Response", "response": first, "text": one}]
    if second is None:
        return told
    other = cut_text(second.text, part="response-b")
    told[0]["name"] = "Response A"
    told.append({"name": "Response B", "response": second, "text": other})
    # Of the whole texts: what was cut off shifts nothing, and what differs there is told.
    pieces = word_diff(first.text, second.text)
    if pieces is not None:
        for each, side in zip(told, pieces, strict=True):
            each["pieces"] = cut_pieces(side, LONG)
    return told


def _marking(responses: list[dict[str, Any]]) -> str | None:
    """Say what the marks don't: that two responses differ where no mark shows it."""
    if len(responses) == 1:
        return None
    one, other = (each["response"].text for each in responses)
    shown = [piece for each in responses for piece in each.get("pieces", ())]
    if one == other:
        return "They are the same, letter for letter."
    if one[:LONG] == other[:LONG] or (shown and not any(piece.own for piece in shown)):
        return "What is shown here is the same; they differ further on."
    return None if shown else "They are too long for it to be marked."


def _judged(report: EvaluationReport | None) -> list[Judged]:
    return [] if report is None else _cut(report.criteria, "reasoning-")


def _sides(report: EvaluationReport | None) -> list[tuple[str, Any, list[Judged]]]:
    if report is None:
        return []
    return [
        (side, scored, _cut(scored.criteria, f"reasoning-{side}-"))
        for side, scored in (report.responses or {}).items()
    ]


def _cut(criteria: Sequence[CriterionReport], part: str) -> list[Judged]:
    return [
        Judged(criterion=each, reasoning=cut_text(each.reasoning, SHORT, f"{part}{place}"))
        for place, each in enumerate(criteria)
    ]


def _decision(run: RunRow, record: SampleRecord) -> str | None:
    if record.result.decision is None:
        return None
    meanings = {each.decide: each.meaning for each in rubric_of(run).sample_decisions}
    meaning = meanings.get(record.result.decision)
    return f"{record.result.decision}: {meaning}" if meaning else record.result.decision
