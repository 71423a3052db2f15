"""Runs on a real Ray cluster of several nodes, with nodes, drivers and databases killed (A13)."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from commands import JURYBOX, call
from judge_server import JudgeServer, general_verdict
from jurybox.engine.records import sealed
from jurybox.storage import open_store
from lazily import Lazily
from ray_cluster import RayNodes, ray_nodes
from stores import postgres_server

pa = Lazily("pyarrow")
pq = Lazily("pyarrow.parquet")

SAMPLES, VOTES, CALLS = 120, 2, 12
PER_SECOND = 40


@pytest.fixture(scope="module")
def nodes() -> Iterator[RayNodes]:
    with ray_nodes({**os.environ, "HOME": "/nonexistent"}) as cluster:
        yield cluster


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(general_verdict, latency=0.2).running() as server:
        yield server


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of a local run; where the judge listens is no part of it."""
    place = tmp_path_factory.mktemp("local")
    with contextlib.chdir(place), JudgeServer(general_verdict).running() as judge:
        write_suite(place, judge)
        here("run", "suite.yaml", "--store", "local.db")
        return digest("local.db")


def write_suite(place: Path, judge: JudgeServer) -> None:
    rows = [
        {"id": f"q{number}", "task": f"What is {number} + 1?", "response": f"It is {number + 1}."}
        for number in range(SAMPLES)
    ]
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = (
        f"{{model: openai/judge-2025-01-01, base_url: {judge.url},"
        f" max_requests_per_minute: {PER_SECOND * 60}}}"
    )
    (place / "suite.yaml").write_text(
        "suite: spread\nrubric: general\ndataset: rows.jsonl\n"
        f"judge: {{models: [{model}], votes: {VOTES}}}\nconcurrency: {CALLS}\n"
    )


CHECKED = """---
id: length
version: 1.0.0
scale: 0-1
gates: ["pass_rate >= 0"]
pass: ["overall >= 0.5"]
---
# Length

## Criteria

### Short
Not long.

```yaml checks
- characters: "<= 3"
```
"""


def write_parquet(*ids: str) -> None:
    """A suite of checks alone, on files of 1,000 rows each; only the first has references."""
    rows = range(len(ids))
    for start in rows[::1000]:
        part = rows[start : start + 1000]
        columns = {
            "id": [ids[each] for each in part],
            "task": [f"Count to {each}." for each in part],
            "response": [str(each) for each in part],
        }
        if not start:
            columns["answer"] = columns["response"]
        pq.write_table(pa.table(columns), f"part{start // 1000}.parquet", row_group_size=300)
    Path("length.md").write_text(CHECKED)
    Path("suite.yaml").write_text(
        "suite: p\nrubric: length.md\ndataset: part*.parquet\ncolumns: {reference: answer}\n"
    )


# A driver that can't read a single row.
BLIND = """
from jurybox.cli import main
from jurybox.datasets.dataset import Pass
Pass.__iter__ = None
main()
"""


def test_workers_check_and_score_parquet_that_the_driver_never_reads(nodes: RayNodes) -> None:
    """A13."""
    write_parquet(*(f"r{number}" for number in range(2500)))
    here("run", "suite.yaml", "--store", "local.db")
    arguments = ("run", "suite.yaml", "--engine", "ray", "--address", nodes.address)
    blind = subprocess.run(
        [sys.executable, "-c", BLIND, *arguments, "--store", "spread.db"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert blind.returncode in {0, 1}, blind.stderr
    assert digest("spread.db") == digest("local.db")
    # A driver that is lost when all is scored leaves only the end to do.
    with contextlib.closing(open_store("spread.db")) as store:
        ended = {"status": "running", "finished_at": None, "outcome": None, "digest": None}
        store.update_run(sealed(msgspec.structs.replace(store.runs()[0], **ended)))
    finish("resume", "last", *arguments[2:], "--store", "spread.db")
    assert digest("spread.db") == digest("local.db")


def test_faults_that_workers_find_are_named_in_order(nodes: RayNodes) -> None:
    """D2."""
    write_parquet(*(f"r{number}" for number in range(2500)), "r1003", *(f"s{n}" for n in range(9)))
    # The only part with the column that the suite names.
    Path("part0.parquet").unlink()
    arguments = ("run", "suite.yaml", "--engine", "ray", "--address", nodes.address)
    done = subprocess.run([JURYBOX, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "part2.parquet:501" in done.stderr
    assert "the id `r1003` is given twice (first on part1.parquet, row 4)" in done.stderr
    assert "no row has the column `answer`, which the suite names for `reference`" in done.stderr


def test_parquet_that_changes_while_workers_read_it_stops_the_run(
    nodes: RayNodes, judge: JudgeServer, tmp_path: Path
) -> None:
    """A13."""
    write_suite(tmp_path, judge)
    table = pa.table({"task": [f"{n} + 1?" for n in range(SAMPLES)], "response": ["1"] * SAMPLES})
    pq.write_table(table, "rows.parquet", row_group_size=25)
    suite = Path("suite.yaml")
    suite.write_text(suite.read_text().replace("jsonl", "parquet"))
    driver = start("run", "suite.yaml", "--engine", "ray", "--address", nodes.address)
    judge.wait_for(30)
    pq.write_table(table.set_column(1, "response", [["2"] * SAMPLES]), "new", row_group_size=25)
    Path("new").replace("rows.parquet")
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 3, err
    assert "the dataset changed during the run (its SHA-256 differs)" in err


def start(*arguments: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "OPENAI_API_KEY": "sk-test"}
    return subprocess.Popen(
        [JURYBOX, *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(*arguments: str) -> dict[str, object]:
    process = start(*arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode in {0, 1}, err
    return json.loads(out)


def here(*arguments: str) -> str:
    """Call a command that needs no cluster in this process; return what it says."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        done = call(monkeypatch, *arguments, OPENAI_API_KEY="sk-test")
    assert done.code in {0, 1}, done.err
    return done.out


def digest(store: str) -> str:
    return here("verify", "last", "--store", store).split()[-1]


def wait_until_nothing_is_asked(judge: JudgeServer) -> None:
    """Wait for the end of workers that have lost their driver."""
    asked = -1
    while asked != judge.requests:
        asked = judge.requests
        time.sleep(0.5)


def repeated(judge: JudgeServer) -> int:
    return sum(count - 1 for count in judge.asked.values())


def most_per_second(judge: JudgeServer) -> int:
    times = sorted(judge.arrivals)
    return max(sum(t <= each < t + 1 for each in times) for t in times)


def test_a_cluster_that_is_not_there_is_said_at_once(judge: JudgeServer, tmp_path: Path) -> None:
    write_suite(tmp_path, judge)
    address = "127.0.0.1:1"
    process = start("run", "suite.yaml", "--engine", "ray", "--address", address)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert f"no Ray cluster {address} (" in err
    assert err.endswith("); check --address and `ray status`\n")


def test_a_node_and_a_driver_are_killed_and_ctrl_c_finishes_what_is_under_way(
    nodes: RayNodes, judge: JudgeServer, expected: str, tmp_path: Path
) -> None:
    write_suite(tmp_path, judge)
    ray = ("--engine", "ray", "--address", nodes.address, "--store", "spread.db")
    driver = start("run", "suite.yaml", *ray)
    judge.wait_for(50)
    nodes.kill_node()
    nodes.add_node()
    judge.wait_for(100)
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    with sqlite3.connect("spread.db") as store:
        assert store.execute("select status from runs").fetchall() == [("running",)]
    store.close()
    wait_until_nothing_is_asked(judge)
    driver = start("resume", "last", *ray)
    judge.wait_for(judge.requests + 30)
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=60)
    assert driver.returncode == 3, err
    assert 0 < json.loads(out)["summary"]["samples"] < SAMPLES
    asked = judge.requests
    time.sleep(0.5)
    assert judge.requests == asked
    assert most_per_second(judge) <= PER_SECOND
    assert judge.most_at_once <= CALLS
    # The local engine takes it up where the cluster left it.
    here("resume", "last", "--store", "spread.db")
    assert digest("spread.db") == expected
    # Those in flight when the node died, and those when the driver did.
    assert repeated(judge) <= 2 * CALLS
    assert len(judge.asked) == judge.requests - repeated(judge)


def test_postgresql_is_killed_and_comes_back(
    nodes: RayNodes, judge: JudgeServer, expected: str, tmp_path: Path
) -> None:
    write_suite(tmp_path, judge)
    with postgres_server() as postgres:
        url = postgres.fresh_url()
        ray = ("--engine", "ray", "--address", nodes.address, "--store", url)
        driver = start("run", "suite.yaml", *ray)
        judge.wait_for(60)
        postgres.crash()
        time.sleep(1)
        postgres.start()
        _, err = driver.communicate(timeout=120)
        assert driver.returncode in {0, 1}, err
        assert digest(url) == expected
    assert repeated(judge) == 0
