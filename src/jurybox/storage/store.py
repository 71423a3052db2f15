"""The store of runs, in either database."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from heapq import merge
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeVar

import msgspec
from msgspec.structs import astuple

from jurybox.engine.records import (
    AnyRow,
    BatchRow,
    CalibrationRow,
    ExchangeRow,
    Facets,
    OutboxRow,
    RunRow,
    SampleRow,
    facets_of,
    frame_hash,
)
from jurybox.errors import InputError
from jurybox.review.reviews import ReviewRow, active_rows
from jurybox.storage.database import ALL, EVERY, Values
from jurybox.storage.sample_search import (
    Finder,
    Groups,
    SamplePage,
    SampleQuery,
    groups_of,
    one_of,
)
from jurybox.storage.schema import (
    Database,
    DatabaseSession,
    Result,
    RowFinder,
    insert,
    select,
    update,
)
from jurybox.storage.text_search import TextSearch

T = TypeVar("T")
_FRAME: Final = ExchangeRow.__struct_fields__.index("frame")
# ruff: noqa: S608 - the names are ours, and values are never written into a statement
_NEWEST: Final = "ORDER BY created_at DESC, id DESC"
_OLDEST: Final = "ORDER BY created_at, id"
_OF_SAMPLE: Final = "WHERE run_id = ? AND number = ?"
# Only reusable exchanges have a key; the others take no space in the index.
_INDEX_KEYS: Final = (
    "CREATE INDEX IF NOT EXISTS exchanges_by_key ON exchanges (key) WHERE key <> ''"
)
NEWEST_WITH_KEY: Final = (
    "JOIN runs ON runs.id = exchanges.run_id"
    # The second condition repeats that of the index; without it, the index isn't used.
    " WHERE exchanges.key = ? AND exchanges.key <> ''"
    " ORDER BY runs.created_at DESC, runs.id DESC, exchanges.number DESC, exchanges.position DESC"
    " LIMIT 1"
)
_RECORD: Final = f"SELECT record_sha256 FROM samples {_OF_SAMPLE}"
_INSERT_FRAME: Final = (
    "INSERT INTO frames (run_id, sha256, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
)
_PUT_OUT: Final = (
    f"{insert(OutboxRow)} ON CONFLICT (run_id, number, part) DO UPDATE SET"
    " version = excluded.version, detail = excluded.detail, state = excluded.state,"
    " error = excluded.error WHERE outbox.version <> excluded.version"
)
_CLAIM: Final = (
    "INSERT INTO review_claims (run_id, reviewer, number, claimed_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (run_id, reviewer)"
    " DO UPDATE SET number = excluded.number, claimed_at = excluded.claimed_at"
)
# Rows are deleted before the rows that they refer to.
_PARTS: Final = "outbox review_claims reviews facets samples exchanges frames batches"


class StoredRows(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of one sample; an unfinished sample has no sample row."""

    number: int
    sample: SampleRow | None
    facets: Facets | None
    exchanges: list[ExchangeRow]

    @property
    def name(self) -> str:
        """The record's name in messages."""
        if self.sample is None:
            return f"record {self.number}"
        return f"record {self.number}, sample {self.sample.sample_id}, repeat {self.sample.repeat}"


class Store:
    """Runs, samples and exchanges in a database; any thread may call it.

    Calls block. Every method raises `IncompleteError` if the store is damaged, locked for too long,
    out of space or unreachable. Nothing was written in this case, unless the connection was lost:
    then everything may have been written.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reader = RowFinder(database)
        self._has_keys = False

    def __repr__(self) -> str:
        """Show the name, which contains no password."""
        return f"Store({self._database.name!r})"

    @property
    def address(self) -> str:
        """The path of its file, or the URL of its server, with the password if it has one."""
        return self._database.address

    def create_run(self, row: RunRow) -> None:
        """Store a new run."""
        self._insert(row)

    def update_run(self, row: RunRow) -> None:
        """Replace the row of a run."""
        (values,) = self._values([row])

        def replace(_: bool) -> None:  # noqa: FBT001 - a callback
            with self._database.writing() as session:
                if session.execute(update(RunRow, "id"), (*values, row.id)) != 1:
                    raise self._database.error("no run")

        self._database.retried(replace)

    def run(self, run_id: str) -> RunRow | None:
        """Return a run."""
        return _first(self._reader.find(RunRow, "WHERE id = ?", run_id))

    def runs(self, limit: int | None = None, *, without: str = "") -> Sequence[RunRow]:
        """Return runs, the newest first, except those whose suite's name has ``without`` in it."""
        most, name = ALL if limit is None else limit, f"%{without}%" if without else ""
        return self._reader.find(RunRow, f"WHERE suite NOT LIKE ? {_NEWEST} LIMIT ?", name, most)

    def find_runs(self, prefix: str) -> Sequence[RunRow]:
        """Return the runs whose ids have this prefix, the newest first."""
        # Not LIKE, which ignores case in SQLite, and has special characters that users may type.
        rest = f"WHERE substr(id, 1, ?) = ? {_NEWEST}"
        return self._reader.find(RunRow, rest, len(prefix), prefix)

    def labeled_runs(self, label: str) -> Sequence[RunRow]:
        """Return the runs whose metadata may have ``label`` as a value, newest first."""
        # SQLite ignores case here; the caller checks for the exact name.
        return self._reader.find(RunRow, f"WHERE metadata LIKE ? {_NEWEST}", f'%"{label}"%')

    def delete_run(self, run_id: str) -> None:
        """Remove a run and everything that belongs to it."""
        with self._database.writing() as session:
            for table in _PARTS.split():
                session.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))
            session.execute("DELETE FROM runs WHERE id = ?", (run_id,))

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Lock a run until the block or the process ends; False if another process has it."""
        return self._database.claim(run_id)

    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        """Store finished samples and exchanges, all of them or none."""
        batches = self._batches(samples, exchanges)
        if not batches:
            return

        def insert(again: bool) -> None:  # noqa: FBT001 - the same
            with self._database.writing() as session:
                # All rows are stored or none: if one is there, the lost request succeeded.
                if again and _is_stored(session, samples, exchanges):
                    return
                for statement, values in batches:
                    session.insert(statement, values)

        self._database.retried(insert)

    def reopen(self, row: RunRow, numbers: Sequence[int]) -> None:
        """Replace a run's row, and remove samples that are to be evaluated again.

        Their exchanges stay, even failures, because some of their replies are reused.
        """
        (values,) = self._values([row])
        with self._database.writing() as session:
            for number in numbers:
                for table in ("facets", "samples"):
                    session.execute(f"DELETE FROM {table} {_OF_SAMPLE}", (row.id, number))
            session.execute(update(RunRow, "id"), (*values, row.id))

    def transient_failures(self, run_id: str) -> Sequence[int]:
        """Return the numbers of samples with a request that failed for a transient reason."""
        # Failures have no key.
        failed = (
            "SELECT DISTINCT number FROM exchanges WHERE run_id = ? AND key = '' AND outcome LIKE ?"
            " ORDER BY number"
        )
        values = (run_id, '{"failure":%"transient":true%')
        return [number for (number,) in self._reader.rows(tuple[int], failed, values)]

    def queued_numbers(self, run_id: str) -> Sequence[int]:
        """Return the numbers of the samples that need review, the most urgent first."""
        # Numbers in one text are read in half the time that as many rows take.
        statement = (
            f"SELECT {self._database.numbers} FROM facets WHERE run_id = ? AND urgency > 0"
            " GROUP BY urgency ORDER BY urgency DESC"
        )
        found = self._reader.rows(tuple[str], statement, (run_id,))
        decoded = (msgspec.json.decode(numbers, type=list[int]) for (numbers,) in found)
        return [number for numbers in decoded for number in sorted(numbers)]

    def reviewed_facets(self, run_id: str) -> dict[int, Facets]:
        """Return the index entries of the samples with reviews, by number."""
        reviewed = "WHERE run_id = ? AND number IN (SELECT number FROM reviews WHERE run_id = ?)"
        found = self._reader.find(Facets, reviewed, run_id, run_id)
        return {each.number: each for each in found}

    def numbers(self, run_id: str) -> Iterator[int]:
        """Yield the numbers of the stored samples, in order."""
        statement = "SELECT number FROM samples WHERE run_id = ? ORDER BY number"
        return (number for (number,) in self._reader.stream(tuple[int], statement, (run_id,)))

    def results(self, run_id: str, numbers: range = EVERY) -> Iterator[Result]:
        """Yield number, repeat, record hash and result of these samples, in order."""
        return self._reader.pages(Result, run_id, numbers)

    def hashes(self, run_id: str) -> Iterator[str]:
        """Stream the hashes of the records, sorted as text."""
        # Not read in pages, because each page would sort all rows again.
        hashes = "SELECT record_sha256 FROM samples WHERE run_id = ? ORDER BY record_sha256"
        return (each for (each,) in self._reader.stream(tuple[str], hashes, (run_id,)))

    def samples(self, run_id: str) -> Iterator[SampleRow]:
        """Stream the samples in order."""
        return self._reader.pages(SampleRow, run_id)

    def sample(self, run_id: str, number: int) -> SampleRow | None:
        """Return one sample."""
        return _first(self._reader.find(SampleRow, _OF_SAMPLE, run_id, number))

    def samples_of(self, run_id: str, numbers: Sequence[int]) -> dict[int, SampleRow]:
        """Return some samples by number."""
        found = self._reader.find(SampleRow, f"WHERE run_id = ? AND {one_of(numbers)}", run_id)
        return {row.number: row for row in found}

    def find_sample(
        self, run_id: str, sample_id: str, repeat: int | None = None
    ) -> SampleRow | None:
        """Return a sample by id, by default in the first stored repeat."""
        own, condition = ((), "") if repeat is None else ((repeat,), "AND repeat = ?")
        rest = f"WHERE run_id = ? AND sample_id = ? {condition} ORDER BY repeat LIMIT 1"
        return _first(self._reader.find(SampleRow, rest, run_id, sample_id, *own))

    def matching(self, run_id: str, text: str) -> str:
        """Return the numbers of all samples that contain a text; slow in a large run."""
        return TextSearch(self._database, self._reader, run_id, text).numbers()

    def find_samples(self, run_id: str, query: SampleQuery) -> SamplePage:
        """Return a page of the matching samples, with their count in total and by flag."""
        return Finder(self._database, self._reader, run_id, query).page()

    def sorted_numbers(self, run_id: str, query: SampleQuery) -> Iterator[int]:
        """Yield the numbers of all samples that match a query without a search, in its order."""
        return Finder(self._database, self._reader, run_id, query).numbers()

    def groups(self, run_id: str, query: SampleQuery | None = None) -> Groups:
        """Return the scenarios and demographics that samples (that match) can be filtered by."""
        return groups_of(self._database, self._reader, run_id, query)

    def facets(self, run_id: str, numbers: range = EVERY) -> Iterator[Facets]:
        """Yield the index entries of these samples, in order, page by page."""
        return self._reader.pages(Facets, run_id, numbers)

    def exchanges(self, run_id: str) -> Iterator[ExchangeRow]:
        """Stream the exchanges of all samples, in order."""
        return self._reader.pages(ExchangeRow, run_id)

    def exchanges_of(self, run_id: str, number: int) -> Sequence[ExchangeRow]:
        """Return the exchanges of one sample, in order."""
        rest = "WHERE exchanges.run_id = ? AND number = ? ORDER BY position"
        return self._reader.find(ExchangeRow, rest, run_id, number)

    def unfinished(self, run_id: str, numbers: range = EVERY) -> Iterator[ExchangeRow]:
        """Yield the exchanges of the unfinished samples in a range, in order."""
        without_sample = (
            "AND NOT EXISTS (SELECT 1 FROM samples"
            " WHERE samples.run_id = exchanges.run_id AND samples.number = exchanges.number)"
        )
        return self._reader.pages(ExchangeRow, run_id, numbers, without_sample)

    def find_exchange(self, key: str) -> ExchangeRow | None:
        """Return the newest exchange with that key, in any run."""
        if not self._has_keys:
            # Created on first use, since runs without a cache don't need the index.
            with self._database.writing() as session:
                session.lock("jurybox_schema")
                session.execute(_INDEX_KEYS)
            self._has_keys = True
        return _first(self._reader.find(ExchangeRow, NEWEST_WITH_KEY, key))

    def add_batch(self, row: BatchRow) -> None:
        """Store a batch that is about to be submitted."""
        self._insert(row)

    def update_batch(self, row: BatchRow) -> None:
        """Replace the row of a batch."""
        (values,) = self._values([row])
        with self._database.writing() as session:
            statement = update(BatchRow, "run_id", "number")
            if session.execute(statement, (*values, row.run_id, row.number)) != 1:
                raise self._database.error("damaged")

    def batches(self, run_id: str) -> Sequence[BatchRow]:
        """Return the batches of a run, in order."""
        return self._reader.find(BatchRow, "WHERE run_id = ? ORDER BY number", run_id)

    def add_calibration(self, row: CalibrationRow) -> None:
        """Store a calibration."""
        self._insert(row)

    def calibrations(self, rubric_id: str | None = None) -> Sequence[CalibrationRow]:
        """Return the calibrations of a rubric, or all of them, the newest first."""
        if rubric_id is None:
            return self._reader.find(CalibrationRow, _NEWEST)
        return self._reader.find(CalibrationRow, f"WHERE rubric_id = ? {_NEWEST}", rubric_id)

    def add_review(self, row: ReviewRow) -> None:
        """Store a person's verdict on a sample, or its withdrawal."""
        values = self._values([row])
        with self._database.writing() as session:
            _check_review(session, row)
            session.insert(insert(ReviewRow), values)

    def claim_sample(
        self, run_id: str, number: int, reviewer: str, *, now: str, since: str, most: int
    ) -> bool:
        """Assign a sample to a reviewer in place of their last; False if too many have it.

        A reviewer has a sample if it was assigned to them after ``since``, or if they reviewed it.
        """
        with self._database.writing() as session:
            session.lock(f"review_claims {run_id}")
            holding = f"SELECT reviewer FROM review_claims {_OF_SAMPLE} AND claimed_at > ?"
            holders = session.rows(holding, (run_id, number, since))
            made = f"{select(ReviewRow)} {_OF_SAMPLE} {_OLDEST}"
            found = session.rows(made, (run_id, number))
            reviews = active_rows(self._reader.read(ReviewRow, found))
            others = {*(name for (name,) in holders), *(row.reviewer for row in reviews)}
            if len(others - {reviewer}) >= most:
                return False
            session.execute(_CLAIM, (run_id, reviewer, number, now))
        return True

    def reviews(self, run_id: str) -> Sequence[ReviewRow]:
        """Return the reviews of a run, in the order in which they were made."""
        return self._reader.find(ReviewRow, f"WHERE run_id = ? {_OLDEST}", run_id)

    def review_state(self, run_id: str) -> str:
        """Return a string that changes with every review of a run; empty without reviews."""
        statement = "SELECT count(*), max(id) FROM reviews WHERE run_id = ?"
        ((count, last),) = self._reader.rows(tuple[int, str | None], statement, (run_id,))
        return f"{count} {last}" if count else ""

    def reviews_of(self, run_id: str, *numbers: int) -> Sequence[ReviewRow]:
        """Return the reviews of some samples, in the order in which they were made."""
        rest = f"WHERE run_id = ? AND {one_of(numbers)} {_OLDEST}"
        return self._reader.find(ReviewRow, rest, run_id)

    def put_out(self, rows: Sequence[OutboxRow]) -> None:
        """Add rows to the outbox; replace an existing row only if its version differs."""
        values = self._values(rows)
        with self._database.writing() as session:
            session.insert(_PUT_OUT, values)

    def update_outbox(self, rows: Sequence[OutboxRow]) -> None:
        """Replace the state and the error of rows."""
        statement = (
            f"UPDATE outbox SET state = ?, error = ? {_OF_SAMPLE} AND part = ? AND version = ?"
        )
        with self._database.writing() as session:
            for row in rows:
                key = (row.run_id, row.number, row.part, row.version)
                session.execute(statement, (row.state, row.error, *key))

    def outbox(
        self, state: str, part: str, run_id: str | None = None, limit: int | None = None
    ) -> Sequence[OutboxRow]:
        """Return the outbox rows of a part in a state, of one run or of all runs, in order."""
        most = ALL if limit is None else limit
        own, condition = ((), "") if run_id is None else ((run_id,), "AND run_id = ?")
        rest = f"WHERE state = ? AND part = ? {condition} ORDER BY run_id, number LIMIT ?"
        return self._reader.find(OutboxRow, rest, state, part, *own, most)

    def outbox_counts(self) -> Sequence[tuple[str, str, str, str, int]]:
        """Count the outbox rows by run, part and state; return each with one of its errors."""
        statement = (
            "SELECT run_id, part, state, max(error), count(*) FROM outbox"
            " GROUP BY run_id, part, state ORDER BY run_id, part, state"
        )
        return self._reader.rows(tuple[str, str, str, str, int], statement, ())

    def stored_rows(self, run_id: str) -> Iterator[StoredRows]:
        """Yield the rows of every sample of a run, in order."""
        number = attrgetter("number")
        # Samples are read first, so that even in a run in progress all their rows are stored.
        rows = merge(self.samples(run_id), self.facets(run_id), self.exchanges(run_id), key=number)
        for key, several in groupby(rows, key=number):
            group = list(several)
            yield StoredRows(
                number=key,
                sample=next((row for row in group if isinstance(row, SampleRow)), None),
                facets=next((row for row in group if isinstance(row, Facets)), None),
                exchanges=[row for row in group if isinstance(row, ExchangeRow)],
            )

    def close(self) -> None:
        """Close the store."""
        self._database.close()

    def _batches(
        self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]
    ) -> list[tuple[str, list[Values]]]:
        """Return the statements that insert these rows, each with its values."""
        # Only an id may contain NUL; all other texts are JSON.
        if any("\0" in row.sample_id for row in samples):
            raise self._database.error("unstorable")
        # Frames are inserted every time, because another process may have removed one. They are
        # sorted, because two writers that wait for each other's frames would deadlock.
        frames = {(row.run_id, frame_hash(row.frame), row.frame) for row in exchanges if row.frame}
        batches: tuple[tuple[str, list[Values]], ...] = (
            (insert(SampleRow), [*map(astuple, samples)]),
            (insert(Facets), [astuple(facets_of(row)) for row in samples]),
            (_INSERT_FRAME, [*sorted(frames)]),
            (insert(ExchangeRow), [_exchange_values(row) for row in exchanges]),
        )
        return [(statement, values) for statement, values in batches if values]

    def _insert(self, row: AnyRow) -> None:
        values = self._values([row])
        with self._database.writing() as session:
            session.insert(insert(type(row)), values)

    def _values(self, rows: Sequence[AnyRow | OutboxRow]) -> list[Values]:
        values: list[Values] = [*map(astuple, rows)]
        # SQLite accepts NUL, but PostgreSQL doesn't, and stores must be portable.
        if any(isinstance(each, str) and "\0" in each for row in values for each in row):
            raise self._database.error("unstorable")
        return values


def _exchange_values(row: ExchangeRow) -> Values:
    """Return a row's values, with the frame replaced by its hash."""
    values = [*astuple(row)]
    values[_FRAME] = frame_hash(row.frame) if row.frame else None
    return values


def _first(rows: list[T]) -> T | None:
    return rows[0] if rows else None


def _is_stored(
    session: DatabaseSession, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]
) -> bool:
    for sample in samples[:1]:
        return bool(session.rows(_RECORD, (sample.run_id, sample.number)))
    key = [(row.run_id, row.number, row.position) for row in exchanges[:1]]
    statement = f"SELECT 1 FROM exchanges {_OF_SAMPLE} AND position = ?"
    return any(session.rows(statement, values) for values in key)


def _check_review(session: DatabaseSession, row: ReviewRow) -> None:
    """Check that the reviewed sample, or the withdrawn review, exists."""
    where = f"run {row.run_id}"
    found = session.rows(_RECORD, (row.run_id, row.number))
    if not found:
        raise InputError(f"it has no sample number {row.number}", "review another sample", where)
    if found != [(row.record_sha256,)]:
        raise InputError(
            f"sample number {row.number} has changed since it was reviewed",
            "look at it again",
            where,
        )
    if (row.action, row.of is None) not in {("review", True), ("withdrawal", False)}:
        raise InputError(
            "a review must have no `of`, and a withdrawal needs the id of a review there",
            "set `of` only in a withdrawal",
            where,
        )
    review = f"SELECT 1 FROM reviews {_OF_SAMPLE} AND id = ? AND action = 'review'"
    if row.of is not None and not session.rows(review, (row.run_id, row.number, row.of)):
        raise InputError(
            f"sample number {row.number} has no review `{row.of}`",
            "withdraw an existing review",
            where,
        )
