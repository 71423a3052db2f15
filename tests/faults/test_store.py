"""What can befall a store in a file: each time one clear line, and never half a batch."""

import os
import random
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import stores
from jurybox.errors import IncompleteError, InputError, JuryboxError
from jurybox.storage import open_store
from jurybox.storage.sample_search import SampleQuery
from jurybox.storage.store import Store

run_row, sample_row, exchange_row = stores.run_row, stores.sample_row, stores.exchange_row

BATCH = 10
WRITE = f"""
store = open_store(url)
store.create_run(run_row())
print("ready", flush=True)
for start in range(0, 1_000_000, {BATCH}):
    batch = range(start, start + {BATCH})
    text = "x" * 3000
    store.append(
        [sample_row(number, inputs=text) for number in batch],
        [exchange_row(number, material=text) for number in batch],
    )
    print(start, flush=True)
"""
FULL = """
import resource
from jurybox.errors import JuryboxError
store = open_store(url)
store.create_run(run_row())
store.append([sample_row(0)], [exchange_row(0)])
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    for number in range(1, 1000):
        store.append([sample_row(number, inputs="x" * 3000)], [exchange_row(number)])
except JuryboxError as error:
    print(type(error).__name__, error)
print(list(store.numbers("run-1")) == [row.number for row in store.exchanges("run-1")])
store.close()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    opened = open_store(str(file), patience=0.2)
    opened.create_run(run_row())
    yield opened
    opened.close()


def filled(file: Path, samples: int = 60) -> None:
    store = open_store(str(file))
    store.create_run(run_row())
    for start in range(0, samples, BATCH):
        batch = range(start, start + BATCH)
        store.append(
            [sample_row(number, inputs="i" * (number * 97 % 2000)) for number in batch],
            [exchange_row(number, p, outcome="o" * 900) for number in batch for p in (0, 1)],
        )
    store.close()


def test_a_full_disk_keeps_what_was_stored_and_nothing_of_the_rest(
    file: Path, store: Store
) -> None:
    assert isinstance(store, Store)
    store.append([sample_row(0)], [exchange_row(0)])
    with store._database.reading() as session:
        ((pages,),) = session.rows("PRAGMA page_count")
        session.execute(f"PRAGMA max_page_count = {pages + 5}")
    long = "x" * 100_000
    with pytest.raises(IncompleteError) as caught:
        store.append([sample_row(1), sample_row(2, inputs=long)], [exchange_row(1, material=long)])
    assert str(caught.value) == (
        f"store {file}: the disk is full; free disk space, then continue with `jurybox resume`"
    )
    assert list(store.samples("run-1")) == [sample_row(0)]
    assert list(store.exchanges("run-1")) == [exchange_row(0)]
    store.append([sample_row(1)], [exchange_row(1)])
    assert list(store.numbers("run-1")) == [0, 1]


def test_a_file_that_may_not_grow_keeps_whole_batches(file: Path) -> None:
    with stores.in_process(FULL, str(file)) as process:
        printed, errors = process.communicate(timeout=60)
    assert errors == ""
    error, whole = printed.splitlines()
    assert error.startswith(f"IncompleteError store {file}: it can't be read or written (disk I/O")
    assert whole == "True"
    store = open_store(str(file))
    assert next(store.numbers("run-1")) == 0
    store.close()


@contextmanager
def locked(file: Path) -> Generator[sqlite3.Connection]:
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


def test_a_store_that_is_locked_for_too_long(file: Path, store: Store) -> None:
    with locked(file):
        for call in (
            lambda: store.append([sample_row(0)], []),
            lambda: store.create_run(run_row("b")),
            lambda: store.update_run(run_row()),
        ):
            with pytest.raises(IncompleteError, match=r"locked by .* for more than 0\.2 s; let"):
                call()
        assert store.runs() == [run_row()]  # who reads never waits
    store.append([sample_row(0)], [])
    assert list(store.numbers("run-1")) == [0]


def test_a_store_that_is_locked_for_a_while(file: Path) -> None:
    store = open_store(str(file), patience=30)
    store.create_run(run_row())
    with locked(file) as other:
        threading.Timer(0.3, other.rollback).start()
        store.append([sample_row(0)], [])
    assert list(store.numbers("run-1")) == [0]
    store.close()


def test_a_new_file_that_is_locked_by_somebody_for_too_long(file: Path) -> None:
    with locked(file), pytest.raises(IncompleteError, match="it has been locked by another"):
        open_store(str(file), patience=0.2)


def use(file: Path) -> None:
    """Do everything that can be done with a store."""
    store = open_store(str(file), patience=0.2)
    try:
        reads: tuple[Callable[[str], Any], ...] = (
            store.numbers,
            store.results,
            store.hashes,
            store.samples,
            store.exchanges,
            store.unfinished,
            store.facets,
            store.reviews,
            store.find_runs,
        )
        for read in reads:
            for _ in read("run-1"):
                pass
        store.runs()
        store.find_samples("run-1", SampleQuery(sort="metric:tone", search="a"))
        store.groups("run-1")
        store.find_exchange("key-7-1")
        store.sample("run-1", 7)
        store.exchanges_of("run-1", 7)
        store.append([sample_row(1000)], [exchange_row(1000)])
        store.update_run(run_row(status="finished"))
        with store.claim("run-1"):
            store.create_run(run_row("run-2"))
    finally:
        store.close()


def outcome(file: Path) -> str:
    """Return what came of using a store; only errors that speak to a person are let through."""
    said = "fine"
    try:
        use(file)
    except JuryboxError as error:
        said = str(error)
    for extra in file.parent.glob(f"{file.name}-*"):
        extra.unlink()
    assert "\n" not in said
    return "damaged" if "damaged" in said else "fine" if said == "fine" else "refused"


def test_a_file_damaged_anywhere_is_read_or_refused_with_one_line(file: Path) -> None:
    filled(file)
    good = file.read_bytes()
    chance = random.Random(4)  # noqa: S311 - the same damage every time
    outcomes: dict[str, int] = {"fine": 0, "damaged": 0, "refused": 0}
    for _ in range(110):
        data = bytearray(good)
        # Half of it at the beginnings of pages, where the structure is.
        page = chance.randrange(len(data) // 4096) * 4096
        start = page + chance.choice((chance.randrange(120), chance.randrange(4096)))
        for place in range(start, min(start + chance.choice((1, 2, 8, 64, 4096)), len(data))):
            data[place] = chance.randrange(256)
        file.write_bytes(data)
        outcomes[outcome(file)] += 1
    assert outcomes["damaged"] > 20
    assert outcomes["fine"] > 5  # a letter of a text became another; that is for `verify` to find


def test_a_file_cut_off_anywhere_is_read_or_refused_with_one_line(file: Path) -> None:
    filled(file)
    good = file.read_bytes()
    for length in [1, 15, 16, 99, 100, 512, 4095, *range(4096, len(good), 9001)]:
        file.write_bytes(good[:length])
        assert outcome(file) in {"damaged", "refused"}, length


@pytest.mark.parametrize("text", ["hello\n", "SQLite format 3\0 and then something else" * 50])
def test_a_file_that_is_no_database(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(IncompleteError, match=r"it is damaged \(file is not a database\); restore"):
        open_store(str(file))
    assert file.read_text() == text


def test_an_empty_file_becomes_a_store_only_where_one_may_be_made(file: Path) -> None:
    file.touch()
    with pytest.raises(InputError, match="there is no store in it yet; run a suite first"):
        open_store(str(file), create=False)
    assert file.stat().st_size == 0
    filled(file)
    assert outcome(file) == "fine"


def test_the_database_of_another_program_is_left_as_it_is(file: Path) -> None:
    other = sqlite3.connect(file)
    other.execute("CREATE TABLE accounts (id)")
    other.close()
    before = file.read_bytes()
    with pytest.raises(InputError, match="has a table `accounts` of another program"):
        open_store(str(file))
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


def test_a_table_that_was_dropped_is_damage(file: Path, store: Store) -> None:
    other = sqlite3.connect(file)
    other.execute("DROP TABLE samples")
    other.close()
    with pytest.raises(IncompleteError, match=r"it is damaged \(no such table"):
        list(store.samples("run-1"))


@pytest.mark.parametrize("value", [None, 5, b"\xff\xfe"])
def test_a_column_with_something_else_than_text_is_damage(
    file: Path, store: Store, value: object
) -> None:
    store.append([sample_row(0)], [exchange_row(0)])
    other = sqlite3.connect(file)
    other.execute("PRAGMA writable_schema = ON")
    other.execute(
        "UPDATE sqlite_schema SET sql = replace(replace(sql, 'NOT NULL', ''), 'TEXT', '')"
        " WHERE type = 'table'"
    )
    other.commit()
    other.close()
    other = sqlite3.connect(file)
    other.execute("UPDATE samples SET record_sha256 = ?", [value])
    other.commit()
    other.close()
    for read in (store.samples, store.results, store.hashes):
        with pytest.raises(IncompleteError, match="it is damaged; restore it from a copy"):
            list(read("run-1"))


def test_an_index_out_of_order_does_not_lead_in_circles(file: Path) -> None:
    store = open_store(str(file))
    store.create_run(run_row())
    store.append([sample_row(number) for number in range(120)], [])
    store.close()
    data = file.read_bytes()
    # Of the last row on a page the index says that it is the one before the first: -1.
    entry = b"run-1" + bytes([99, 100])
    assert entry in data
    file.write_bytes(data.replace(entry, b"run-1" + bytes([255, 100])))
    store = open_store(str(file))
    with pytest.raises(IncompleteError, match="it is damaged"):
        list(store.samples("run-1"))
    store.close()


def test_a_folder_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "store.db").mkdir()
    for create in (True, False):
        with pytest.raises(InputError, match=r"store.db: it is a folder; name a file"):
            open_store("store.db", create=create)


def test_a_file_where_its_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "folder").touch()
    with pytest.raises(InputError, match=r"its folder can't be used \(File exists\)|Not a dir"):
        open_store("folder/store.db")
    with pytest.raises(InputError, match=r"no store at|Not a directory"):
        open_store("folder/store.db", create=False)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody can get into."""
    with tempfile.TemporaryDirectory(dir=stores.open_folder()) as name:
        folder = Path(name)
        filled(folder / "store.db")
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o700)


@contextmanager
def nobody() -> Generator[None]:
    """Be somebody whom the file system refuses things, even if root runs the tests."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_that_may_only_be_read(shared: Path) -> None:
    file = shared / "store.db"
    file.chmod(0o444)
    shared.chmod(0o777)  # so the log can be written, but not the store
    with nobody():
        store = open_store(str(file))
        assert len(list(store.numbers("run-1"))) == 60
        with pytest.raises(IncompleteError, match=r"it can't be written \(attempt to write a rea"):
            store.append([sample_row(1000)], [])
        store.close()


def test_a_folder_that_may_only_be_read(shared: Path) -> None:
    shared.chmod(0o555)
    with nobody():
        with pytest.raises(IncompleteError, match="; make the file and its folder writable"):
            open_store(str(shared / "store.db"))
        with pytest.raises(IncompleteError, match=r"it can't be opened \(unable to open database"):
            open_store(str(shared / "new.db"))
        with pytest.raises(InputError, match=r"folder can't be used \(Permission denied\); check"):
            open_store(str(shared / "folder" / "new.db"))


@pytest.mark.parametrize(("folder", "file"), [(0o555, 0o644), (0o755, 0o444), (0o555, 0o444)])
def test_what_may_only_be_read_can_be_looked_at(shared: Path, folder: int, file: int) -> None:
    (shared / "store.db").chmod(file)
    shared.chmod(folder)
    with nobody():
        store = open_store(str(shared / "store.db"), create=False)
        assert len(list(store.numbers("run-1"))) == 60
        with pytest.raises(IncompleteError, match=r"it can't be written \(attempt to write a rea"):
            store.append([sample_row(1000)], [])
        store.close()
    assert [each.name for each in shared.iterdir()] == ["store.db"]


def test_a_log_that_was_left_behind_is_never_overlooked(shared: Path) -> None:
    (shared / "store.db-wal").write_bytes(b"what was written last")
    shared.chmod(0o555)
    with nobody(), pytest.raises(IncompleteError):
        open_store(str(shared / "store.db"), create=False)


def test_a_claim_needs_a_folder_that_can_be_written(shared: Path) -> None:
    store = open_store(str(shared / "store.db"))
    shared.chmod(0o555)
    with nobody(), pytest.raises(IncompleteError, match=r"can't be locked .*denied"):
        store.claim("run-1").__enter__()
    shared.chmod(0o755)
    store.close()


@pytest.mark.parametrize("appends", [1, 4, 9])
def test_a_writer_that_is_killed_leaves_whole_batches(file: Path, appends: int) -> None:
    with stores.in_process(WRITE, str(file)) as process:
        assert stores.line_of(process) == "ready"
        confirmed = [int(stores.line_of(process)) for _ in range(appends)]
        stores.kill(process)
    log = file.with_name(f"{file.name}-wal")
    assert log.stat().st_size > 0
    # The same again with a log that was damaged: what stands before the damage is whole.
    shutil.copy(file, "copy.db")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 0xFF
    Path("copy.db-wal").write_bytes(data)
    assert whole_batches(file) >= confirmed[-1] + BATCH
    assert whole_batches(Path("copy.db")) >= 0


def whole_batches(file: Path) -> int:
    """Return how many samples there are, once it is sure that they are whole batches."""
    store = open_store(str(file))
    numbers = list(store.numbers("run-1"))
    assert numbers == list(range(len(numbers)))
    assert len(numbers) % BATCH == 0
    assert [row.number for row in store.exchanges("run-1")] == numbers
    store.close()
    return len(numbers)
