"""How the tables of both stores are made, compared with what the statements and rows say."""

from collections.abc import Iterator

import pytest

from jurybox.engine.records import ExchangeRow
from jurybox.errors import IncompleteError, InputError
from jurybox.storage import _database, open_store, schema
from jurybox.storage.schema import Database, require_tables
from jurybox.storage.sqlite import SqliteDatabase
from jurybox.storage.store import NEWEST_WITH_KEY, Store


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = open_store(url, patience=10)
    yield opened._database
    opened.close()


def table_names(database: Database) -> set[str]:
    with database.reading() as session:
        return {name for (name,) in session.rows(database.tables)}


def test_a_new_store_has_these_tables_and_no_others(database: Database) -> None:
    assert table_names(database) == schema.NAMES


def test_the_columns_are_those_of_the_rows(database: Database) -> None:
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = ?"
    if isinstance(database, SqliteDatabase):
        columns = "SELECT name FROM pragma_table_info(?)"
    for table, row in schema.ROWS.items():
        with database.reading() as session:
            found = {name for (name,) in session.rows(columns, (table,))}
        assert found == {*row.__struct_fields__}, table


def test_a_key_is_looked_up_in_an_index_that_the_first_search_makes(database: Database) -> None:
    for _ in range(2):
        assert Store(database).find_exchange("x") is None
    with database.writing() as session:
        explain = "EXPLAIN QUERY PLAN"
        if not isinstance(database, SqliteDatabase):
            session.execute("SET LOCAL enable_seqscan = off")
            explain = "EXPLAIN"
        plan = session.rows(f"{explain} {schema.select(ExchangeRow)} {NEWEST_WITH_KEY}", ("x",))
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


@pytest.mark.parametrize("version", [1, schema.VERSION + 1])
def test_a_store_of_another_version_is_refused(url: str, database: Database, version: int) -> None:
    with database.writing() as session:
        session.execute("UPDATE jurybox_schema SET version = ?", (version,))
    for create in (True, False):
        with pytest.raises(
            InputError, match=rf"have version {version}, but this jurybox reads ver"
        ):
            open_store(url, create=create, patience=10)


def test_a_store_without_any_record_of_its_version_is_damaged(url: str, database: Database) -> None:
    with database.writing() as session:
        session.execute("DELETE FROM jurybox_schema")
    with pytest.raises(IncompleteError, match="it is damaged"):
        open_store(url, patience=10)
