"""One sample of a run with all that is stored of it, taken apart."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from jurybox.engine.ports import SampleQuery, Store
from jurybox.engine.records import ExchangeRow, RunRow, SampleRow, in_order
from jurybox.engine.replay import StoredResponses
from jurybox.errors import InputError
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.reporting.record import Shape
from jurybox.reporting.stored import damaged, procedure_of
from jurybox.sample import Row
from jurybox.scoring.rules import AutomatedReport
from jurybox.scoring.sample_result import SampleResult
from jurybox.text_format import nearest

# Nobody means the last of a hundred thousand names, and comparing takes time.
_MOST_NAMES: Final = 1000


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as it is stored, taken apart."""

    row: SampleRow
    inputs: Row
    responses: StoredResponses
    report: EvaluationReport | None
    automated: AutomatedReport | None
    result: SampleResult
    exchanges: tuple[ExchangeRow, ...]


def find_record(store: Store, run: RunRow, sample_id: str, repeat: int | None) -> Record:
    """Return a sample of a run, in the first repeat that it is stored of unless one is named.

    Raises:
        InputError: there is no such sample.
        IncompleteError: what is stored can't be read.

    """
    found = store.find_sample(run.id, sample_id, repeat)
    if found is not None:
        return read_record(run, found, store.exchanges_of(run.id, found.number))
    if store.find_sample(run.id, sample_id) is not None:
        repeats = (each.repeat for each in store.facets(run.id) if each.sample_id == sample_id)
        there = ", ".join(map(str, repeats))
        raise InputError(f"there is no repeat {repeat} of it", f"there are {there}", sample_id)
    first = store.find_samples(run.id, SampleQuery(limit=_MOST_NAMES))
    names = (facets.sample_id for facets in first.rows)
    otherwise = "`jurybox export` lists them"
    raise InputError("the run has no such sample", nearest(sample_id, names, otherwise), sample_id)


def read_record(run: RunRow, row: SampleRow, exchanges: Sequence[ExchangeRow]) -> Record:
    """Take a sample apart.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    try:
        return Record(
            row=row,
            inputs=msgspec.json.decode(row.inputs, type=Row),
            responses=msgspec.json.decode(row.responses, type=StoredResponses),
            report=msgspec.json.decode(row.report or "null", type=EvaluationReport | None),
            automated=msgspec.json.decode(row.automated or "null", type=AutomatedReport | None),
            result=msgspec.json.decode(row.result, type=SampleResult),
            exchanges=tuple(in_order(row, exchanges)),
        )
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None


def record_as_data(record: Record, run: RunRow) -> dict[str, Any]:
    """Return a record as `jurybox export --raw` writes it, and whose it is."""
    procedure = procedure_of(run)
    shape = Shape(procedure.judging.rubric, rules=procedure.rules is not None, raw=True)
    return {"run_id": run.id, **shape.record(record.row, record.exchanges)}


class ExchangeNotes(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored beside an exchange."""

    latency_ms: float | None = None


_NOTES: Final = msgspec.json.Decoder(ExchangeNotes)


def exchange_notes(row: ExchangeRow) -> ExchangeNotes:
    """Read what is stored beside an exchange."""
    return _NOTES.decode(row.notes)
