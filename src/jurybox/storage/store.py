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
    OutboxRow,
    ReviewRow,
    RunRow,
    SampleRow,
    frame_hash,
)
from jurybox.errors import InputError
from jurybox.review.reviews import active_rows
from jurybox.scoring.sample_result import Facets, facets_of
from jurybox.storage import schema as statements
from jurybox.storage.database import (
    ALL,
    EVERY,
    Database,
    DatabaseSession,
    PagedReader,
    Values,
    retried,
    writing,
)
from jurybox.storage.sample_search import MOST_GROUPS, Finder, Groups, SamplePage, SampleQuery

T = TypeVar("T")
_FRAME: Final = ExchangeRow.__struct_fields__.index("frame")


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
    out of space or unreachable. Then nothing was written, except that after a lost connection,
    everything may have been.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._reader = PagedReader(database)
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
        values = self._values([row])
        with writing(self._database) as session:
            session.insert(statements.INSERT_RUN, values)

    def update_run(self, row: RunRow) -> None:
        """Replace the row of a run."""
        (values,) = self._values([row])

        def update(_: bool) -> None:  # noqa: FBT001 - a callback
            with writing(self._database) as session:
                if session.execute(statements.UPDATE_RUN, (*values, row.id)) != 1:
                    raise self._reader.error("no run")

        retried(self._database, update)

    def run(self, run_id: str) -> RunRow | None:
        """Return a run."""
        return _first(self._reader.rows(list[RunRow], statements.RUN, (run_id,)))

    def runs(self, limit: int | None = None) -> Sequence[RunRow]:
        """Return runs, the newest first."""
        most = ALL if limit is None else limit
        return self._reader.rows(list[RunRow], statements.NEWEST_RUNS, (most,))

    def find_runs(self, prefix: str) -> Sequence[RunRow]:
        """Return the runs whose ids have this prefix, the newest first."""
        return self._reader.rows(list[RunRow], statements.FIND_RUNS, (len(prefix), prefix))

    def labeled_runs(self, label: str) -> Sequence[RunRow]:
        """Return the runs whose metadata may contain ``label`` as a value, the newest first."""
        return self._reader.rows(list[RunRow], statements.LABELED_RUNS, (f'%"{label}"%',))

    def delete_run(self, run_id: str) -> None:
        """Remove a run and everything that belongs to it."""
        with writing(self._database) as session:
            for statement in statements.DELETE_RUN:
                session.execute(statement, (run_id,))

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Lock a run so that no other process works on it; False if another process does.

        The lock ends with the process.
        """
        return self._database.claim(run_id)

    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        """Store finished samples and exchanges, all of them or none."""
        batches = self._batches(samples, exchanges)
        if not batches:
            return

        def insert(again: bool) -> None:  # noqa: FBT001 - the same
            with writing(self._database) as session:
                # All rows are stored or none: if one is there, the lost request succeeded.
                if again and _is_stored(session, samples, exchanges):
                    return
                for statement, values in batches:
                    session.insert(statement, values)

        retried(self._database, insert)

    def replace_sample(
        self, row: RunRow, sample: SampleRow, exchanges: Sequence[ExchangeRow]
    ) -> None:
        """Replace a run's row and a sample that was evaluated again; add its new exchanges.

        Earlier exchanges stay, even failures, because some of their replies are reused.
        """
        (values,) = self._values([row])
        batches = self._batches([sample], exchanges)
        with writing(self._database) as session:
            session.execute(statements.DELETE_FACETS, (row.id, sample.number))
            session.execute(statements.DELETE_SAMPLE, (row.id, sample.number))
            for statement, each in batches:
                session.insert(statement, each)
            session.execute(statements.UPDATE_RUN, (*values, row.id))

    def transient_failures(self, run_id: str) -> Sequence[int]:
        """Return the numbers of samples with a request that failed for a transient reason."""
        values = (run_id, statements.TRANSIENT)
        found = self._reader.rows(list[tuple[int]], statements.FAILED_NUMBERS, values)
        return [number for (number,) in found]

    def queued_numbers(self, run_id: str) -> Sequence[int]:
        """Return the numbers of the samples that need review, the most urgent first."""
        found = self._reader.rows(list[tuple[int]], statements.QUEUED_NUMBERS, (run_id,))
        return [number for (number,) in found]

    def reviewed_facets(self, run_id: str) -> dict[int, Facets]:
        """Return the index entries of the samples with reviews, by number."""
        found = self._reader.rows(list[Facets], statements.REVIEWED_FACETS, (run_id, run_id))
        return {each.number: each for each in found}

    def numbers(self, run_id: str) -> Iterator[int]:
        """Yield the numbers of the stored samples, in order."""
        return (number for (number,) in self._reader.pages(statements.NUMBERS, run_id))

    def results(self, run_id: str, numbers: range = EVERY) -> Iterator[statements.Result]:
        """Yield number, repeat, record hash and result of these samples, in order."""
        return self._reader.pages(statements.RESULTS, run_id, numbers)

    def hashes(self, run_id: str) -> Iterator[str]:
        """Stream the hashes of the records, sorted as text."""
        # Not read in pages, because each page would sort all rows again.
        kind = list[tuple[str]]
        return (each for (each,) in self._reader.stream(kind, statements.HASHES, (run_id,)))

    def samples(self, run_id: str) -> Iterator[SampleRow]:
        """Stream the samples in order."""
        return self._reader.pages(statements.WHOLE_SAMPLES, run_id)

    def sample(self, run_id: str, number: int) -> SampleRow | None:
        """Return one sample."""
        return _first(self._reader.rows(list[SampleRow], statements.SAMPLE, (run_id, number)))

    def find_sample(
        self, run_id: str, sample_id: str, repeat: int | None = None
    ) -> SampleRow | None:
        """Return a sample by id, by default in the first stored repeat."""
        if repeat is None:
            found = self._reader.rows(list[SampleRow], statements.FIND_SAMPLE, (run_id, sample_id))
        else:
            values = (run_id, sample_id, repeat)
            found = self._reader.rows(list[SampleRow], statements.FIND_REPEAT, values)
        return _first(found)

    def find_samples(self, run_id: str, query: SampleQuery) -> SamplePage:
        """Return a page of the matching samples, with their count in total and by flag."""
        query.check()
        return Finder(self._database, self._reader, run_id, query).page()

    def sorted_numbers(self, run_id: str, query: SampleQuery) -> Iterator[int]:
        """Yield the numbers of all samples that match a query without a search, in its order."""
        query.check()
        return Finder(self._database, self._reader, run_id, query).numbers()

    def groups(self, run_id: str) -> Groups:
        """Return the scenarios and demographics that samples can be filtered by."""
        kind, values = list[tuple[str]], (run_id, run_id, MOST_GROUPS)
        return Groups(
            scenarios=tuple(
                name for (name,) in self._reader.rows(kind, statements.SCENARIOS, values)
            ),
            demographics=tuple(
                name for (name,) in self._reader.rows(kind, statements.DEMOGRAPHICS, values)
            ),
        )

    def facets(self, run_id: str, numbers: range = EVERY) -> Iterator[Facets]:
        """Yield the index entries of these samples, in order, page by page."""
        return self._reader.pages(statements.WHOLE_FACETS, run_id, numbers)

    def exchanges(self, run_id: str) -> Iterator[ExchangeRow]:
        """Stream the exchanges of all samples, in order."""
        return self._reader.pages(statements.WHOLE_EXCHANGES, run_id)

    def exchanges_of(self, run_id: str, number: int) -> Sequence[ExchangeRow]:
        """Return the exchanges of one sample, in order."""
        return self._reader.rows(list[ExchangeRow], statements.EXCHANGES_OF, (run_id, number))

    def unfinished(self, run_id: str, numbers: range = EVERY) -> Iterator[ExchangeRow]:
        """Yield the exchanges of the unfinished samples in a range, in order."""
        return self._reader.pages(statements.UNFINISHED, run_id, numbers)

    def find_exchange(self, key: str) -> ExchangeRow | None:
        """Return the newest exchange with that key, in any run."""
        if not self._has_keys:
            # Created on first use, since runs without a cache don't need the index.
            with writing(self._database) as session:
                self._database.lock(session, "jurybox_schema")
                session.execute(statements.INDEX_KEYS)
            self._has_keys = True
        return _first(self._reader.rows(list[ExchangeRow], statements.FIND_EXCHANGE, (key,)))

    def add_batch(self, row: BatchRow) -> None:
        """Store a batch that is about to be submitted."""
        values = self._values([row])
        with writing(self._database) as session:
            session.insert(statements.INSERT_BATCH, values)

    def update_batch(self, row: BatchRow) -> None:
        """Replace the row of a batch."""
        (values,) = self._values([row])
        with writing(self._database) as session:
            if session.execute(statements.UPDATE_BATCH, (*values, row.run_id, row.number)) != 1:
                raise self._reader.error("damaged")

    def batches(self, run_id: str) -> Sequence[BatchRow]:
        """Return the batches of a run, in order."""
        return self._reader.rows(list[BatchRow], statements.BATCHES_OF, (run_id,))

    def add_calibration(self, row: CalibrationRow) -> None:
        """Store a calibration."""
        values = self._values([row])
        with writing(self._database) as session:
            session.insert(statements.INSERT_CALIBRATION, values)

    def calibrations(self, rubric_id: str | None = None) -> Sequence[CalibrationRow]:
        """Return the calibrations of a rubric, or all of them, the newest first."""
        if rubric_id is None:
            return self._reader.rows(list[CalibrationRow], statements.ALL_CALIBRATIONS, ())
        return self._reader.rows(list[CalibrationRow], statements.CALIBRATIONS_OF, (rubric_id,))

    def add_review(self, row: ReviewRow) -> None:
        """Store a person's verdict on a sample, or its withdrawal."""
        values = self._values([row])
        with writing(self._database) as session:
            _check_review(session, row)
            session.insert(statements.INSERT_REVIEW, values)

    def claim_sample(
        self, run_id: str, number: int, reviewer: str, *, now: str, since: str, most: int
    ) -> bool:
        """Assign a sample to a reviewer instead of their last; False if ``most`` others have it.

        A reviewer has a sample if it was assigned to them after ``since``, or if they reviewed it.
        """
        with writing(self._database) as session:
            self._database.lock(session, f"review_claims {run_id}")
            holders = session.rows(statements.HOLDERS, (run_id, number, since))
            found = session.rows(statements.REVIEWS_OF, (run_id, number))
            reviews = active_rows(self._reader.read(list[ReviewRow], found))
            others = {*(name for (name,) in holders), *(row.reviewer for row in reviews)}
            if len(others - {reviewer}) >= most:
                return False
            session.execute(statements.CLAIM_SAMPLE, (run_id, reviewer, number, now))
        return True

    def reviews(self, run_id: str) -> Sequence[ReviewRow]:
        """Return the reviews of a run, in the order in which they were made."""
        return self._reader.rows(list[ReviewRow], statements.REVIEWS_OF_RUN, (run_id,))

    def review_state(self, run_id: str) -> str:
        """Return a string that changes with every review of a run; empty without reviews."""
        kind = list[tuple[int, str | None]]
        ((count, last),) = self._reader.rows(kind, statements.REVIEW_STATE, (run_id,))
        return f"{count} {last}" if count else ""

    def reviews_of(self, run_id: str, number: int) -> Sequence[ReviewRow]:
        """Return the reviews of one sample, in the order in which they were made."""
        return self._reader.rows(list[ReviewRow], statements.REVIEWS_OF, (run_id, number))

    def put_out(self, rows: Sequence[OutboxRow]) -> None:
        """Add rows to the outbox; replace an existing row only if its version differs."""
        values = self._values(rows)
        with writing(self._database) as session:
            session.insert(statements.PUT_OUT, values)

    def update_outbox(self, rows: Sequence[OutboxRow]) -> None:
        """Replace the state and the error of rows."""
        with writing(self._database) as session:
            for row in rows:
                key = (row.run_id, row.number, row.part, row.version)
                session.execute(statements.UPDATE_OUTBOX, (row.state, row.error, *key))

    def outbox(
        self, state: str, part: str, run_id: str | None = None, limit: int | None = None
    ) -> Sequence[OutboxRow]:
        """Return the outbox rows of a part in a state, of one run or of all runs, in order."""
        most = ALL if limit is None else limit
        own, statement = ((), statements.OUTBOX_IN)
        if run_id is not None:
            own, statement = ((run_id,), statements.OUTBOX_OF)
        return self._reader.rows(list[OutboxRow], statement, (state, part, *own, most))

    def outbox_counts(self) -> Sequence[tuple[str, str, str, str, int]]:
        """Return each run, part and state, with one of its errors and its number of rows."""
        kind = list[tuple[str, str, str, str, int]]
        return self._reader.rows(kind, statements.OUTBOX_COUNTS, ())

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
            raise self._reader.error("unstorable")
        # Frames are inserted every time, because another process may have removed one. They are
        # sorted, because two writers that wait for each other's frames would deadlock.
        frames = {(row.run_id, frame_hash(row.frame), row.frame) for row in exchanges if row.frame}
        batches: tuple[tuple[str, list[Values]], ...] = (
            (statements.INSERT_SAMPLE, [*map(astuple, samples)]),
            (statements.INSERT_FACETS, [astuple(facets_of(row)) for row in samples]),
            (statements.INSERT_FRAME, [*sorted(frames)]),
            (statements.INSERT_EXCHANGE, [_exchange_values(row) for row in exchanges]),
        )
        return [(statement, values) for statement, values in batches if values]

    def _values(self, rows: Sequence[AnyRow | OutboxRow]) -> list[Values]:
        values: list[Values] = [*map(astuple, rows)]
        # SQLite accepts NUL, but PostgreSQL doesn't, and stores must be portable.
        if any(isinstance(each, str) and "\0" in each for row in values for each in row):
            raise self._reader.error("unstorable")
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
        return bool(session.rows(statements.RECORD_OF, (sample.run_id, sample.number)))
    key = [(row.run_id, row.number, row.position) for row in exchanges[:1]]
    return any(session.rows(statements.HAS_EXCHANGE, values) for values in key)


def _check_review(session: DatabaseSession, row: ReviewRow) -> None:
    """Check that the reviewed sample, or the withdrawn review, exists."""
    where = f"run {row.run_id}"
    found = session.rows(statements.RECORD_OF, (row.run_id, row.number))
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
            "a review must not name another review, and a withdrawal must",
            "name a review only in a withdrawal",
            where,
        )
    place = (row.of, row.run_id, row.number)
    if row.of is not None and not session.rows(statements.REVIEW_TO_WITHDRAW, place):
        raise InputError(
            f"sample number {row.number} has no review `{row.of}`",
            "withdraw an existing review",
            where,
        )
