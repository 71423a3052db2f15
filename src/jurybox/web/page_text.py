"""Texts of any length on a page: cut where they are too long, with a way to all of each."""

from collections.abc import Iterator
from typing import Final

import msgspec

from jurybox.engine.records import ExchangeRow, read_outcome, read_request
from jurybox.judging.flow import Failure
from jurybox.reporting.stored import SampleRecord, exchange_notes

LONG: Final = 6000
SHORT: Final = 1500
NAME: Final = 160


class CutText(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a text, how much is left of it, and where all of it is."""

    shown: str
    left: int
    part: str = ""


class ExchangeView(msgspec.Struct, frozen=True, kw_only=True):
    """A request and what came of it."""

    number: int
    role: str
    model: str
    latency_ms: float | None
    cached: bool
    failed: bool
    request: CutText
    reply: CutText
    details: CutText


def cut_text(text: str, most: int = LONG, part: str = "") -> CutText:
    """Return the beginning of a text."""
    return CutText(shown=text[:most], left=max(0, len(text) - most), part=part)


def pretty(text: str) -> str:
    """Return JSON with a line for each value; what is none stays as it is."""
    try:
        return msgspec.json.format(text.encode(errors="replace"), indent=2).decode()
    except (msgspec.DecodeError, RecursionError):
        return text


def whole_text(record: SampleRecord, part: str) -> str | None:
    """Return a text of a sample by the name of the part; None where there is none."""
    return next((text for name, text in _parts(record) if name == part), None)


def _parts(record: SampleRecord) -> Iterator[tuple[str, str]]:
    row = record.inputs
    yield "task", row.task
    yield "context", row.context or ""
    yield "reference", row.reference or ""
    yield "metadata", pretty(msgspec.json.encode(row.metadata).decode())
    for place, turn in enumerate(row.messages):
        yield f"message-{place}", turn.content
    yield "response", record.responses.response.text
    if record.responses.response_b is not None:
        yield "response-b", record.responses.response_b.text
    if record.report is not None:
        for place, criterion in enumerate(record.report.criteria):
            yield f"reasoning-{place}", criterion.reasoning
        for side, scored in (record.report.responses or {}).items():
            for place, criterion in enumerate(scored.criteria):
                yield f"reasoning-{side}-{place}", criterion.reasoning
        yield (
            "checklist",
            "\n\n".join(f"{item}: {said}" for item, said in record.report.bias_checklist.items()),
        )
    for place, exchange in enumerate(record.exchanges):
        yield f"request-{place}", pretty(exchange.request)
        yield f"reply-{place}", _said(exchange)
        yield f"details-{place}", pretty(exchange.outcome)


def _said(exchange: ExchangeRow) -> str:
    outcome = read_outcome(exchange)
    if isinstance(outcome, Failure):
        return f"{outcome.kind}: {outcome.message}"
    return outcome.text


def exchange_of(place: int, row: ExchangeRow) -> ExchangeView:
    """Return a request and what came of it, cut.

    Raises:
        msgspec.DecodeError: what is stored can't be read.

    """
    outcome = read_outcome(row)
    failed = isinstance(outcome, Failure)
    latency = exchange_notes(row).latency_ms if outcome.latency_ms is None else outcome.latency_ms
    return ExchangeView(
        number=place + 1,
        role=row.role,
        model=read_request(row).model,
        latency_ms=latency,
        cached=not isinstance(outcome, Failure) and outcome.cached,
        failed=failed,
        request=cut_text(pretty(row.request), part=f"request-{place}"),
        reply=cut_text(_said(row), part=f"reply-{place}"),
        details=cut_text(pretty(row.outcome), part=f"details-{place}"),
    )
