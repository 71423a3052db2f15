"""Several processes audit a run as one does, whatever happens to them (A13)."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from multiprocessing import resource_tracker
from pathlib import Path

import pytest

import jurybox
from jurybox.app.verify_run import verified_slices
from jurybox.engine.audit import audit
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.errors import IncompleteError
from jurybox.wiring import find_run, open_run_store

JURYBOX = str(Path(sys.executable).parent / "jurybox")
SAMPLES, SLICE = 40, 6
ENOUGH = 5000


def run_suite(place: Path, samples: int) -> str:
    rows = [
        {"id": f"s{number}", "task": "I feel sad.", "response": f"I'm so sorry, {number} times."}
        for number in range(samples)
    ]
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (place / "suite.yaml").write_text("suite: many\nrubric: companion\ndataset: rows.jsonl\n")
    store = str(place / "store.db")
    jurybox.run(place / "suite.yaml", store=store)
    return store


@pytest.fixture(autouse=True)
def tracker() -> None:
    """Start the process that Python keeps for its pools, so that it isn't taken for a worker."""
    resource_tracker.ensure_running()


def children(of: int) -> set[int]:
    """Return the processes that a process has started and that haven't ended."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == of and state != "Z":
            found.add(int(stat.parent.name))
    return found


@pytest.fixture
def url(tmp_path: Path) -> str:
    return run_suite(tmp_path, SAMPLES)


@pytest.fixture
def opened(url: str) -> Store:
    store = open_run_store(url)
    yield store
    store.close()


def helped(url: str, run: RunRow) -> "closing":
    return closing(verified_slices(url, run, 2, smallest=1, size=SLICE))


def test_they_vouch_for_every_sample_and_are_gone_afterwards(opened: Store, url: str) -> None:
    run, before = find_run(opened, "last"), children(os.getpid())
    with helped(url, run) as slices:
        found = audit(opened, run, vouched=slices)
    assert found == audit(opened, run)
    assert (found.samples, found.difference) == (SAMPLES, None)
    assert children(os.getpid()) == before


def test_where_one_record_differs_they_vouch_for_what_is_before_it(opened: Store, url: str) -> None:
    with closing(sqlite3.connect(url)) as connection, connection:
        connection.execute("update samples set inputs = replace(inputs, 's20', 's21')")
    run = find_run(opened, "last")
    with helped(url, run) as slices:
        whole = list(slices)
    assert sum(len(each.results) for each in whole) == 20 // SLICE * SLICE
    with helped(url, run) as slices:
        found = audit(opened, run, vouched=slices)
    assert found == audit(opened, run)
    assert found.difference is not None
    assert found.difference.where.startswith("record 20, sample s20")


def test_one_that_is_killed_is_told_and_its_samples_are_not_taken_for_checked(
    opened: Store, url: str
) -> None:
    run, before = find_run(opened, "last"), children(os.getpid())
    with helped(url, run) as slices:
        next(slices)
        for process in children(os.getpid()) - before:
            os.kill(process, signal.SIGKILL)
        with pytest.raises(IncompleteError, match=r"a process .* has died"):
            audit(opened, run, vouched=slices)
    assert children(os.getpid()) == before


def test_who_can_not_reach_the_store_leaves_all_to_whoever_asked(opened: Store, url: str) -> None:
    run = find_run(opened, "last")
    with helped(f"{url}-elsewhere", run) as slices:
        assert audit(opened, run, vouched=slices) == audit(opened, run)


def test_the_address_of_the_store_is_on_no_command_line(opened: Store, url: str) -> None:
    run, before = find_run(opened, "last"), children(os.getpid())
    with helped(url, run) as slices:
        next(slices)
        lines = [
            Path(f"/proc/{each}/cmdline").read_bytes() for each in children(os.getpid()) - before
        ]
    assert len(lines) == 2
    assert not any(url.encode() in line for line in lines)


def test_a_small_run_needs_no_other_process(opened: Store, url: str) -> None:
    with closing(verified_slices(url, find_run(opened, "last"), 2)) as slices:
        assert list(slices) == []


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core needs one process")
def test_ctrl_c_ends_all_of_them_with_one_line(tmp_path: Path) -> None:
    url = run_suite(tmp_path, ENOUGH)
    process = subprocess.Popen(
        [JURYBOX, "verify", "last", "--store", url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until(lambda: len(children(process.pid)) >= 2)
    others = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (3, b"", b"jurybox: interrupted\n")
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in others))
