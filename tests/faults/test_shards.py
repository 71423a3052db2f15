"""Files that a killed driver left behind: checked, taken over, and nothing is paid for twice."""

import asyncio
import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from commands import Done, call
from judge_server import JudgeServer, general_verdict
from jurybox.app.job import Job
from jurybox.engine.plan import read_plan
from jurybox.engine.records import RunRow, seal_of
from jurybox.wiring import open_run_store

SAMPLES = 12
EMPTIED = ("facets", "samples", "exchanges", "frames")


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(general_verdict).running() as server:
        yield server


class Left:
    """A run whose samples are all in the file of a shard, and none in its store."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, judge: JudgeServer) -> None:
        self._monkeypatch = monkeypatch
        self._judge = judge
        rows = [
            {"id": f"q{n}", "task": f"{n} + 1?", "response": f"{n + 1}"} for n in range(SAMPLES)
        ]
        Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        Path("suite.yaml").write_text(
            "suite: left\nrubric: general\ndataset: rows.jsonl\n"
            "judge: {models: [openai/judge-2025-01-01], votes: 2}\n"
        )
        assert self.jurybox("run", "suite.yaml").code in {0, 1}
        self.digest = self.verified()
        with closing(sqlite3.connect("runs.db")) as store:
            ((run_id,),) = store.execute("select id from runs")
        self.file = Path(f"runs.db-shards/{run_id}/000000.db")
        self.file.parent.mkdir(parents=True)
        shutil.copy("runs.db", self.file)
        for table in EMPTIED:
            self.change("runs.db", f"delete from {table}")  # noqa: S608 - a name of ours
        self.change(
            "runs.db",
            "update runs set status = 'running', outcome = null, digest = null, finished_at = null",
            sealed=True,
        )
        judge.requests = 0

    def jurybox(self, *arguments: str) -> Done:
        return call(
            self._monkeypatch,
            *arguments,
            "--store",
            "runs.db",
            *(("--base-url", self._judge.url) if arguments[0] in {"run", "resume"} else ()),
            OPENAI_API_KEY="sk-test",
        )

    def verified(self) -> str:
        done = self.jurybox("verify", "last")
        assert done.code == 0, done.err
        return done.out.split()[-1]

    def change(self, file: str | Path, statement: str, *, sealed: bool = False) -> None:
        with closing(sqlite3.connect(file)) as store:
            store.execute(statement)
            store.row_factory = sqlite3.Row
            for row in store.execute("select * from runs").fetchall() if sealed else ():
                store.execute("update runs set seal = ?", (seal_of(RunRow(**dict(row))),))
            store.commit()


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch, judge: JudgeServer) -> Left:
    return Left(monkeypatch, judge)


def test_a_whole_shard_is_taken_over_without_a_call(left: Left, judge: JudgeServer) -> None:
    done = left.jurybox("resume", "last")
    assert done.code in {0, 1}, done.err
    assert left.verified() == left.digest
    assert judge.requests == 0
    assert not Path("runs.db-shards").exists()


def test_only_what_a_shard_lacks_is_asked_for(left: Left, judge: JudgeServer) -> None:
    left.change(left.file, "delete from facets where number >= 10")
    left.change(left.file, "delete from samples where number >= 10")
    left.change(left.file, "delete from exchanges where number = 11")
    assert left.jurybox("resume", "last").code in {0, 1}
    assert left.verified() == left.digest
    assert 0 < judge.requests <= 6


def test_a_reply_that_was_changed_is_asked_for_again(left: Left, judge: JudgeServer) -> None:
    left.change(left.file, "delete from facets where number = 3")
    left.change(left.file, "delete from samples where number = 3")
    left.change(left.file, "update exchanges set outcome = '{}' where number = 3 and position = 0")
    assert left.jurybox("resume", "last").code in {0, 1}
    assert left.verified() == left.digest
    assert judge.requests == 1


@pytest.mark.parametrize(
    "statement",
    [
        "update samples set result = replace(result, 'true', 'false') where number = 3",
        "update exchanges set outcome = replace(outcome, '5', '4') where number = 3",
        "delete from exchanges where number = 3 and position = 1",
    ],
)
def test_a_sample_that_was_changed_stops_the_run(
    left: Left, judge: JudgeServer, statement: str
) -> None:
    left.change(left.file, statement)
    done = left.jurybox("resume", "last")
    assert done.code == 3
    assert "000000.db: sample q3 was changed or is damaged; remove the file, then" in done.err
    assert judge.requests == 0


def test_a_run_is_deleted_with_its_shards(left: Left) -> None:
    assert left.jurybox("runs", "--delete", "last", "--yes").code == 0
    assert not left.file.exists()


def test_a_worker_leaves_what_was_stored_before_to_the_driver_to_count(left: Left) -> None:
    with closing(open_run_store(str(left.file))) as store:
        (row,) = store.runs()
        plan = read_plan(row.plan)
        job = Job(store, row, plan, plan.procedure(), part=range(SAMPLES))
        asyncio.run(job.work_on_part([], None, lambda _: None))  # type: ignore[arg-type]
        assert job.progress().done == 0


REFUSED = {
    "--engine ray needs Ray; install it with: pip install 'jurybox[ray]'": ("--engine", "ray"),
    "--address: the local engine has no address; add --engine ray": ("--address", "10.0.0.5:6379"),
    "--address: it is empty; give HOST:PORT": ("--engine", "ray", "--address", ""),
    "--max-cost: workers don't know each other's costs": ("--engine", "ray", "--max-cost", "5"),
    "--engine ray: batches need a single process": ("--engine", "ray", "--batch"),
    "--engine ray: workers can't search a file for replies": ("--engine", "ray", "--cache"),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_a_cluster_cannot_do_is_refused_before_a_call(
    monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    Path("rows.jsonl").write_text('{"task": "1 + 1?", "response": "2"}\n')
    Path("suite.yaml").write_text(
        "suite: small\nrubric: general\ndataset: rows.jsonl\n"
        "judge: {models: [openai/gpt-4.1-2025-04-14]}\n"
    )
    done = call(monkeypatch, "run", "suite.yaml", *REFUSED[said], OPENAI_API_KEY="sk-test")
    assert done.code == 2
    assert said in done.err
