"""The texts of a sample by name, as a page shows and searches them."""

from collections.abc import Iterator

import msgspec

from jurybox.engine.records import ExchangeRow, read_outcome
from jurybox.judging.flow import Failure
from jurybox.reporting.stored import SampleRecord


def pretty(text: str) -> str:
    """Return JSON with a line for each value; other texts are unchanged."""
    try:
        return msgspec.json.format(text.encode(errors="replace"), indent=2).decode()
    except (msgspec.DecodeError, RecursionError):
        return text


def texts_of(record: SampleRecord, most: int | None = None) -> Iterator[tuple[str, str]]:
    """Yield all texts of a sample by name, with the texts of at most ``most`` exchanges."""
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
    for place, exchange in enumerate(record.exchanges[:most]):
        yield f"request-{place}", pretty(exchange.request)
        yield f"reply-{place}", _said(exchange)


def _said(exchange: ExchangeRow) -> str:
    outcome = read_outcome(exchange)
    if isinstance(outcome, Failure):
        return f"{outcome.kind}: {outcome.message}"
    return outcome.text
