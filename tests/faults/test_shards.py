"""What a cluster can't do is refused before a call, and a shard has one worker."""

import asyncio
import sys
from contextlib import closing
from pathlib import Path

import pytest

from commands import call
from jurybox.app.job import Job
from jurybox.engine.plan import read_plan
from jurybox.errors import IncompleteError
from jurybox.integrations.ray_engine import Host
from jurybox.wiring import open_run_store

REFUSED = {
    "--engine ray needs Ray; install it with: pip install 'jurybox[ray]'": ("--engine", "ray"),
    "--address: the local engine has no address; add --engine ray": ("--address", "10.0.0.5:6379"),
    "--address: it is empty; give HOST:PORT": ("--engine", "ray", "--address", ""),
    "--engine: the run has a maximum cost": ("--engine", "ray", "--max-cost", "5"),
    "--engine ray: batches need a single process": ("--engine", "ray", "--batch"),
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


def test_a_worker_leaves_what_was_stored_before_to_the_driver_to_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call(monkeypatch, "run", "companion-scenarios", "--responses", "good")
    with closing(open_run_store()) as store:
        (row,) = store.runs()
        plan = read_plan(row.plan)
        job = Job(store, row, plan, part=range(plan.samples))
        asyncio.run(job.work_on_part([], None, lambda _: None))  # type: ignore[arg-type]
        assert job.progress().done == 0


def test_a_worker_that_only_seemed_to_be_lost_writes_nothing_more() -> None:
    written: list[int] = []
    host = Host(lambda: written)
    host.take("3", "first")
    host.call("3", "first", "append", (1,))
    host.take("3", "second")
    with pytest.raises(IncompleteError, match="another worker has part 3"):
        host.call("3", "first", "append", (2,))
    host.call("3", "second", "append", (3,))
    assert written == [1, 3]
