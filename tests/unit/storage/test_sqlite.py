"""How a file is used: its settings, its log, and the files beside it."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jurybox.errors import IncompleteError
from jurybox.storage.schema import require_tables
from jurybox.storage.sqlite import SqliteDatabase
from jurybox.storage.store import Store
from stores import run_row, sample_row


@pytest.fixture
def database() -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase("store.db", create=True, patience=5)
    require_tables(opened, create=True)
    yield opened
    opened.close()


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


def test_a_transaction_that_writes_holds_the_right_from_its_beginning(
    database: SqliteDatabase,
) -> None:
    order: list[str] = []
    begun = threading.Event()

    def second() -> None:
        begun.wait()
        with database.writing():
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second)
        with database.writing(), database.reading():
            begun.set()
            threading.Event().wait(0.1)
            order.append("first")
        waiting.result()
    assert order == ["first", "second"]


def test_closing_leaves_one_file(database: SqliteDatabase) -> None:
    with database.writing() as session:
        session.execute("CREATE TABLE t (id)")
    assert names() == ["store.db", "store.db-shm", "store.db-wal"]
    database.close()
    assert names() == ["store.db"]


def test_reading_in_pages_lets_the_log_be_emptied(database: SqliteDatabase) -> None:
    store = Store(database)
    store.create_run(run_row())
    store.append([sample_row(number) for number in range(300)], [])
    reading_on = store.samples("run-1")
    assert next(reading_on).number == 0
    with database.reading() as session:
        ((busy, *_),) = session.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    assert busy == 0
    assert Path("store.db-wal").stat().st_size == 0
    assert len(list(reading_on)) == 299


def test_the_file_of_a_claim_is_removed(database: SqliteDatabase) -> None:
    database.close()
    with database.claim("run") as held:
        assert held
        assert len(names()) == 2
        with database.claim("run") as again:
            assert not again
        assert len(names()) == 2
    assert names() == ["store.db"]


def test_two_never_hold_a_run_at_once_though_its_file_comes_and_goes(
    database: SqliteDatabase,
) -> None:
    inside = threading.Semaphore()

    def hold() -> int:
        count = 0
        for _ in range(300):
            with database.claim("run") as held:
                if held:
                    assert inside.acquire(blocking=False)
                    count += 1
                    inside.release()
        return count

    with ThreadPoolExecutor(4) as pool:
        counts = [each.result() for each in [pool.submit(hold) for _ in range(4)]]
    assert sum(counts) > 0
    assert [name for name in names() if "claim" in name] == []


def test_a_file_that_vanished_is_not_made_anew(database: SqliteDatabase) -> None:
    database.close()
    Path("store.db").unlink()
    with pytest.raises(Exception, match="it can't be opened"), database.reading():
        pass
    assert names() == []


def test_what_is_lent_while_the_store_is_closed_is_closed_when_it_comes_back(
    database: SqliteDatabase,
) -> None:
    with database.reading():
        database.close()
        assert len(names()) > 1
    assert names() == ["store.db"]


@pytest.mark.parametrize("count", [0, 1, 2, 63, 64, 65, 200])
def test_rows_go_in_many_at_once_and_none_is_lost(database: SqliteDatabase, count: int) -> None:
    store = Store(database)
    store.create_run(run_row())
    rows = [sample_row(number) for number in range(count)]
    store.append(rows, ())
    assert list(store.samples(run_row().id)) == rows


def test_one_row_that_is_there_already_keeps_all_the_others_out(database: SqliteDatabase) -> None:
    store = Store(database)
    store.create_run(run_row())
    store.append([sample_row(70)], ())
    with pytest.raises(IncompleteError, match="already stored"):
        store.append([sample_row(number) for number in range(100)], ())
    assert list(store.samples(run_row().id)) == [sample_row(70)]
