"""How the tables of both stores are made, compared with how the statements name them."""

from collections.abc import Iterator

import msgspec
import pytest
from sqlalchemy import Table, inspect, select

from jurybox.errors import IncompleteError, InputError
from jurybox.running.records import ExchangeRow, RunRow, SampleRow
from jurybox.storage import statements, tables
from jurybox.storage.database import Database, reading, writing
from jurybox.storage.migrations import MIGRATIONS, Migration, bring_up_to_date
from jurybox.storage.opening import _database, open_database
from jurybox.storage.store import SqlStore
from stores import exchange_row, run_row

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
    opened.engine.dispose()


def versions(database: Database) -> list[tuple[int, str]]:
    schema = tables.jurybox_schema
    with reading(database) as connection:
        found = connection.execute(select(schema.c.version, schema.c.name).order_by("version"))
        return [tuple(row) for row in found]


def table_names(database: Database) -> set[str]:
    with reading(database) as connection:
        return set(inspect(connection).get_table_names())


def test_the_migrations_make_the_tables_that_the_statements_name(database: Database) -> None:
    with reading(database) as connection:
        found = inspect(connection)
        assert set(found.get_table_names()) == tables.metadata.tables.keys()
        for table in tables.metadata.sorted_tables:
            columns = [
                (column["name"], column["type"].python_type, column["nullable"])
                for column in found.get_columns(table.name)
            ]
            assert columns == [(c.name, c.type.python_type, c.nullable) for c in table.columns]
            keys = found.get_pk_constraint(table.name)["constrained_columns"]
            assert keys == table.primary_key.columns.keys()
            assert {
                (tuple(each["constrained_columns"]), each["referred_table"])
                for each in found.get_foreign_keys(table.name)
            } == {
                (tuple(each.column_keys), each.referred_table.name)
                for each in table.foreign_key_constraints
            }
        unique = found.get_unique_constraints("samples")
        assert [(each["name"], each["column_names"]) for each in unique] == [
            ("samples_once", ["run_id", "sample_id", "repeat"])
        ]
        indices = [each for name in ("runs", "exchanges") for each in found.get_indexes(name)]
        assert {each["name"]: each["column_names"] for each in indices} == {
            "runs_by_age": ["created_at", "id"],
            "exchanges_by_key": ["key"],
        }
        assert any("_where" in key for key in indices[1]["dialect_options"])


@pytest.mark.parametrize(
    ("table", "row"),
    [(tables.runs, RunRow), (tables.samples, SampleRow), (tables.exchanges, ExchangeRow)],
)
def test_the_columns_are_those_of_the_rows(table: Table, row: type[msgspec.Struct]) -> None:
    assert sorted(table.columns.keys()) == sorted(row.__struct_fields__)


def test_a_key_is_looked_up_in_its_index(database: Database) -> None:
    asked = statements.FIND_EXCHANGE.params(key="x").compile(
        database.engine, compile_kwargs={"literal_binds": True}
    )
    with writing(database) as connection:
        explain = "EXPLAIN QUERY PLAN"
        if database.engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
            explain = "EXPLAIN"
        plan = connection.exec_driver_sql(f"{explain} {asked}").all()
    assert "exchanges_by_key" in str(plan)


def test_each_step_is_recorded_and_none_is_applied_twice(url: str, database: Database) -> None:
    known = [(step.version, step.name) for step in MIGRATIONS]
    assert versions(database) == known
    open_database(url, create=True, patience=10).engine.dispose()
    assert versions(database) == known
    assert [version for version, _ in known] == list(range(1, len(known) + 1))


def test_an_older_store_is_brought_up_to_date_with_its_rows(url: str, database: Database) -> None:
    store = SqlStore(database)
    store.create_run(run_row())
    store.append([], [exchange_row(0)])
    newer = _database(url, create=False, patience=10)
    bring_up_to_date(newer, create=False, steps=(*MIGRATIONS, NOTES))
    with reading(newer) as connection:
        assert connection.exec_driver_sql("SELECT id FROM notes").scalar_one() == "first"
    assert versions(newer)[-1] == (NOTES.version, NOTES.name)
    assert SqlStore(newer).find_exchange("key-0-0") == exchange_row(0)
    newer.engine.dispose()


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
    with writing(database) as connection:
        connection.execute(tables.jurybox_schema.delete())
    with pytest.raises(IncompleteError, match="it is damaged"):
        open_database(url, create=True, patience=10)
