"""The engine's `Store` over either database.

Rows are read in pages, each in a transaction of its own that goes on where the last one ended. So
nothing is held between two pages: not the rows, not a connection, and not a snapshot that would
keep SQLite's write-ahead log from being emptied.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import msgspec
from sqlalchemy import RowMapping, Select, Table

from jurybox.running.records import AnyRow, ExchangeRow, RunRow, SampleRow
from jurybox.storage import statements
from jurybox.storage.database import Database, reading, writing
from jurybox.storage.tables import exchanges, runs, samples
from jurybox.storage.trouble import Trouble, TroubleKind, error_of

T = TypeVar("T")
Read = Callable[[RowMapping], T]
Key = tuple[int, ...]


class SqlStore:
    """Runs, samples and exchanges in a database; any thread may call it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert_run = _insertion(runs, RunRow, database.placeholder)
        self._insert_samples = _insertion(samples, SampleRow, database.placeholder)
        self._insert_exchanges = _insertion(exchanges, ExchangeRow, database.placeholder)

    def __repr__(self) -> str:
        """Show the name, which has no password in it."""
        return f"SqlStore({self._database.name!r})"

    def create_run(self, row: RunRow) -> None:
        """Store a new run."""
        values = self._values([row])
        with writing(self._database) as connection:
            connection.exec_driver_sql(self._insert_run, values)

    def update_run(self, row: RunRow) -> None:
        """Replace the row of a run."""
        self._values([row])
        with writing(self._database) as connection:
            statement = runs.update().where(runs.c.id == row.id)
            if connection.execute(statement, msgspec.structs.asdict(row)).rowcount != 1:
                raise self._error("no run")

    def run(self, run_id: str) -> RunRow | None:
        """Return a run."""
        return _first(self._rows(statements.RUN, _read_run, run_id=run_id))

    def runs(self, limit: int | None = None) -> Sequence[RunRow]:
        """Return runs, the newest first."""
        return self._rows(statements.RUNS.limit(limit), _read_run)

    def find_runs(self, prefix: str) -> Sequence[RunRow]:
        """Return the runs whose ids begin so, the newest first."""
        return self._rows(statements.FIND_RUNS, _read_run, prefix=prefix, length=len(prefix))

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Hold a run, so that no other process works on it; False where another one does."""
        return self._database.claim(run_id)

    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        """Store finished samples and exchanges, all of them or none."""
        batches = (
            (self._insert_samples, self._values(samples)),
            (self._insert_exchanges, self._values(exchanges)),
        )
        if not any(values for _, values in batches):
            return
        with writing(self._database) as connection:
            for statement, values in batches:
                if values:
                    connection.exec_driver_sql(statement, values)

    def numbers(self, run_id: str) -> Iterator[int]:
        """Yield the numbers of the stored samples, in order."""
        return self._pages(statements.NUMBERS, _read_number, _key_of_number, run_id)

    def results(self, run_id: str) -> Iterator[tuple[int, int, str, str]]:
        """Yield number, repeat, record hash and result of every sample, in order."""
        return self._pages(statements.RESULTS, _read_result, _key_of_result, run_id)

    def hashes(self, run_id: str) -> Iterator[str]:
        """Yield the hashes of the records, sorted as plain text, never all at once."""
        if not _storable(run_id):
            return
        # The one that isn't read in pages: each page would have to be sorted out of all rows anew.
        with reading(self._database) as connection:
            connection.execution_options(yield_per=statements.HASHES_AT_ONCE)
            with connection.execute(statements.HASHES, {"run_id": run_id}) as found:
                for each in found.scalars():
                    if not isinstance(each, str):
                        raise self._error("damaged")
                    yield each

    def samples(self, run_id: str) -> Iterator[SampleRow]:
        """Yield the samples in order, never all at once."""
        return self._pages(statements.SAMPLES, _read_sample, _key_of_sample, run_id)

    def sample(self, run_id: str, number: int) -> SampleRow | None:
        """Return one sample."""
        return _first(self._rows(statements.SAMPLE, _read_sample, run_id=run_id, number=number))

    def exchanges(self, run_id: str) -> Iterator[ExchangeRow]:
        """Yield the exchanges in the order of their samples and positions, never all at once."""
        return self._pages(statements.EXCHANGES, _read_exchange, _key_of_exchange, run_id)

    def exchanges_of(self, run_id: str, number: int) -> Sequence[ExchangeRow]:
        """Return the exchanges of one sample, in order."""
        return self._rows(statements.EXCHANGES_OF, _read_exchange, run_id=run_id, number=number)

    def unfinished(self, run_id: str) -> Iterator[ExchangeRow]:
        """Yield the exchanges of samples that aren't stored, in order."""
        return self._pages(statements.UNFINISHED, _read_exchange, _key_of_exchange, run_id)

    def find_exchange(self, key: str) -> ExchangeRow | None:
        """Return the newest exchange with that key, in whichever run."""
        return _first(self._rows(statements.FIND_EXCHANGE, _read_exchange, key=key))

    def close(self) -> None:
        """Let go of the store."""
        self._database.engine.dispose()

    def _rows(self, statement: Select[Any], read: Read[T], **parameters: str | int) -> list[T]:
        if not all(map(_storable, parameters.values())):
            return []  # no row has it, and the databases wouldn't agree about the question
        with reading(self._database) as connection:
            found = connection.execute(statement, parameters).mappings().all()
        try:
            return [read(each) for each in found]
        except msgspec.ValidationError:
            pass
        raise self._error("damaged")

    def _pages(
        self,
        paged: statements.Paged,
        read: Read[T],
        key_of: Callable[[T], Key],
        run_id: str,
    ) -> Iterator[T]:
        last = paged.start
        while True:
            after = dict(zip(paged.keys, last, strict=True))
            page = self._rows(paged.statement, read, run_id=run_id, **after)
            for row in page:
                key = key_of(row)
                if key <= last:  # an index is out of order, and would lead in circles
                    raise self._error("damaged")
                last = key
                yield row
            if len(page) < paged.size:
                return

    def _values(self, rows: Sequence[AnyRow]) -> list[tuple[Any, ...]]:
        values = [msgspec.structs.astuple(row) for row in rows]
        if _has_nul(values):
            raise self._error("unstorable")
        return values

    def _error(self, kind: TroubleKind) -> Exception:
        return error_of(Trouble(kind=kind), self._database.name, self._database.patience)


def _insertion(table: Table, row: type[AnyRow], placeholder: str) -> str:
    # The driver's own statement: thousands of rows go in without a dictionary for each.
    names = ", ".join(row.__struct_fields__)
    places = ", ".join([placeholder] * len(row.__struct_fields__))
    return f"INSERT INTO {table.name} ({names}) VALUES ({places})"  # noqa: S608 - all names are ours


def _has_nul(rows: Iterable[tuple[Any, ...]]) -> bool:
    # SQLite would take it, PostgreSQL wouldn't, and a store must be able to move.
    return any("\0" in value for row in rows for value in row if isinstance(value, str))


def _storable(value: str | int) -> bool:
    if isinstance(value, int):
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _first(rows: list[T]) -> T | None:
    return rows[0] if rows else None


def _read_run(row: RowMapping) -> RunRow:
    return msgspec.convert(row, RunRow)


def _read_sample(row: RowMapping) -> SampleRow:
    return msgspec.convert(row, SampleRow)


def _read_exchange(row: RowMapping) -> ExchangeRow:
    return msgspec.convert(row, ExchangeRow)


def _read_number(row: RowMapping) -> int:
    return msgspec.convert(row["number"], int)


def _read_result(row: RowMapping) -> tuple[int, int, str, str]:
    return msgspec.convert(tuple(row.values()), tuple[int, int, str, str])


def _key_of_number(number: int) -> Key:
    return (number,)


def _key_of_result(result: tuple[int, int, str, str]) -> Key:
    return result[:1]


def _key_of_sample(row: SampleRow) -> Key:
    return (row.number,)


def _key_of_exchange(row: ExchangeRow) -> Key:
    return (row.number, row.position)
