"""How the tables of both stores are made, compared with what the statements and rows say."""

from collections.abc import Iterator
from operator import itemgetter

import msgspec
import pytest

from jurybox.errors import IncompleteError, InputError
from jurybox.running.finding import SampleQuery
from jurybox.scoring.facets import facets_of
from jurybox.storage import statements, tables
from jurybox.storage.database import Database, Session, reading, writing
from jurybox.storage.migrations import MIGRATIONS, Migration, bring_up_to_date
from jurybox.storage.opening import _database, open_database
from jurybox.storage.sqlite import SqliteDatabase
from jurybox.storage.store import SqlStore
from stores import exchange_row, run_row, sample_row

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
    "jurybox_schema": Made(
        columns={"version": NUMBER, "name": TEXT, "applied_at": TEXT}, key=("version",)
    ),
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
            "request": TEXT,
            "outcome": TEXT,
            "frame": TEXT_OR_NONE,
        },
        key=("run_id", "number", "position"),
        references={("run_id",): "runs", ("frame",): "frames"},
    ),
    "frames": Made(columns={"sha256": TEXT, "head": TEXT, "tail": TEXT}, key=("sha256",)),
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
            "rubric_version": TEXT,
            "rubric_sha256": TEXT,
            "judges": TEXT,
            "judge_version": TEXT_OR_NONE,
            "prompt_sha256": TEXT,
            "votes": NUMBER,
            "seed": NUMBER,
            "n": NUMBER,
            "seal": TEXT,
            "gold": TEXT,
            "runs": TEXT,
            "figures": TEXT,
            "tuning": TEXT_OR_NONE,
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
            "figures": TEXT,
        },
        key=("run_id", "number"),
        references={("run_id",): "runs"},
        indices={
            "facets_by_scenario": (("run_id", "scenario"), True),
            "facets_by_demographic": (("run_id", "demographic"), True),
        },
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


def made_in_sqlite(session: Session, table: str) -> Made:
    columns = session.rows(f"PRAGMA table_info({table})")
    indices = session.rows(f"PRAGMA index_list({table})")

    def indexed(index: str) -> tuple[str, ...]:
        return tuple(name for _, _, name in session.rows(f"PRAGMA index_info({index})"))

    return Made(
        columns={name: (kind.lower(), not never) for _, name, kind, never, _, _ in columns},
        key=tuple(
            name for *_, name, _, _, _, place in sorted(columns, key=itemgetter(-1)) if place
        ),
        references={
            (column,): other
            for _, _, other, column, *_ in session.rows(f"PRAGMA foreign_key_list({table})")
        },
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


def made_in_postgres(session: Session, table: str) -> Made:
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


NOTES = Migration(
    version=len(MIGRATIONS) + 1,
    name="a table of notes",
    statements=("CREATE TABLE notes (id {text} NOT NULL)", "INSERT INTO notes VALUES ('first')"),
)
BROKEN = Migration(
    version=len(MIGRATIONS) + 1,
    name="broken halfway",
    statements=("CREATE TABLE notes (id {text} NOT NULL)", "INSERT INTO nowhere VALUES ('x')"),
)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_database(url, create=True, patience=10)
    yield opened
    opened.close()


def versions(database: Database) -> list[tuple[int, str]]:
    with reading(database) as session:
        return session.rows("SELECT version, name FROM jurybox_schema ORDER BY version")


def table_names(database: Database) -> set[str]:
    with reading(database) as session:
        return database.table_names(session)


def test_the_migrations_make_these_tables_and_no_others(database: Database) -> None:
    assert table_names(database) == EXPECTED.keys() == tables.NAMES
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


@pytest.mark.parametrize("table", tables.ROWS)
def test_the_columns_are_those_of_the_rows(table: str) -> None:
    fields = msgspec.structs.fields(tables.ROWS[table])
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


def test_each_step_is_recorded_and_none_is_applied_twice(url: str, database: Database) -> None:
    known = [(step.version, step.name) for step in MIGRATIONS]
    assert versions(database) == known
    open_database(url, create=True, patience=10).close()
    assert versions(database) == known
    assert [version for version, _ in known] == list(range(1, len(known) + 1))


def test_an_older_store_is_brought_up_to_date_with_its_rows(url: str, database: Database) -> None:
    store = SqlStore(database)
    store.create_run(run_row())
    store.append([], [exchange_row(0)])
    newer = _database(url, create=False, patience=10)
    bring_up_to_date(newer, create=False, steps=(*MIGRATIONS, NOTES))
    with reading(newer) as session:
        assert session.rows("SELECT id FROM notes") == [("first",)]
    assert versions(newer)[-1] == (NOTES.version, NOTES.name)
    assert SqlStore(newer).find_exchange("key-0-0") == exchange_row(0)
    newer.close()


def test_exchanges_from_before_there_were_frames_are_read_as_they_are(url: str) -> None:
    older = _database(url, create=True, patience=10)
    bring_up_to_date(older, create=True, steps=MIGRATIONS[:2])
    rows = [exchange_row(number, request=f"{'x' * 2000}{number}") for number in range(3)]
    names = [*msgspec.structs.asdict(rows[0])]
    marks = ", ".join("?" for _ in names)
    insert = f"INSERT INTO exchanges ({', '.join(names)}) VALUES ({marks})"  # noqa: S608 - our own names
    with writing(older) as session:
        session.insert(statements.INSERT_RUN, [msgspec.structs.astuple(run_row())])
        session.insert(insert, [msgspec.structs.astuple(row) for row in rows])
    older.close()
    store = SqlStore(open_database(url, create=False, patience=10))
    assert list(store.exchanges("run-1")) == rows
    more = [exchange_row(number, request=f"{'x' * 2000}{number}") for number in range(3, 6)]
    store.append([], more)
    assert list(store.exchanges("run-1")) == rows + more
    store.close()


@pytest.mark.parametrize("samples", [0, 3, 1201])
def test_samples_from_before_there_were_facets_get_theirs(url: str, samples: int) -> None:
    older = _database(url, create=True, patience=10)
    bring_up_to_date(older, create=True, steps=MIGRATIONS[:4])
    result = '{"figures":{"tone":%d},"safety_flag":true}'
    rows = [
        sample_row(number, run_id, result=result % number)
        for run_id in ("run-1", "run-2")
        for number in range(samples)
    ]
    with writing(older) as session:
        runs = [msgspec.structs.astuple(run_row(name)) for name in ("run-1", "run-2")]
        session.insert(statements.INSERT_RUN, runs)
        if rows:
            session.insert(statements.INSERT_SAMPLE, [msgspec.structs.astuple(row) for row in rows])
            damaged = sample_row(-7, result="no result")
            session.insert(statements.INSERT_SAMPLE, [msgspec.structs.astuple(damaged)])
            rows.append(damaged)
    older.close()
    store = SqlStore(open_database(url, create=False, patience=10))
    for run_id in ("run-1", "run-2"):
        mine = sorted((row for row in rows if row.run_id == run_id), key=lambda row: row.number)
        assert list(store.facets(run_id)) == [facets_of(row) for row in mine]
    query = SampleQuery(flags=("safety",), sort="figure:tone", descending=True)
    assert store.find_samples("run-2", query).total == samples
    store.close()


def test_a_step_that_fails_leaves_nothing_behind(database: Database) -> None:
    before = table_names(database), versions(database)
    with pytest.raises(IncompleteError, match="nowhere"):
        bring_up_to_date(database, create=True, steps=(*MIGRATIONS, BROKEN))
    assert (table_names(database), versions(database)) == before
    bring_up_to_date(database, create=True, steps=(*MIGRATIONS, NOTES))
    assert versions(database)[-1] == (NOTES.version, NOTES.name)


def test_a_store_of_a_newer_jurybox_is_refused(url: str, database: Database) -> None:
    bring_up_to_date(database, create=True, steps=(*MIGRATIONS, NOTES))
    for create in (True, False):
        with pytest.raises(InputError, match=r"made by a newer jurybox.*; upgrade jurybox"):
            open_database(url, create=create, patience=10)


def test_a_store_without_any_record_of_its_version_is_damaged(url: str, database: Database) -> None:
    with writing(database) as session:
        session.execute("DELETE FROM jurybox_schema")
    with pytest.raises(IncompleteError, match="it is damaged"):
        open_database(url, create=True, patience=10)
