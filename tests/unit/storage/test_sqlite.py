"""How a file is used: its settings, its log, and the files beside it."""

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jurybox.storage.database import reading, writing
from jurybox.storage.migrations import bring_up_to_date
from jurybox.storage.sqlite import SqliteDatabase
from jurybox.storage.store import SqlStore
from jurybox.storage.tables import runs, samples


@pytest.fixture
def database() -> Iterator[SqliteDatabase]:
    opened = SqliteDatabase("store.db", create=True, patience=5)
    bring_up_to_date(opened, create=True)
    yield opened
    opened.engine.dispose()


def names() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


@pytest.mark.parametrize(
    ("setting", "value"),
    [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("busy_timeout", 5000)],
)
def test_every_connection_is_set_up(database: SqliteDatabase, setting: str, value: object) -> None:
    with reading(database) as first, reading(database) as second:
        for connection in (first, second):
            assert connection.exec_driver_sql(f"PRAGMA {setting}").scalar_one() == value


def test_a_transaction_that_writes_holds_the_right_from_its_beginning(
    database: SqliteDatabase,
) -> None:
    order: list[str] = []
    begun = threading.Event()

    def second() -> None:
        begun.wait()
        with writing(database):
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second)
        with writing(database), reading(database):
            begun.set()
            threading.Event().wait(0.1)
            order.append("first")
        waiting.result()
    assert order == ["first", "second"]


def test_closing_leaves_one_file(database: SqliteDatabase) -> None:
    with writing(database) as connection:
        connection.exec_driver_sql("CREATE TABLE t (id)")
    assert names() == ["store.db", "store.db-shm", "store.db-wal"]
    database.engine.dispose()
    assert names() == ["store.db"]


def test_reading_in_pages_lets_the_log_be_emptied(database: SqliteDatabase) -> None:
    with writing(database) as connection:
        connection.execute(runs.insert(), dict.fromkeys(runs.columns.keys(), "run"))
        row = {c.name: "run" if c.type.python_type is str else 0 for c in samples.columns}
        rows = [{**row, "number": number, "sample_id": str(number)} for number in range(300)]
        connection.execute(samples.insert(), rows)
    reading_on = SqlStore(database).samples("run")
    assert next(reading_on).number == 0
    with reading(database) as connection:
        busy, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
    assert busy == 0
    assert Path("store.db-wal").stat().st_size == 0
    assert len(list(reading_on)) == 299


def test_the_file_of_a_claim_is_removed(database: SqliteDatabase) -> None:
    database.engine.dispose()
    with database.claim("run") as held:
        assert held
        assert len(names()) == 2
        with database.claim("run") as again:
            assert not again
        assert len(names()) == 2
    assert names() == ["store.db"]


def test_a_file_left_by_somebody_who_was_killed_is_no_hindrance(database: SqliteDatabase) -> None:
    database.engine.dispose()
    with database.claim("run"):
        left = next(path for path in Path().iterdir() if "claim" in path.name)
        os.link(left, "kept")
    Path("kept").rename(left)
    with database.claim("run") as held:
        assert held
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
    database.engine.dispose()
    Path("store.db").unlink()
    with pytest.raises(Exception, match="it can't be opened"), reading(database):
        pass
    assert names() == []
