"""How the tables of both stores are made, compared with what the statements and rows say."""

from collections.abc import Iterator
from operator import itemgetter

import msgspec
import pytest

from jurybox.errors import IncompleteError, InputError
from jurybox.storage import schema, statements
from jurybox.storage.database import Database, DatabaseSession, reading, writing
from jurybox.storage.schema import require_tables
from jurybox.storage.sqlite import SqliteDatabase
from jurybox.storage.store import SqlStore
from jurybox.storage.store_url import _database, open_database

TEXT, TEXT_OR_NONE, NUMBER = ("text", False), ("text", True), ("bigint", False)


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A table as it is: columns in their order with type and nullability, keys and indices."""

    columns: dict[str, tuple[str, bool]]
    key: tuple[str, ...]
    references: dict[tuple[str, ...], str] = {}
    unique: tuple[tuple[str, ...], ...] = ()
    indices: dict[str, tuple[tuple[str, ...], bool]] = {}
    """By name: the columns, and whether only some rows are in it."""


EXPECTED = {
    "jurybox_schema": Made(columns={"version": NUMBER, "created_at": TEXT}, key=("version",)),
    "runs": Made(
        columns={
            "id": TEXT,
            "suite": TEXT,
            "status": TEXT,
            "created_at": TEXT,
            "finished_at": TEXT_OR_NONE,
            "plan": TEXT,
            "metadata": TEXT,
            "outcome": TEXT_OR_NONE,
            "digest": TEXT_OR_NONE,
            "seal": TEXT,
        },
        key=("id",),
        indices={"runs_by_age": (("created_at", "id"), False)},
    ),
    "samples": Made(
        columns={
            "run_id": TEXT,
            "number": NUMBER,
            "sample_id": TEXT,
            "repeat": NUMBER,
            "record_sha256": TEXT,
            "seal": TEXT,
            "result": TEXT,
            "notes": TEXT,
            "automated": TEXT_OR_NONE,
            "report": TEXT_OR_NONE,
            "inputs": TEXT,
            "responses": TEXT,
        },
        key=("run_id", "number"),
        references={("run_id",): "runs"},
        unique=(("run_id", "sample_id", "repeat"),),
    ),
    "exchanges": Made(
        columns={
            "run_id": TEXT,
            "number": NUMBER,
            "position": NUMBER,
            "role": TEXT,
            "key": TEXT,
            "seal": TEXT,
            "notes": TEXT,
            "frame": TEXT_OR_NONE,
            "material": TEXT,
            "outcome": TEXT,
        },
        key=("run_id", "number", "position"),
        references={("run_id",): "runs", ("run_id", "frame"): "frames"},
    ),
    "frames": Made(
        columns={"run_id": TEXT, "sha256": TEXT, "text": TEXT},
        key=("run_id", "sha256"),
        references={("run_id",): "runs"},
    ),
    "batches": Made(
        columns={
            "run_id": TEXT,
            "number": NUMBER,
            "model": TEXT,
            "endpoint": TEXT,
            "state": TEXT,
            "batch_id": TEXT,
            "requests": NUMBER,
            "terms": TEXT,
            "submitted_at": TEXT,
            "seal": TEXT,
        },
        key=("run_id", "number"),
        references={("run_id",): "runs"},
    ),
    "calibrations": Made(
        columns={
            "id": TEXT,
            "rubric_id": TEXT,
            "created_at": TEXT,
            "seal": TEXT,
            "record": TEXT,
        },
        key=("id",),
        indices={"calibrations_by_rubric": (("rubric_id", "created_at", "id"), False)},
    ),
    "facets": Made(
        columns={
            "run_id": TEXT,
            "number": NUMBER,
            "flags": NUMBER,
            "urgency": NUMBER,
            "repeat": NUMBER,
            "winner": TEXT_OR_NONE,
            "sample_id": TEXT,
            "scenario": TEXT_OR_NONE,
            "demographic": TEXT_OR_NONE,
            "metrics": TEXT,
        },
        key=("run_id", "number"),
        references={("run_id",): "runs"},
        indices={
            "facets_by_scenario": (("run_id", "scenario"), True),
            "facets_by_demographic": (("run_id", "demographic"), True),
        },
    ),
    "outbox": Made(
        columns={
            "run_id": TEXT,
            "number": NUMBER,
            "part": TEXT,
            "version": TEXT,
            "detail": TEXT,
            "state": TEXT,
            "error": TEXT,
        },
        key=("run_id", "number", "part"),
        references={("run_id",): "runs"},
    ),
    "review_claims": Made(
        columns={"run_id": TEXT, "reviewer": TEXT, "number": NUMBER, "claimed_at": TEXT},
        key=("run_id", "reviewer"),
    ),
    "reviews": Made(
        columns={
            "id": TEXT,
            "run_id": TEXT,
            "number": NUMBER,
            "reviewer": TEXT,
            "created_at": TEXT,
            "action": TEXT,
            "of": TEXT_OR_NONE,
            "record_sha256": TEXT,
            "seal": TEXT,
            "verdict": TEXT,
            "comment": TEXT,
        },
        key=("id",),
        references={("run_id",): "runs"},
        indices={
            "reviews_by_age": (("run_id", "created_at", "id"), False),
            "reviews_by_sample": (("run_id", "number"), False),
        },
    ),
}


def made_in_sqlite(session: DatabaseSession, table: str) -> Made:
    columns = session.rows(f"PRAGMA table_info({table})")
    keys: dict[tuple[int, str], tuple[str, ...]] = {}
    for key, _, other, column, *_ in session.rows(f"PRAGMA foreign_key_list({table})"):
        keys[key, other] = (*keys.get((key, other), ()), column)
    indices = session.rows(f"PRAGMA index_list({table})")

    def indexed(index: str) -> tuple[str, ...]:
        return tuple(name for _, _, name in session.rows(f"PRAGMA index_info({index})"))

    return Made(
        columns={name: (kind.lower(), not never) for _, name, kind, never, _, _ in columns},
        key=tuple(
            name for *_, name, _, _, _, place in sorted(columns, key=itemgetter(-1)) if place
        ),
        references={names: other for (_, other), names in keys.items()},
        unique=tuple(indexed(name) for _, name, _, origin, _ in indices if origin == "u"),
        indices={
            name: (indexed(name), bool(partial))
            for _, name, _, origin, partial in indices
            if origin == "c"
        },
    )


COLUMNS = """
SELECT attname, format_type(atttypid, NULL), NOT attnotnull, collname FROM pg_attribute
LEFT JOIN pg_collation ON pg_collation.oid = attcollation
WHERE attrelid = ?::regclass AND attnum > 0 ORDER BY attnum
"""
CONSTRAINTS = """
SELECT contype, array(SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS keys (key, place)
JOIN pg_attribute ON attrelid = conrelid AND attnum = key ORDER BY place), confrelid::regclass::text
FROM pg_constraint WHERE conrelid = ?::regclass AND contype IN ('p', 'f', 'u')
"""
INDICES = """
SELECT indexrelid::regclass::text, array(SELECT attname::text FROM unnest(indkey::int2[])
WITH ORDINALITY AS keys (key, place) JOIN pg_attribute ON attrelid = indrelid AND attnum = key
ORDER BY place), indpred IS NOT NULL
FROM pg_index WHERE indrelid = ?::regclass AND NOT indisunique
"""


def made_in_postgres(session: DatabaseSession, table: str) -> Made:
    columns = session.rows(COLUMNS, (table,))
    assert {collation for _, kind, _, collation in columns if kind == "text"} == {"C"}
    constraints = session.rows(CONSTRAINTS, (table,))
    (key,) = (tuple(names) for kind, names, _ in constraints if kind == "p")
    return Made(
        columns={name: (kind, nullable) for name, kind, nullable, _ in columns},
        key=key,
        references={tuple(names): other for kind, names, other in constraints if kind == "f"},
        unique=tuple(tuple(names) for kind, names, _ in constraints if kind == "u"),
        indices={
            name: (tuple(names), partial)
            for name, names, partial in session.rows(INDICES, (table,))
        },
    )


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_database(url, create=True, patience=10)
    yield opened
    opened.close()


def table_names(database: Database) -> set[str]:
    with reading(database) as session:
        return database.table_names(session)


def test_a_new_store_has_these_tables_and_no_others(database: Database) -> None:
    assert table_names(database) == EXPECTED.keys() == schema.NAMES
    made = made_in_sqlite if isinstance(database, SqliteDatabase) else made_in_postgres
    with reading(database) as session:
        assert {name: made(session, name) for name in EXPECTED} == EXPECTED


def test_what_is_unique_has_a_name(database: Database) -> None:
    query = "SELECT conname FROM pg_constraint WHERE contype = 'u' AND conrelid = ?::regclass"
    if isinstance(database, SqliteDatabase):
        query = (
            "SELECT 'samples_once' FROM sqlite_master"
            " WHERE name = ? AND instr(sql, 'CONSTRAINT samples_once UNIQUE') > 0"
        )
    with reading(database) as session:
        assert session.rows(query, ("samples",)) == [("samples_once",)]


@pytest.mark.parametrize("table", schema.ROWS)
def test_the_columns_are_those_of_the_rows(table: str) -> None:
    fields = msgspec.structs.fields(schema.ROWS[table])
    types = {int: NUMBER, str: TEXT, str | None: TEXT_OR_NONE}
    own = {"frame": TEXT_OR_NONE} if table == "exchanges" else {}
    assert EXPECTED[table].columns == {each.name: types[each.type] for each in fields} | own


def test_a_key_is_looked_up_in_an_index_that_the_first_search_makes(database: Database) -> None:
    for _ in range(2):
        assert SqlStore(database).find_exchange("x") is None
    with writing(database) as session:
        explain = "EXPLAIN QUERY PLAN"
        if not isinstance(database, SqliteDatabase):
            session.execute("SET LOCAL enable_seqscan = off")
            explain = "EXPLAIN"
        plan = session.rows(f"{explain} {statements.FIND_EXCHANGE}", ("x",))
    assert "exchanges_by_key" in str(plan)


def test_a_failure_while_the_tables_are_made_leaves_nothing_behind(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = _database(url, create=True, patience=10)
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_TABLES", (*schema._TABLES, "INSERT INTO nowhere VALUES ('x')"))
        with pytest.raises(IncompleteError, match="nowhere"):
            require_tables(database, create=True)
    assert table_names(database) == set()
    require_tables(database, create=True)
    assert table_names(database) == schema.NAMES
    database.close()


@pytest.mark.parametrize("version", [1, 6])
def test_a_store_of_another_version_is_refused(url: str, database: Database, version: int) -> None:
    with writing(database) as session:
        session.execute("UPDATE jurybox_schema SET version = ?", (version,))
    for create in (True, False):
        with pytest.raises(
            InputError, match=rf"have version {version}, and this jurybox reads ver"
        ):
            open_database(url, create=create, patience=10)


def test_a_store_without_any_record_of_its_version_is_damaged(url: str, database: Database) -> None:
    with writing(database) as session:
        session.execute("DELETE FROM jurybox_schema")
    with pytest.raises(IncompleteError, match="it is damaged"):
        open_database(url, create=True, patience=10)
