"""One suite over both stores: what goes in comes out, whole and in order, whoever else is there."""

import hashlib
import random
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from typing import Any

import msgspec
import pytest

from jurybox.engine.records import ExchangeRow, OutboxRow, SampleRow, facets_of, outcome_text
from jurybox.errors import IncompleteError, InputError
from jurybox.judging.flow import Failure
from jurybox.storage import open_store
from jurybox.storage.store import Store
from stores import (
    batch_row,
    calibration_row,
    exchange_row,
    in_process,
    kill,
    line_of,
    run_row,
    sample_row,
)

MANY = 230  # more than two pages of whole rows
CLAIM = """
store = open_store(url)
with store.claim("run-1") as held:
    print(held, flush=True)
    sys.stdin.read()
store.close()
"""
WORK = """
print("ready", flush=True)
sys.stdin.readline()
store = open_store(url)
store.create_run(run_row(rest[0]))
for number in range(0, 300, 10):
    batch = range(number, number + 10)
    store.append(
        [sample_row(each, rest[0]) for each in batch],
        [exchange_row(each, 0, rest[0]) for each in batch],
    )
store.close()
"""
TEXTS = {
    "empty": "",
    "escaped NUL": '"\\u0000"',
    "placeholders": "? %s %(run_id)s :run_id %% {text} $1",
    "quotes": "'; DROP TABLE runs; -- \" `",
    "newlines": "a\r\nb\tc\x01\x7f",
    "every plane": "\u00e9 \u4f60\u597d \U0001f600 e\u0301 \uffff \U0010ffff",
    "long": "0123456789" * 100_000,
}


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    opened = open_store(url, patience=10)
    yield opened
    opened.close()


@pytest.fixture
def run(store: Store) -> str:
    store.create_run(run_row())
    return "run-1"


def test_a_run_comes_back_as_it_was_stored(store: Store) -> None:
    plain, full = run_row("a"), run_row("b", finished_at="later", outcome="{}", digest="abc")
    store.create_run(plain)
    store.create_run(full)
    assert (store.run("a"), store.run("b"), store.run("c")) == (plain, full, None)


def test_batches_come_back_in_order_and_as_they_were_noted_last(store: Store, run: str) -> None:
    store.create_run(run_row("other"))
    for row in (batch_row(1), batch_row(0), batch_row(0, "other")):
        store.add_batch(row)
    named = batch_row(1, state="submitted", batch_id="batch-7")
    store.update_batch(named)
    assert store.batches(run) == [batch_row(0), named]
    assert store.batches("other") == [batch_row(0, "other")]
    assert store.batches("nobody's") == []


def test_the_outbox_keeps_a_row_until_its_version_changes(store: Store, run: str) -> None:
    row = OutboxRow(run_id=run, number=0, part="trace", version="1", detail="d")
    store.put_out([row, msgspec.structs.replace(row, number=1, part="scores")])
    sent = msgspec.structs.replace(row, state="sent")
    store.update_outbox([sent])
    store.put_out([row])
    assert store.outbox("pending", "trace") == []
    assert store.outbox("sent", "trace", run) == [sent]
    store.update_outbox([msgspec.structs.replace(sent, version="0", state="rejected")])
    assert store.outbox_counts() == [
        (run, "scores", "pending", "", 1),
        (run, "trace", "sent", "", 1),
    ]
    again = msgspec.structs.replace(row, version="2")
    store.put_out([again])
    assert store.outbox("pending", "trace", limit=1) == [again]
    assert store.outbox("pending", "trace", "another run") == []


def test_calibrations_come_back_by_rubric_and_the_newest_first(store: Store) -> None:
    old = calibration_row("cal-1", created_at="2026-01-01T00:00:00Z", record='{"rounds": []}')
    new = calibration_row("cal-0", created_at="2026-02-01T00:00:00Z")
    other = calibration_row("cal-2", created_at="2026-01-15T00:00:00Z", rubric_id="other")
    for row in (old, new, other):
        store.add_calibration(row)
    assert store.calibrations("answers") == [new, old]
    assert store.calibrations("other") == [other]
    assert store.calibrations("nobody's") == []
    assert store.calibrations() == [new, other, old]


def test_a_calibration_is_added_once(store: Store) -> None:
    store.add_calibration(calibration_row())
    with pytest.raises(IncompleteError):
        store.add_calibration(calibration_row(record='{"n": 7}'))
    assert store.calibrations("answers") == [calibration_row()]


def test_a_batch_is_added_once_to_a_run_that_is_there(store: Store, run: str) -> None:
    store.add_batch(batch_row(0))
    for wrong in (batch_row(0), batch_row(0, "nobody's")):
        with pytest.raises(IncompleteError):
            store.add_batch(wrong)
    with pytest.raises(IncompleteError):
        store.update_batch(batch_row(1))
    assert store.batches(run) == [batch_row(0)]


def test_a_run_can_be_replaced(store: Store, run: str) -> None:
    store.create_run(run_row("other"))
    finished = run_row(run, status="finished", outcome='{"passed": true}', digest="abc")
    store.update_run(finished)
    assert store.run(run) == finished
    assert store.run("other") == run_row("other")


def test_a_run_that_is_not_there_is_not_replaced(store: Store) -> None:
    with pytest.raises(IncompleteError, match="the run isn't in it"):
        store.update_run(run_row("nobody"))
    assert store.runs() == []


def test_runs_come_newest_first(store: Store) -> None:
    ages = {"b": "2026-01-02", "Z": "2026-01-02", "a": "2026-01-02", "c": "2025-12-31"}
    for name, created_at in ages.items():
        store.create_run(run_row(name, created_at=created_at))
    assert [row.id for row in store.runs()] == ["b", "a", "Z", "c"]
    assert [row.id for row in store.runs(limit=2)] == ["b", "a"]
    assert store.runs(limit=0) == []


def test_runs_are_found_by_how_their_ids_begin(store: Store) -> None:
    for age, name in enumerate(["r_n", "Run-3", "run-1", "run-2"]):
        store.create_run(run_row(name, created_at=f"2026-01-0{age + 1}"))
    found = {
        "run-": ["run-2", "run-1"],
        "run-2": ["run-2"],
        "Run-": ["Run-3"],
        "r%": [],
        "r_n": ["r_n"],
        "run-22": [],
        "\\": [],
        "": ["run-2", "run-1", "Run-3", "r_n"],
    }
    for prefix, names in found.items():
        assert [row.id for row in store.find_runs(prefix)] == names, prefix


@pytest.fixture
def filled(store: Store, run: str) -> tuple[list[SampleRow], list[ExchangeRow]]:
    """Many samples and exchanges, stored in no order, beside those of another run."""
    samples = [sample_row(number) for number in range(MANY)]
    exchanges = [exchange_row(number // 3, number % 3) for number in range(MANY)]
    store.create_run(run_row("other"))
    store.append([sample_row(5, "other")], [exchange_row(5, 0, "other")])
    mixed, asked = samples.copy(), exchanges.copy()
    chance = random.Random(4)  # noqa: S311 - a shuffle, no secret
    chance.shuffle(mixed)
    chance.shuffle(asked)
    for start in range(0, MANY, 50):
        store.append(mixed[start : start + 50], asked[start : start + 50])
    assert store.run(run) is not None
    return samples, exchanges


Filled = tuple[list[SampleRow], list[ExchangeRow]]


def test_all_of_a_run_comes_back_in_order(store: Store, filled: Filled) -> None:
    samples, exchanges = filled
    assert list(store.samples("run-1")) == samples
    assert list(store.exchanges("run-1")) == exchanges
    assert list(store.numbers("run-1")) == list(range(MANY))
    assert list(store.results("run-1")) == [
        (row.number, row.repeat, row.record_sha256, row.result) for row in samples
    ]


def test_a_part_of_a_run_can_be_asked_for(store: Store, filled: Filled) -> None:
    samples, _ = filled
    for numbers in (range(100), range(7, 107), range(MANY - 1, 2**63), range(9, 9)):
        wanted = [row for row in samples if row.number in numbers]
        assert list(store.results("run-1", numbers)) == [
            (row.number, row.repeat, row.record_sha256, row.result) for row in wanted
        ]
        assert list(store.facets("run-1", numbers)) == [facets_of(row) for row in wanted]


def test_hashes_come_sorted_as_plain_text_and_every_one_of_them(store: Store, run: str) -> None:
    hashes = ["b", "B", "a", "10", "9", "a", "\u00e9", "z", "", "A"]
    store.append([sample_row(n, record_sha256=h) for n, h in enumerate(hashes)], [])
    assert list(store.hashes(run)) == sorted(hashes)


def test_one_sample_and_its_exchanges_can_be_asked_for(store: Store, filled: Filled) -> None:
    samples, exchanges = filled
    assert store.sample("run-1", 7) == samples[7]
    assert store.sample("run-1", MANY) is None
    assert store.sample("other", 7) is None
    assert store.exchanges_of("run-1", 7) == exchanges[21:24]
    assert store.exchanges_of("run-1", MANY) == []


def test_what_requests_share_is_stored_once_and_nobody_notices(store: Store, run: str) -> None:
    rows = [
        exchange_row(number, vote, frame=f"rubric é {vote}\nend", material=f"<{number}>")
        for number in range(40)
        for vote in range(3)
    ]
    for start in range(0, len(rows), 7):
        store.append([], rows[start : start + 7])
    assert list(store.exchanges(run)) == list(store.unfinished(run)) == rows
    assert store.exchanges_of(run, 20) == rows[60:63]
    assert store.find_exchange("key-20-1") == rows[61]
    with store._database.reading() as session:
        frames = session.rows("SELECT sha256, text FROM frames ORDER BY text")
    texts = [f"rubric é {vote}\nend" for vote in range(3)]
    assert frames == [(hashlib.sha256(text.encode()).hexdigest(), text) for text in texts]
    assert rows[61].request == "rubric é 1<20>end"


def test_two_who_write_at_once_share_frames(store: Store, url: str, run: str) -> None:
    other = open_store(url)
    rows = [exchange_row(number, frame="rubric\n", material=f"{number}") for number in range(20)]
    for number in range(0, 20, 2):
        store.append([], [rows[number]])
        other.append([], [rows[number + 1]])
    other.close()
    assert list(store.exchanges(run)) == rows


def test_each_run_has_frames_of_its_own(store: Store, run: str) -> None:
    store.create_run(run_row("other"))
    rows = [exchange_row(0, 0, name, frame="rubric\n") for name in (run, "other")]
    store.append([], rows)
    with store._database.writing() as session:
        session.execute("UPDATE frames SET text = 'changed' WHERE run_id = 'other'")
    assert list(store.exchanges(run)) == rows[:1]
    assert next(store.exchanges("other")).frame == "changed"


def test_a_store_whose_frames_were_taken_away_takes_further_exchanges(
    store: Store, run: str
) -> None:
    rows = [exchange_row(number, frame="rubric\n") for number in range(6)]
    store.append([], rows[:4])
    with store._database.writing() as session:
        session.execute("UPDATE exchanges SET frame = NULL")
        session.execute("DELETE FROM frames")
    store.append([], rows[4:])
    assert list(store.exchanges(run))[4:] == rows[4:]


def test_an_unknown_run_has_nothing(store: Store) -> None:
    for read in (store.numbers, store.results, store.hashes, store.samples, store.exchanges):
        assert list(read("nobody")) == []
    assert list(store.unfinished("nobody")) == []


def test_unfinished_are_the_exchanges_without_their_sample(store: Store, run: str) -> None:
    exchanges = [exchange_row(number // 2, number % 2) for number in range(MANY * 2)]
    store.create_run(run_row("other"))
    store.append([], exchanges)
    store.append([sample_row(number, "other") for number in range(MANY)], [])
    assert list(store.unfinished(run)) == exchanges
    store.append([sample_row(number) for number in range(0, MANY, 2)], [])
    assert list(store.unfinished(run)) == [row for row in exchanges if row.number % 2]


def test_a_sample_that_lost_a_request_is_removed_and_its_exchanges_stay(
    store: Store, run: str
) -> None:
    lost = outcome_text(Failure(kind="timeout", message="late", transient=True))
    refused = outcome_text(Failure(kind="refused", message='"transient":true'))
    exchanges = [
        exchange_row(0),
        exchange_row(1, key="", outcome=lost),
        exchange_row(1, 1),
        exchange_row(2, key="", outcome=refused),
    ]
    store.append([sample_row(number) for number in range(3)], exchanges)
    assert store.transient_failures(run) == [1]
    reopened = run_row(run, status="stopped")
    store.reopen(reopened, [1])
    assert store.run(run) == reopened
    assert list(store.numbers(run)) == [0, 2]
    assert [facets.number for facets in store.facets(run)] == [0, 2]
    assert list(store.unfinished(run)) == exchanges[1:3]


def test_the_newest_exchange_with_a_key_is_found(store: Store) -> None:
    for name, created_at in (("b", "2026-02-01"), ("a", "2026-03-01"), ("c", "2026-01-01")):
        store.create_run(run_row(name, created_at=created_at))
        store.append(
            [],
            [
                exchange_row(1, 0, name, key="same"),
                exchange_row(2, 1, name, key="same"),
                exchange_row(2, 0, name, key="same"),
                exchange_row(3, 0, name, key=""),
            ],
        )
    assert store.find_exchange("same") == exchange_row(2, 1, "a", key="same")
    assert store.find_exchange("other") is None


def test_an_exchange_without_a_key_is_never_found(store: Store, run: str) -> None:
    store.append([], [exchange_row(0, 0, run, key="")])
    assert store.find_exchange("") is None


def test_a_text_is_kept_to_the_character(store: Store) -> None:
    for name, text in TEXTS.items():
        row = run_row(f"{name}-{text[:20]}", suite=text, plan=text, outcome=text)
        store.create_run(row)
        sample = sample_row(0, row.id, sample_id=text[:20], inputs=text, report=text)
        exchange = exchange_row(0, 0, row.id, key=text[:20] or "key", material=text)
        store.append([sample], [exchange])
        store.update_run(row)
        assert store.run(row.id) == row
        assert store.find_runs(row.id) == [row]
        assert list(store.samples(row.id)) == [sample]
        assert list(store.exchanges(row.id)) == [exchange]
        assert store.find_exchange(exchange.key) == exchange


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "\udcff"])
def test_a_text_that_cannot_be_stored_is_refused_with_the_whole_batch(
    store: Store, run: str, text: str
) -> None:
    refused: list[Callable[[], None]] = [
        lambda: store.create_run(run_row("new", suite=text, seal="s")),
        lambda: store.update_run(msgspec.structs.replace(run_row(), outcome=text)),
        lambda: store.append([sample_row(0), sample_row(1, sample_id=text)], []),
    ]
    if "\0" not in text:  # which JSON can't hold
        refused.append(lambda: store.append([sample_row(0)], [exchange_row(0, material=text)]))
    for call in refused:
        with pytest.raises(InputError, match="a character that can't be stored"):
            call()
    assert store.runs() == [run_row()]
    assert list(store.numbers(run)) == []


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"])
def test_what_cannot_be_stored_is_not_found(store: Store, run: str, text: str) -> None:
    store.append([sample_row(0)], [exchange_row(0)])
    assert (store.run(text), store.sample(text, 0), store.find_exchange(text)) == (None,) * 3
    assert (store.find_runs(text), store.exchanges_of(text, 0)) == ([], [])
    for read in (store.numbers, store.results, store.hashes, store.samples, store.exchanges):
        assert list(read(text)) == []
    assert store.run(run) is not None


TWICE: dict[str, tuple[list[SampleRow], list[ExchangeRow]]] = {
    "number": ([sample_row(2), sample_row(1, sample_id="new")], []),
    "sample id and repeat": ([sample_row(2), sample_row(3, sample_id="s1")], []),
    "exchange": ([sample_row(2)], [exchange_row(2), exchange_row(1)]),
    "in one batch": ([sample_row(2), sample_row(2, sample_id="new")], []),
}


@pytest.mark.parametrize("batch", TWICE.values(), ids=TWICE.keys())
def test_nothing_is_stored_twice_and_nothing_of_such_a_batch_once(
    store: Store, run: str, batch: Filled
) -> None:
    store.append([sample_row(1)], [exchange_row(1)])
    with pytest.raises(IncompleteError, match="already stored, as if two processes used one"):
        store.append(*batch)
    assert list(store.samples(run)) == [sample_row(1)]
    assert list(store.exchanges(run)) == [exchange_row(1)]
    store.append([sample_row(2)], [exchange_row(2)])
    assert list(store.numbers(run)) == [1, 2]


def test_another_repeat_of_a_sample_is_another_sample(store: Store, run: str) -> None:
    store.append([sample_row(1), sample_row(2, sample_id="s1", repeat=1)], [])
    assert [(row[0], row[1]) for row in store.results(run)] == [(1, 0), (2, 1)]


def test_a_run_is_not_stored_twice(store: Store, run: str) -> None:
    with pytest.raises(IncompleteError, match="already stored"):
        store.create_run(run_row(run, suite="another"))
    assert store.run(run) == run_row()


def test_nothing_is_stored_for_a_run_that_is_not_there(store: Store) -> None:
    for batch in (([sample_row(1)], []), ([], [exchange_row(1)])):
        with pytest.raises(IncompleteError, match="the run isn't in it"):
            store.append(*batch)


def test_an_empty_batch_is_fine(store: Store) -> None:
    store.append([], [])


def test_rows_are_not_all_in_memory_at_once(store: Store, run: str) -> None:
    long = "x" * 20_000
    for start in range(0, 600, 100):
        numbers = range(start, start + 100)
        store.append(
            [sample_row(number, inputs=long) for number in numbers],
            [exchange_row(number, material=long) for number in numbers],
        )
    for read in (store.samples, store.exchanges):
        tracemalloc.start()
        count = sum(1 for _ in read(run))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert count == 600
        assert peak < 6_000_000  # of 12 million


def test_reading_holds_nobody_up_and_sees_what_is_stored_meanwhile(store: Store, run: str) -> None:
    store.append([sample_row(n) for n in range(150)], [exchange_row(n) for n in range(150)])
    reads = [store.samples(run), store.exchanges(run)]
    begun = [next(read).number for read in reads]
    store.append([sample_row(200)], [exchange_row(200)])
    assert begun == [0, 0]
    assert [[row.number for row in read] for read in reads] == [[*range(1, 150), 200]] * 2


def test_hashes_can_be_left_halfway(store: Store, run: str) -> None:
    store.append([sample_row(number) for number in range(10)], [])
    for _ in range(40):  # more than there are connections
        hashes = store.hashes(run)
        assert len(list(islice(hashes, 3))) == 3
        del hashes
    assert len(list(store.hashes(run))) == 10


def test_threads_append_and_read_at_once(store: Store, run: str) -> None:
    done = threading.Event()

    def write(worker: int) -> None:
        for number in range(worker, 200, 4):
            store.append([sample_row(number)], [exchange_row(number)])

    def read() -> int:
        rounds = 0
        while not done.is_set():
            numbers = list(store.numbers(run))
            assert numbers == sorted(set(numbers))
            assert len(list(store.samples(run))) >= len(numbers)
            assert len(list(store.hashes(run))) >= len(numbers)
            rounds += 1
        return rounds

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for writer in [pool.submit(write, worker) for worker in range(4)]:
            writer.result()
        done.set()
        assert all(reader.result() > 0 for reader in readers)
    assert list(store.numbers(run)) == list(range(200))
    assert [row.number for row in store.exchanges(run)] == list(range(200))


def test_a_run_is_held_by_one_at_a_time(store: Store) -> None:
    with store.claim("run-1") as first, store.claim("run-1") as second, store.claim("b") as other:
        assert (first, second, other) == (True, False, True)
        with store.claim("run-1") as third:
            assert not third
    with store.claim("run-1") as again:
        assert again


def test_what_is_held_is_let_go_after_an_error(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.claim("run-1"):
        raise ZeroDivisionError
    with store.claim("run-1") as held:
        assert held


def test_any_name_of_a_run_can_be_held(store: Store) -> None:
    for name in ("../x", "a/b", "x" * 5000, "\u4f60", ""):
        with store.claim(name) as first, store.claim(name) as second:
            assert (first, second) == (True, False)


def test_a_process_that_is_killed_lets_go(url: str, store: Store) -> None:
    with in_process(CLAIM, url) as process:
        assert line_of(process) == "True"
        with store.claim("run-1") as held:
            assert not held
        kill(process)
    _wait_until(lambda: _is_free(store, "run-1"))


def test_processes_make_a_new_store_at_once_and_write_their_runs_without_loss(url: str) -> None:
    names = ["a", "b", "c"]
    with ExitStack() as stack:
        _work_at_once([stack.enter_context(in_process(WORK, url, name)) for name in names])
    store = open_store(url)
    assert sorted(row.id for row in store.runs()) == names
    for name in names:
        assert list(store.samples(name)) == [sample_row(number, name) for number in range(300)]
        assert list(store.exchanges(name)) == [exchange_row(n, 0, name) for n in range(300)]
    store.close()


def test_a_store_is_there_again_when_it_is_opened_again(url: str, store: Store) -> None:
    store.create_run(run_row())
    store.append([sample_row(0)], [exchange_row(0)])
    store.close()
    again = open_store(url, create=False)
    assert again.runs() == [run_row()]
    assert list(again.samples("run-1")) == [sample_row(0)]
    assert list(again.exchanges("run-1")) == [exchange_row(0)]
    again.close()


def test_closing_twice_is_fine(store: Store) -> None:
    store.close()
    store.close()


def test_a_command_that_only_reads_makes_no_store(url: str) -> None:
    for _ in range(2):
        with pytest.raises(InputError, match=r"run a suite first.*or name (one|another store)"):
            open_store(url, create=False)


def _work_at_once(processes: list[Any]) -> None:
    """Start them at the same moment and see that all end well."""
    assert [line_of(process) for process in processes] == ["ready"] * len(processes)
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")


def _is_free(store: Store, run_id: str) -> bool:
    with store.claim(run_id) as held:
        return held


def _wait_until(true: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(500):
        if true():
            return
        pause.wait(0.02)
    pytest.fail("it did not become true within 10 s")


@pytest.mark.usefixtures("filled")
def test_a_deleted_run_leaves_nothing_and_the_others_alone(store: Store) -> None:
    """D7."""
    for run in ("run-1", "other"):
        store.put_out([OutboxRow(run_id=run, number=0, part="trace", version="1", detail="")])
    store.delete_run("run-1")
    assert [row.id for row in store.runs()] == ["other"]
    assert [row.run_id for row in store.outbox("pending", "trace")] == ["other"]
    for rows in (store.samples, store.exchanges, store.facets, store.unfinished):
        assert list(rows("run-1")) == []
    assert list(store.samples("other")) == [sample_row(5, "other")]
    assert list(store.exchanges("other")) == [exchange_row(5, 0, "other")]


def test_runs_are_found_by_a_text_in_their_metadata(store: Store) -> None:
    """D7."""
    for name in ("v1", "v2"):
        store.create_run(run_row(name, metadata=f'{{"name":"{name}"}}'))
    assert [row.id for row in store.labeled_runs("v1")] == ["v1"]
    assert list(store.labeled_runs("v")) == []
