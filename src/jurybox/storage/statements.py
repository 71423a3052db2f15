"""The SQL statements of a store, valid in both SQLite and PostgreSQL.

``?`` stands for a value, and ``%`` is in none of them, for one of the drivers would take it for one
of its own signs. Where there are many answers, the next of them are asked for, after those that are
known.
"""

# ruff: noqa: S608 - the names are ours, and values are never written into a statement

from collections.abc import Callable
from operator import attrgetter, itemgetter
from typing import Any, Final

from jurybox.engine.records import ExchangeRow, SampleRow
from jurybox.scoring.sample_index import Facets
from jurybox.storage.database import Key, Paged
from jurybox.storage.schema import ROWS

Result = tuple[int, int, str, str]

# An exchange has its frame's hash, and is read with the frame's text. Where that is missing, its
# hash takes its place: what comes of that is no request, and an audit finds it.
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
    """Ask for the values of a column: each is looked up after the one before, in its index."""
    lowest = f"SELECT min({column}) FROM facets WHERE run_id = ? AND {column} IS NOT NULL"
    return (
        f"WITH RECURSIVE found (name) AS ({lowest} UNION ALL"
        f" SELECT ({lowest} AND {column} > found.name) FROM found WHERE found.name IS NOT NULL)"
        " SELECT name FROM found WHERE name IS NOT NULL LIMIT ?"
    )


def _number(row: SampleRow | Facets) -> Key:
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
# What refers to others is deleted before them.
_PARTS: Final = "outbox review_claims reviews facets samples exchanges frames batches"
DELETE_RUN: Final = (
    *(f"DELETE FROM {table} WHERE run_id = ?" for table in _PARTS.split()),
    "DELETE FROM runs WHERE id = ?",
)
UPDATE_BATCH: Final = _update("batches", "run_id", "number")

_NEWEST: Final = "ORDER BY created_at DESC, id DESC"
RUN: Final = _select("runs", "WHERE id = ?")
NEWEST_RUNS: Final = _select("runs", f"{_NEWEST} LIMIT ?")
# LIKE wouldn't do: in SQLite it knows no case, and what was typed may have its signs in it.
FIND_RUNS: Final = _select("runs", f"WHERE substr(id, 1, ?) = ? {_NEWEST}")
# Any case may be found in SQLite; what has the very name is for the caller to see.
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
# Only what may be found again has a key; the others take no room in it.
INDEX_KEYS: Final = "CREATE INDEX IF NOT EXISTS exchanges_by_key ON exchanges (key) WHERE key <> ''"
FIND_EXCHANGE: Final = _select_exchanges(
    "JOIN runs ON runs.id = exchanges.run_id"
    # The second condition is the index's own, without which no database would use it.
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
BATCHES_OF: Final = _select("batches", "WHERE run_id = ? ORDER BY number")
CALIBRATIONS_OF: Final = _select("calibrations", f"WHERE rubric_id = ? {_NEWEST}")
ALL_CALIBRATIONS: Final = _select("calibrations", _NEWEST)
_OLDEST: Final = "ORDER BY created_at, id"
REVIEWS_OF_RUN: Final = _select("reviews", f"WHERE run_id = ? {_OLDEST}")
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
_number_and_position: Callable[[ExchangeRow], Key] = attrgetter("number", "position")

# Whole rows may have many kilobytes each, and results have some hundred bytes. Larger pages save
# nothing that can be measured: a question costs less than one of its rows.
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
    _select("samples", _NEXT_SAMPLES), list[SampleRow], key=_number, size=100
)
WHOLE_EXCHANGES: Final = Paged(
    _select_exchanges(f"{_NEXT_EXCHANGES} {_IN_ORDER}"),
    list[ExchangeRow],
    key=_number_and_position,
    width=2,
    size=100,
)
UNFINISHED: Final = Paged(
    _select_exchanges(f"{_NEXT_EXCHANGES} {_WITHOUT_SAMPLE} {_IN_ORDER}"),
    list[ExchangeRow],
    key=_number_and_position,
    width=2,
    size=100,
)
