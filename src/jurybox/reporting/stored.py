"""Reads the stored rows of a run and its samples; reports rows that can't be read."""

import contextlib
from collections.abc import Generator, Sequence
from functools import cached_property
from typing import Final

import msgspec

from jurybox.engine.plan import Metadata, Plan, read_plan
from jurybox.engine.records import (
    ExchangeRow,
    RunRow,
    SampleRow,
    StoredOutcome,
    in_order,
    read_result,
)
from jurybox.engine.replay import StoredResponses
from jurybox.errors import IncompleteError, InputError, JuryboxError
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.rubric import parse_rubric
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Row, Sample
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.rules.rule_report import AutomatedReport
from jurybox.scoring.sample_result import SampleResult
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store
from jurybox.text_format import nearest

_INPUTS: Final = msgspec.json.Decoder(Row)
_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)
_REPORT: Final = msgspec.json.Decoder(EvaluationReport)
_AUTOMATED: Final = msgspec.json.Decoder(AutomatedReport)
# Comparing a misspelled name with a hundred thousand others would take too long.
_MOST_NAMES: Final = 1000


def damaged(run: RunRow, why: object) -> IncompleteError:
    """Return the error for a run that can't be read."""
    return IncompleteError(f"run {run.id} can't be read ({why}); `jurybox verify` says where")


@contextlib.contextmanager
def reading(run: RunRow) -> Generator[None]:
    """Turn decoding errors of stored rows into an error about the run."""
    try:
        yield
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None


def plan_of(run: RunRow) -> Plan:
    """Return the plan of a run."""
    with reading(run):
        return read_plan(run.plan)


def metadata_of(run: RunRow) -> Metadata:
    """Return the metadata of a run."""
    with reading(run):
        return msgspec.json.decode(run.metadata, type=Metadata)


def run_title(run: RunRow, store: Store) -> str:
    """Return what users call a run: its name, else what it was rescored from, else its id."""
    try:
        if name := metadata_of(run).get("name"):
            return name
        before = store.run(plan_of(run).derived_from or "")
        if before is not None:
            rubric = rubric_of(run)
            return f"{run_title(before, store)}, rescored by {rubric.id} {rubric.version}"
    except IncompleteError:
        pass  # a damaged run must not hide the others
    return run.id


def outcome_of(run: RunRow) -> StoredOutcome:
    """Return the outcome of a finished run."""
    with reading(run):
        return msgspec.json.decode(run.outcome or "null", type=StoredOutcome)


def procedure_of(run: RunRow) -> Procedure:
    """Return how every sample of a run was evaluated."""
    try:
        return plan_of(run).procedure()
    except JuryboxError as error:
        raise error if isinstance(error, IncompleteError) else damaged(run, error) from None


def rubric_of(run: RunRow) -> Rubric:
    """Return the rubric by which a run was scored."""
    document = plan_of(run).rubric
    try:
        return parse_rubric(document.text, document.origin)
    except JuryboxError as error:
        raise damaged(run, error) from None


class SampleRecord:
    """A stored sample; each part is decoded when it is first used.

    Decoding may raise `msgspec.DecodeError`, so use the parts within `reading`.
    """

    def __init__(self, row: SampleRow, exchanges: Sequence[ExchangeRow] = ()) -> None:
        """Set the row, and the exchanges if the caller needs the sample's requests."""
        self.row = row
        self.exchanges = exchanges

    @property
    def id(self) -> str:
        """The sample's id."""
        return self.row.sample_id

    @property
    def repeat(self) -> int:
        """The number of the repeat, from 0."""
        return self.row.repeat

    @property
    def task(self) -> str:
        """The request to the system under test."""
        return self.inputs.task

    @property
    def response(self) -> str:
        """The response of the system under test."""
        return self.responses.response.text

    @property
    def scores(self) -> dict[str, float | None]:
        """The criteria's scores and all other values of the sample, by name."""
        return self.result.metrics

    @property
    def passed(self) -> bool | None:
        """Whether all pass rules pass; None for a rubric without pass rules."""
        return self.result.passed

    @cached_property
    def inputs(self) -> Row:
        """The row of the dataset."""
        return _INPUTS.decode(self.row.inputs)

    @cached_property
    def responses(self) -> StoredResponses:
        """The material that was judged."""
        return _RESPONSES.decode(self.row.responses)

    @cached_property
    def report(self) -> EvaluationReport | None:
        """The jury's report; None if no judge was asked."""
        return None if self.row.report is None else _REPORT.decode(self.row.report)

    @cached_property
    def automated(self) -> AutomatedReport | None:
        """The results of the rules; None for a rubric without rules."""
        return None if self.row.automated is None else _AUTOMATED.decode(self.row.automated)

    @cached_property
    def result(self) -> SampleResult:
        """The scores and flags."""
        return read_result(self.row.result)

    @property
    def sample(self) -> Sample:
        """The sample as it was judged."""
        row = msgspec.structs.replace(self.inputs, response_b=self.responses.response_b)
        return row.sample(self.responses.response)


def read_record(run: RunRow, row: SampleRow, exchanges: Sequence[ExchangeRow]) -> SampleRecord:
    """Decode all parts of a sample."""
    with reading(run):
        record = SampleRecord(row, tuple(in_order(row, exchanges)))
        _ = (record.inputs, record.responses, record.report, record.automated, record.result)
        return record


def numbered(store: Store, run: RunRow, number: int) -> SampleRow:
    """Return a sample by its number; a missing one is an error."""
    sample = store.sample(run.id, number)
    if sample is None:
        raise damaged(run, f"sample number {number} is missing")
    return sample


def find_record(store: Store, run: RunRow, sample_id: str, repeat: int | None) -> SampleRecord:
    """Return a sample of a run, by default in its first stored repeat."""
    found = store.find_sample(run.id, sample_id, repeat)
    if found is not None:
        return read_record(run, found, store.exchanges_of(run.id, found.number))
    if store.find_sample(run.id, sample_id) is not None:
        repeats = (each.repeat for each in store.facets(run.id) if each.sample_id == sample_id)
        there = ", ".join(map(str, repeats))
        raise InputError(f"there is no repeat {repeat}", f"name one of {there}", sample_id)
    first = store.find_samples(run.id, SampleQuery(limit=_MOST_NAMES))
    names = (facets.sample_id for facets in first.rows)
    otherwise = "`jurybox export` lists them"
    raise InputError("the run has no such sample", nearest(sample_id, names, otherwise), sample_id)


class ExchangeNotes(msgspec.Struct, frozen=True, kw_only=True):
    """The details stored with an exchange."""

    at: int | None = None
    latency_ms: float | None = None
    attempts: int = 1


_NOTES: Final = msgspec.json.Decoder(ExchangeNotes)


def exchange_notes(row: ExchangeRow) -> ExchangeNotes:
    """Read the details stored with an exchange."""
    return _NOTES.decode(row.notes)
