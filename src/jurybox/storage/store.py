"""The engine's `Store` over either database.

Rows are read in pages, each in a transaction of its own that goes on where the last one ended. So
nothing is held between two pages: not the rows, not a connection, and not a snapshot that would
keep SQLite's write-ahead log from being emptied.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from operator import lt
from typing import Final, TypeVar

import msgspec

from jurybox.running.records import (
    AnyRow,
    BatchRow,
    CalibrationRow,
    ExchangeRow,
    RunRow,
    SampleRow,
)
from jurybox.running.storing import EVERY
from jurybox.storage import statements
from jurybox.storage.database import Database, reading, writing
from jurybox.storage.framing import Framed, Framer
from jurybox.storage.pool import Found, Values
from jurybox.storage.trouble import Trouble, TroubleKind, error_of

T = TypeVar("T")
_REQUEST: Final = ExchangeRow.__struct_fields__.index("request")


class SqlStore:
    """Runs, samples and exchanges in a database; any thread may call it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._framer = Framer()

    def __repr__(self) -> str:
        """Show the name, which has no password in it."""
        return f"SqlStore({self._database.name!r})"

    def create_run(self, row: RunRow) -> None:
        """Store a new run."""
        values = self._values([row])
        with writing(self._database) as session:
            session.insert(statements.INSERT_RUN, values)

    def update_run(self, row: RunRow) -> None:
        """Replace the row of a run."""
        (values,) = self._values([row])
        with writing(self._database) as session:
            if session.execute(statements.UPDATE_RUN, (*values, row.id)) != 1:
                raise self._error("no run")

    def run(self, run_id: str) -> RunRow | None:
        """Return a run."""
        return _first(self._rows(list[RunRow], statements.RUN, (run_id,)))

    def runs(self, limit: int | None = None) -> Sequence[RunRow]:
        """Return runs, the newest first."""
        most = statements.ALL if limit is None else limit
        return self._rows(list[RunRow], statements.NEWEST_RUNS, (most,))

    def find_runs(self, prefix: str) -> Sequence[RunRow]:
        """Return the runs whose ids begin so, the newest first."""
        return self._rows(list[RunRow], statements.FIND_RUNS, (len(prefix), prefix))

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Hold a run, so that no other process works on it; False where another one does."""
        return self._database.claim(run_id)

    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        """Store finished samples and exchanges, all of them or none."""
        # Every time, and in one order: somebody may have taken a frame away, and two writers who
        # wait for each other's frames would wait for ever.
        framed = self._framer(exchanges)
        frames = {each.frame for each in framed if each.frame is not None}
        batches = (
            (statements.INSERT_SAMPLE, self._values(samples)),
            (statements.INSERT_FRAME, sorted(frames)),
            (statements.INSERT_EXCHANGE, self._exchange_values(exchanges, framed)),
        )
        if not any(values for _, values in batches):
            return
        with writing(self._database) as session:
            for statement, values in batches:
                if values:
                    session.insert(statement, values)

    def numbers(self, run_id: str) -> Iterator[int]:
        """Yield the numbers of the stored samples, in order."""
        return (number for (number,) in self._pages(statements.NUMBERS, run_id))

    def results(self, run_id: str) -> Iterator[statements.Result]:
        """Yield number, repeat, record hash and result of every sample, in order."""
        return self._pages(statements.RESULTS, run_id)

    def hashes(self, run_id: str) -> Iterator[str]:
        """Yield the hashes of the records, sorted as plain text, never all at once."""
        if not _storable(run_id):
            return
        # The one that isn't read in pages: each page would have to be sorted out of all rows anew.
        with (
            reading(self._database) as session,
            session.stream(statements.HASHES, (run_id,)) as pages,
        ):
            for page in pages:
                for (each,) in self._read(list[tuple[str]], page):
                    yield each

    def samples(self, run_id: str, numbers: range = EVERY) -> Iterator[SampleRow]:
        """Yield the samples with these numbers in order, never all at once."""
        return self._pages(statements.WHOLE_SAMPLES, run_id, numbers)

    def sample(self, run_id: str, number: int) -> SampleRow | None:
        """Return one sample."""
        return _first(self._rows(list[SampleRow], statements.SAMPLE, (run_id, number)))

    def exchanges(self, run_id: str, numbers: range = EVERY) -> Iterator[ExchangeRow]:
        """Yield the exchanges of these samples in their order, never all at once."""
        return self._pages(statements.WHOLE_EXCHANGES, run_id, numbers)

    def exchanges_of(self, run_id: str, number: int) -> Sequence[ExchangeRow]:
        """Return the exchanges of one sample, in order."""
        return self._rows(list[ExchangeRow], statements.EXCHANGES_OF, (run_id, number))

    def unfinished(self, run_id: str) -> Iterator[ExchangeRow]:
        """Yield the exchanges of samples that aren't stored, in order."""
        return self._pages(statements.UNFINISHED, run_id)

    def find_exchange(self, key: str) -> ExchangeRow | None:
        """Return the newest exchange with that key, in whichever run."""
        return _first(self._rows(list[ExchangeRow], statements.FIND_EXCHANGE, (key,)))

    def add_batch(self, row: BatchRow) -> None:
        """Store that a batch is about to be submitted."""
        values = self._values([row])
        with writing(self._database) as session:
            session.insert(statements.INSERT_BATCH, values)

    def update_batch(self, row: BatchRow) -> None:
        """Replace the row of a batch."""
        (values,) = self._values([row])
        with writing(self._database) as session:
            if session.execute(statements.UPDATE_BATCH, (*values, row.run_id, row.number)) != 1:
                raise self._error("damaged")

    def batches(self, run_id: str) -> Sequence[BatchRow]:
        """Return the batches of a run, in order."""
        return self._rows(list[BatchRow], statements.BATCHES_OF, (run_id,))

    def add_calibration(self, row: CalibrationRow) -> None:
        """Store what holding judges against people gave."""
        values = self._values([row])
        with writing(self._database) as session:
            session.insert(statements.INSERT_CALIBRATION, values)

    def calibrations(self, rubric_id: str | None = None) -> Sequence[CalibrationRow]:
        """Return the calibrations of a rubric, or all of them, the newest first."""
        if rubric_id is None:
            return self._rows(list[CalibrationRow], statements.ALL_CALIBRATIONS, ())
        return self._rows(list[CalibrationRow], statements.CALIBRATIONS_OF, (rubric_id,))

    def close(self) -> None:
        """Let go of the store."""
        self._database.pool.close()

    def _rows(self, kind: type[list[T]], statement: str, values: Values) -> list[T]:
        if not all(map(_storable, values)):
            return []  # no row has it, and the databases wouldn't agree about the question
        with reading(self._database) as session:
            found = session.rows(statement, values)
        return self._read(kind, found)

    def _pages(
        self, paged: statements.Paged[T], run_id: str, numbers: range = EVERY
    ) -> Iterator[T]:
        last, end = paged.before(numbers.start), numbers.stop - 1
        while True:
            page = self._rows(paged.kind, paged.statement, (run_id, *last, end, paged.size))
            keys = [last, *map(paged.key, page)]
            if not all(map(lt, keys, keys[1:])):
                # An index is out of order, and would lead in circles.
                raise self._error("damaged")
            last = keys[-1]
            yield from page
            if len(page) < paged.size:
                return

    def _read(self, kind: type[list[T]], found: Found) -> list[T]:
        """Make rows of what was found; a whole page at once costs a tenth of one by one."""
        try:
            return msgspec.convert(found, kind)
        except msgspec.ValidationError:
            pass
        raise self._error("damaged")

    def _values(self, rows: Sequence[AnyRow]) -> list[Values]:
        values: list[Values] = [msgspec.structs.astuple(row) for row in rows]
        if _has_nul(values):
            raise self._error("unstorable")
        return values

    def _exchange_values(
        self, rows: Sequence[ExchangeRow], framed: Sequence[Framed]
    ) -> list[Values]:
        whole = self._values(rows)
        return [
            (*row[:_REQUEST], rest, *row[_REQUEST + 1 :], None if frame is None else frame.sha256)
            for row, (frame, rest) in zip(whole, framed, strict=True)
        ]

    def _error(self, kind: TroubleKind) -> Exception:
        return error_of(Trouble(kind=kind), self._database.name, self._database.patience)


def _has_nul(rows: Iterable[Values]) -> bool:
    # SQLite would take it, PostgreSQL wouldn't, and a store must be able to move. A plain loop:
    # it is asked about every text that is stored.
    for row in rows:
        for value in row:
            if isinstance(value, str) and "\0" in value:
                return True
    return False


def _storable(value: str | int | None) -> bool:
    if not isinstance(value, str):
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _first(rows: list[T]) -> T | None:
    return rows[0] if rows else None
