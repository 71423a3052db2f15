"""The tables of a store, their version, and its SQL statements for SQLite and PostgreSQL.

The columns are the fields of the rows in `jurybox.engine.records` and of the facets in
`jurybox.scoring.sample_result`, but long columns come last in the tables: SQLite reads a row from
its beginning, and results and hashes are needed more often than whole requests. So statements name
their columns explicitly, in the order of the fields.

``?`` is a placeholder for a value, and no statement contains ``%``, which one of the drivers would
interpret. Large results are read in pages; each page begins after the last key of the one before.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import Any, Final

import msgspec

from jurybox.engine import records
from jurybox.errors import InputError
from jurybox.scoring.sample_result import Facets
from jurybox.storage.database import (
    Database,
    DatabaseSession,
    Fault,
    Key,
    Paged,
    error_of,
    reading,
    writing,
)

VERSION: Final = 5
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
    with reading(database) as session:
        is_there = _has_tables(database, session)
    if not is_there and not create:
        raise InputError(
            "there is no store in it yet",
            "run a suite first, or name another store with --store",
            f"store {database.name}",
        )
    database.prepare()
    if not is_there:
        with writing(database) as session:
            database.lock(session, "jurybox_schema")
            # Another process may have created the tables in the meantime.
            if not _has_tables(database, session):
                _make_tables(database, session)


def _has_tables(database: Database, session: DatabaseSession) -> bool:
    tables = database.table_names(session)
    if "jurybox_schema" not in tables:
        database.refuse_strangers(tables)
        return False
    found: object = session.rows("SELECT max(version) FROM jurybox_schema")[0][0]
    if not isinstance(found, int) or found < 1:
        raise error_of(Fault(kind="damaged"), database.name, database.patience)
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


Result = tuple[int, int, str, str]

# An exchange is stored with its frame's hash, and read with the frame's text. If the text is
# missing, a note with the hash replaces it; this makes the request invalid, so an audit reports it.
_FRAME_TEXT: Final = "coalesce(frames.text, 'missing frame ' || exchanges.frame, '')"


def columns(table: str) -> list[str]:
    """Return a table's columns in the order of its rows' fields."""
    return [f"{table}.{name}" for name in ROWS[table].__struct_fields__]


def _select(table: str, rest: str) -> str:
    return f"SELECT {', '.join(columns(table))} FROM {table} {rest}"


def _select_exchanges(rest: str) -> str:
    names = ", ".join(columns("exchanges")).replace("exchanges.frame", _FRAME_TEXT)
    frames = "frames ON frames.run_id = exchanges.run_id AND frames.sha256 = exchanges.frame"
    return f"SELECT {names} FROM exchanges LEFT JOIN {frames} {rest}"


def _insert(table: str) -> str:
    names = ROWS[table].__struct_fields__
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' for _ in names)})"


def _update(table: str, *key: str) -> str:
    names = ROWS[table].__struct_fields__
    where = " AND ".join(f"{name} = ?" for name in key)
    return f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in names)} WHERE {where}"


def _distinct(column: str) -> str:
    """Return a statement that finds a column's distinct values by index lookups, without a scan."""
    lowest = f"SELECT min({column}) FROM facets WHERE run_id = ? AND {column} IS NOT NULL"
    return (
        f"WITH RECURSIVE found (name) AS ({lowest} UNION ALL"
        f" SELECT ({lowest} AND {column} > found.name) FROM found WHERE found.name IS NOT NULL)"
        " SELECT name FROM found WHERE name IS NOT NULL LIMIT ?"
    )


def _number(row: records.SampleRow | Facets) -> Key:
    return (row.number,)


INSERT_RUN: Final = _insert("runs")
INSERT_SAMPLE: Final = _insert("samples")
INSERT_EXCHANGE: Final = _insert("exchanges")
INSERT_FRAME: Final = (
    "INSERT INTO frames (run_id, sha256, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
)
INSERT_BATCH: Final = _insert("batches")
INSERT_CALIBRATION: Final = _insert("calibrations")
INSERT_FACETS: Final = _insert("facets")
INSERT_REVIEW: Final = _insert("reviews")
PUT_OUT: Final = (
    f"{_insert('outbox')} ON CONFLICT (run_id, number, part) DO UPDATE SET"
    " version = excluded.version, detail = excluded.detail, state = excluded.state,"
    f" error = excluded.error WHERE outbox.version <> excluded.version"
)
UPDATE_OUTBOX: Final = (
    "UPDATE outbox SET state = ?, error = ?"
    " WHERE run_id = ? AND number = ? AND part = ? AND version = ?"
)
_SENDING_ORDER: Final = "ORDER BY run_id, number LIMIT ?"
OUTBOX_IN: Final = _select("outbox", f"WHERE state = ? AND part = ? {_SENDING_ORDER}")
OUTBOX_OF: Final = _select(
    "outbox", f"WHERE state = ? AND part = ? AND run_id = ? {_SENDING_ORDER}"
)
OUTBOX_COUNTS: Final = (
    "SELECT run_id, part, state, max(error), count(*) FROM outbox"
    " GROUP BY run_id, part, state ORDER BY run_id, part, state"
)
UPDATE_RUN: Final = _update("runs", "id")
DELETE_SAMPLE: Final = "DELETE FROM samples WHERE run_id = ? AND number = ?"
DELETE_FACETS: Final = "DELETE FROM facets WHERE run_id = ? AND number = ?"
# Rows are deleted before the rows that they refer to.
_PARTS: Final = "outbox review_claims reviews facets samples exchanges frames batches"
DELETE_RUN: Final = (
    *(f"DELETE FROM {table} WHERE run_id = ?" for table in _PARTS.split()),
    "DELETE FROM runs WHERE id = ?",
)
UPDATE_BATCH: Final = _update("batches", "run_id", "number")

_NEWEST: Final = "ORDER BY created_at DESC, id DESC"
RUN: Final = _select("runs", "WHERE id = ?")
NEWEST_RUNS: Final = _select("runs", f"{_NEWEST} LIMIT ?")
# Not LIKE, which ignores case in SQLite, and has special characters that users may type.
FIND_RUNS: Final = _select("runs", f"WHERE substr(id, 1, ?) = ? {_NEWEST}")
# SQLite ignores case here; the caller checks for the exact name.
LABELED_RUNS: Final = _select("runs", f"WHERE metadata LIKE ? {_NEWEST}")

SAMPLE: Final = _select("samples", "WHERE run_id = ? AND number = ?")
FIND_SAMPLE: Final = _select(
    "samples", "WHERE run_id = ? AND sample_id = ? ORDER BY repeat LIMIT 1"
)
FIND_REPEAT: Final = _select("samples", "WHERE run_id = ? AND sample_id = ? AND repeat = ?")
RECORD_OF: Final = "SELECT record_sha256 FROM samples WHERE run_id = ? AND number = ?"
EXCHANGES_OF: Final = _select_exchanges(
    "WHERE exchanges.run_id = ? AND number = ? ORDER BY position"
)
HAS_EXCHANGE: Final = "SELECT 1 FROM exchanges WHERE run_id = ? AND number = ? AND position = ?"
# Only reusable exchanges have a key; the others take no space in the index.
INDEX_KEYS: Final = "CREATE INDEX IF NOT EXISTS exchanges_by_key ON exchanges (key) WHERE key <> ''"
FIND_EXCHANGE: Final = _select_exchanges(
    "JOIN runs ON runs.id = exchanges.run_id"
    # The second condition repeats that of the index; without it, the index isn't used.
    " WHERE exchanges.key = ? AND exchanges.key <> ''"
    " ORDER BY runs.created_at DESC, runs.id DESC, exchanges.number DESC, exchanges.position DESC"
    " LIMIT 1",
)
# Failures have no key.
TRANSIENT: Final = '{"failure":%"transient":true%'
FAILED_NUMBERS: Final = (
    "SELECT DISTINCT number FROM exchanges WHERE run_id = ? AND key = '' AND outcome LIKE ?"
    " ORDER BY number"
)
REVIEWED_FACETS: Final = _select(
    "facets", "WHERE run_id = ? AND number IN (SELECT number FROM reviews WHERE run_id = ?)"
)
QUEUED_NUMBERS: Final = (
    "SELECT number FROM facets WHERE run_id = ? AND urgency > 0 ORDER BY urgency DESC, number"
)
BATCHES_OF: Final = _select("batches", "WHERE run_id = ? ORDER BY number")
CALIBRATIONS_OF: Final = _select("calibrations", f"WHERE rubric_id = ? {_NEWEST}")
ALL_CALIBRATIONS: Final = _select("calibrations", _NEWEST)
_OLDEST: Final = "ORDER BY created_at, id"
REVIEWS_OF_RUN: Final = _select("reviews", f"WHERE run_id = ? {_OLDEST}")
REVIEW_STATE: Final = "SELECT count(*), max(id) FROM reviews WHERE run_id = ?"
REVIEWS_OF: Final = _select("reviews", f"WHERE run_id = ? AND number = ? {_OLDEST}")
REVIEW_TO_WITHDRAW: Final = (
    "SELECT 1 FROM reviews WHERE id = ? AND run_id = ? AND number = ? AND action = 'review'"
)
HOLDERS: Final = (
    "SELECT reviewer FROM review_claims WHERE run_id = ? AND number = ? AND claimed_at > ?"
)
CLAIM_SAMPLE: Final = (
    "INSERT INTO review_claims (run_id, reviewer, number, claimed_at) VALUES (?, ?, ?, ?)"
    " ON CONFLICT (run_id, reviewer)"
    " DO UPDATE SET number = excluded.number, claimed_at = excluded.claimed_at"
)
SCENARIOS: Final = _distinct("scenario")
DEMOGRAPHICS: Final = _distinct("demographic")
HASHES: Final = "SELECT record_sha256 FROM samples WHERE run_id = ? ORDER BY record_sha256"

_NEXT_SAMPLES: Final = "WHERE run_id = ? AND number > ? AND number <= ? ORDER BY number LIMIT ?"
_NEXT_EXCHANGES: Final = (
    "WHERE exchanges.run_id = ? AND (number, position) > (?, ?) AND number <= ?"
)
_IN_ORDER: Final = "ORDER BY number, position LIMIT ?"
_WITHOUT_SAMPLE: Final = (
    "AND NOT EXISTS (SELECT 1 FROM samples"
    " WHERE samples.run_id = exchanges.run_id AND samples.number = exchanges.number)"
)
_first: Callable[[Any], Key] = itemgetter(slice(1))
_number_and_position: Callable[[records.ExchangeRow], Key] = attrgetter("number", "position")

# Page sizes: a whole row may take many kilobytes, a result a few hundred bytes. Larger pages aren't
# measurably faster.
NUMBERS: Final = Paged(
    f"SELECT number FROM samples {_NEXT_SAMPLES}", list[tuple[int]], key=_first, size=5000
)
RESULTS: Final = Paged(
    f"SELECT number, repeat, record_sha256, result FROM samples {_NEXT_SAMPLES}",
    list[Result],
    key=_first,
    size=500,
)
WHOLE_FACETS: Final = Paged(_select("facets", _NEXT_SAMPLES), list[Facets], key=_number, size=500)
WHOLE_SAMPLES: Final = Paged(
    _select("samples", _NEXT_SAMPLES), list[records.SampleRow], key=_number, size=100
)
WHOLE_EXCHANGES: Final = Paged(
    _select_exchanges(f"{_NEXT_EXCHANGES} {_IN_ORDER}"),
    list[records.ExchangeRow],
    key=_number_and_position,
    width=2,
    size=100,
)
UNFINISHED: Final = Paged(
    _select_exchanges(f"{_NEXT_EXCHANGES} {_WITHOUT_SAMPLE} {_IN_ORDER}"),
    list[records.ExchangeRow],
    key=_number_and_position,
    width=2,
    size=100,
)
