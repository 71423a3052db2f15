"""The tables of a store, their version, and how their rows are read, in SQLite and PostgreSQL.

The columns are the fields of the rows in `jurybox.engine.records` and of the facets in
`jurybox.scoring.sample_result`, but long columns come last in the tables: SQLite reads a row from
its beginning, and results and hashes are needed more often than whole requests. So statements name
their columns explicitly, in the order of the fields.

``?`` is a placeholder for a value, and no statement contains ``%``, which one of the drivers would
interpret.

Large results are read in pages, each in its own transaction that continues where the last one
ended. So nothing is kept between two pages: no rows, no connection, and no snapshot that would
prevent SQLite from truncating its write-ahead log.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter, lt
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from jurybox.engine import records
from jurybox.engine.records import Facets
from jurybox.errors import InputError
from jurybox.storage.database import ALL, EVERY, Found, Values

if TYPE_CHECKING:
    from jurybox.storage.postgres import PostgresDatabase, PostgresSession
    from jurybox.storage.sqlite import SqliteDatabase, SqliteSession

Database: TypeAlias = "PostgresDatabase | SqliteDatabase"
DatabaseSession: TypeAlias = "PostgresSession | SqliteSession"
T = TypeVar("T")

VERSION: Final = 6
"""The version of the tables; a store with a different version is refused."""

ROWS: Final[dict[str, type[records.AnyRow | Facets | records.OutboxRow]]] = {
    "runs": records.RunRow,
    "samples": records.SampleRow,
    "exchanges": records.ExchangeRow,
    "batches": records.BatchRow,
    "calibrations": records.CalibrationRow,
    "facets": Facets,
    "reviews": records.ReviewRow,
    "outbox": records.OutboxRow,
}
NAMES: Final = frozenset({*ROWS, "frames", "review_claims", "jurybox_schema"})

# ruff: noqa: S608 - the names are ours, and values are never written into a statement


def _table(name: str, columns: str, *rules: str) -> str:
    """Return the statement that creates a table; types follow from the fields of its rows.

    ``columns`` are the fields in the order in which they are stored, ``rules`` are constraints.
    """
    kinds = {str: "{text} NOT NULL", int: "BIGINT NOT NULL"}
    types = {each.name: each.type for each in msgspec.structs.fields(ROWS[name])}
    types["frame"] = str | None  # the hash of the frame; not every request has one
    typed = [f"{each} {kinds.get(types[each], '{text}')}" for each in columns.split()]
    if "run_id" in types:
        typed.append("FOREIGN KEY (run_id) REFERENCES runs (id)")
    return f"CREATE TABLE {name} ({', '.join((*typed, *rules))})"


# Valid in SQLite and PostgreSQL. ``{text}`` is the database's type for texts that are compared byte
# by byte; ``{clustered}`` stores rows in the order of their key, if supported, so that the rows of
# a run are read sequentially.
_TABLES: Final = (
    "CREATE TABLE jurybox_schema (version BIGINT NOT NULL PRIMARY KEY, created_at {text} NOT NULL)",
    _table(
        "runs",
        "id suite status created_at finished_at plan metadata outcome digest seal",
        "PRIMARY KEY (id)",
    ),
    "CREATE INDEX runs_by_age ON runs (created_at, id)",
    _table(
        "samples",
        "run_id number sample_id repeat record_sha256 seal result notes automated report inputs"
        " responses",
        "PRIMARY KEY (run_id, number)",
        "CONSTRAINT samples_once UNIQUE (run_id, sample_id, repeat)",
    ),
    """
    CREATE TABLE frames (
        run_id {text} NOT NULL REFERENCES runs (id),
        sha256 {text} NOT NULL,
        text {text} NOT NULL,
        PRIMARY KEY (run_id, sha256)
    )
    """,
    # The index of keys is created on first use (see `Store.find_exchange`). Keys are hashes, so
    # each new key changes a different page of the index: in a large store, that takes a quarter of
    # the time needed to store an exchange.
    _table(
        "exchanges",
        "run_id number position role key seal notes frame material outcome",
        "PRIMARY KEY (run_id, number, position)",
        "FOREIGN KEY (run_id, frame) REFERENCES frames (run_id, sha256)",
    ),
    _table(
        "batches",
        "run_id number model endpoint state batch_id requests terms submitted_at seal",
        "PRIMARY KEY (run_id, number)",
    ),
    _table("calibrations", "id rubric_id created_at seal record", "PRIMARY KEY (id)"),
    "CREATE INDEX calibrations_by_rubric ON calibrations (rubric_id, created_at, id)",
    _table(
        "facets",
        "run_id number flags urgency repeat winner sample_id scenario demographic metrics",
        "PRIMARY KEY (run_id, number)",
    )
    + " {clustered}",
    # To count flags and find the review queue without reading rows.
    "CREATE INDEX facets_by_flags ON facets (run_id, flags, urgency)",
    # Most runs have no scenarios or demographics, so they take no space in these indexes.
    "CREATE INDEX facets_by_scenario ON facets (run_id, scenario) WHERE scenario IS NOT NULL",
    """
    CREATE INDEX facets_by_demographic ON facets (run_id, demographic)
    WHERE demographic IS NOT NULL
    """,
    _table(
        "reviews",
        "id run_id number reviewer created_at action of record_sha256 seal verdict comment",
        "PRIMARY KEY (id)",
    ),
    "CREATE INDEX reviews_by_age ON reviews (run_id, created_at, id)",
    "CREATE INDEX reviews_by_sample ON reviews (run_id, number)",
    _table(
        "outbox",
        "run_id number part version detail state error",
        "PRIMARY KEY (run_id, number, part)",
    ),
    # The sample that each reviewer of a run currently has.
    """
    CREATE TABLE review_claims (
        run_id {text} NOT NULL,
        reviewer {text} NOT NULL,
        number BIGINT NOT NULL,
        claimed_at {text} NOT NULL,
        PRIMARY KEY (run_id, reviewer)
    )
    """,
)


def require_tables(database: Database, *, create: bool) -> None:
    """Create the tables of a new store, or check their version."""
    with database.reading() as session:
        is_there = _has_tables(database, session)
    if not is_there and not create:
        raise InputError(
            "there is no store in it yet",
            "run a suite first, or name another store with --store",
            f"store {database.name}",
        )
    database.prepare()
    if not is_there:
        with database.writing() as session:
            session.lock("jurybox_schema")
            # Another process may have created the tables in the meantime.
            if not _has_tables(database, session):
                _make_tables(database, session)


def _has_tables(database: Database, session: DatabaseSession) -> bool:
    tables: set[str] = {name for (name,) in session.rows(database.tables)}
    if "jurybox_schema" not in tables:
        if taken := tables & NAMES if database.is_shared else tables:
            problem = f"it has a table `{min(taken)}` of another program"
            raise InputError(problem, database.elsewhere, f"store {database.name}")
        return False
    found: object = session.rows("SELECT max(version) FROM jurybox_schema")[0][0]
    if not isinstance(found, int) or found < 1:
        raise database.error("damaged")
    if found != VERSION:
        raise InputError(
            f"its tables have version {found}, but this jurybox reads version {VERSION}",
            "use the version of jurybox that created it, or name another store with --store",
            f"store {database.name}",
        )
    return True


def _make_tables(database: Database, session: DatabaseSession) -> None:
    for statement in (*_TABLES, *database.indexes):
        session.execute(statement.format(text=database.text_type, clustered=database.clustered))
    created_at = datetime.now(UTC).isoformat(timespec="seconds")
    add_version = "INSERT INTO jurybox_schema (version, created_at) VALUES (?, ?)"
    session.execute(add_version, (VERSION, created_at))


class Result(NamedTuple):
    """The result of a stored sample, without its other columns."""

    number: int
    repeat: int
    record_sha256: str
    result: str


_KINDS: Final[dict[Any, str]] = {kind: table for table, kind in ROWS.items()} | {Result: "samples"}
# An exchange is stored with its frame's hash, and read with the frame's text. If the text is
# missing, a note with the hash replaces it; this makes the request invalid, so an audit reports it.
_FRAME_TEXT: Final = "coalesce(frames.text, 'missing frame ' || exchanges.frame, '')"
_FRAMES: Final = (
    " LEFT JOIN frames ON frames.run_id = exchanges.run_id AND frames.sha256 = exchanges.frame"
)
# A whole row may take many kilobytes, a result a few hundred bytes. Larger pages aren't measurably
# faster.
_PAGE: Final = {"samples": 100, "exchanges": 100}
_LARGE_PAGE: Final = 500


def _fields(kind: Any) -> tuple[str, ...]:  # noqa: ANN401 - a type of rows
    return kind._fields if kind is Result else kind.__struct_fields__


@cache
def select(kind: type) -> str:
    """Return the statement for rows of a kind, without its conditions."""
    table = _KINDS[kind]
    names = ", ".join(f"{table}.{name}" for name in _fields(kind))
    if kind is not records.ExchangeRow:
        return f"SELECT {names} FROM {table}"
    return f"SELECT {names.replace('exchanges.frame', _FRAME_TEXT)} FROM exchanges{_FRAMES}"


@cache
def insert(kind: type) -> str:
    """Return the statement that inserts a row."""
    names = _fields(kind)
    marks = ", ".join("?" for _ in names)
    return f"INSERT INTO {_KINDS[kind]} ({', '.join(names)}) VALUES ({marks})"


@cache
def update(kind: type, *key: str) -> str:
    """Return the statement that replaces the row with a key."""
    names = ", ".join(f"{name} = ?" for name in _fields(kind))
    return f"UPDATE {_KINDS[kind]} SET {names} WHERE {' AND '.join(f'{each} = ?' for each in key)}"


class RowFinder:
    """Reads rows of a database; any thread may call it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, kind: type[T], rest: str, *values: str | float | None) -> list[T]:
        """Return the rows of a kind that meet the conditions ``rest``."""
        return self.rows(kind, f"{select(kind)} {rest}", values)

    def rows(self, kind: type[T], statement: str, values: Values) -> list[T]:
        """Return all rows found."""
        if not all(map(_is_storable, values)):
            return []  # no row can have such a value, which databases treat differently
        with self._database.reading() as session:
            found = session.rows(statement, values)
        return self.read(kind, found)

    def pages(
        self, kind: type[T], run_id: str, numbers: range = EVERY, condition: str = ""
    ) -> Iterator[T]:
        """Yield the rows found for these samples of a run, in order."""
        table = _KINDS[kind]
        key = ("number", "position") if kind is records.ExchangeRow else ("number",)
        size = _LARGE_PAGE if kind is Result else _PAGE.get(table, _LARGE_PAGE)
        rest = (
            f"WHERE {table}.run_id = ? AND ({', '.join(key)}) > ({', '.join('?' for _ in key)})"
            f" AND number <= ? {condition} ORDER BY {', '.join(key)} LIMIT ?"
        )
        last: Any = (max(numbers.start - 1, EVERY.start), ALL)[: len(key)]
        while True:
            values = (run_id, *last, numbers.stop - 1, size)
            page = self._database.retried(lambda _, now=values: self.find(kind, rest, *now))
            keys = [last, *zip(*(map(attrgetter(name), page) for name in key), strict=True)]
            if not all(map(lt, keys, keys[1:])):
                # A damaged index could lead to an endless loop.
                raise self._database.error("damaged")
            last = keys[-1]
            yield from page
            if len(page) < size:
                return

    def stream(self, kind: type[T], statement: str, values: Values) -> Iterator[T]:
        """Yield all rows found, from one state of the database, page by page."""
        if all(map(_is_storable, values)):
            with (
                self._database.reading() as session,
                session.stream(statement, values) as pages,
            ):
                for page in pages:
                    yield from self.read(kind, page)

    def read(self, kind: type[T], found: Found) -> list[T]:
        """Decode rows, a page at a time, which is ten times faster than one by one."""
        rows: Any = GenericAlias(list, (kind,))
        try:
            return msgspec.convert(found, rows)
        except msgspec.ValidationError:
            pass
        raise self._database.error("damaged")


def _is_storable(value: str | float | None) -> bool:
    if not isinstance(value, str):
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
