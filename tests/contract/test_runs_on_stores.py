"""Whole runs, on either database: run, stop, resume, verify, re-score (A13)."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from commands import JURYBOX, call

JUDGE = """
import pathlib
import time

def strict(prompt):
    with open("asked.txt", "a") as file:
        file.write("asked\\n")
    while pathlib.Path("hold").exists():
        time.sleep(0.01)
    good = "candidate_answer: right" in prompt
    return '{"accuracy_score": %d, "faithfulness_score": 2, "rationale": "so"}' % (2 if good else 0)
"""


@pytest.fixture
def suite(tmp_path: Path) -> str:
    rows = [
        {
            "id": f"q{number}",
            "task": f"Task {number}",
            "reference": "right",
            "response": "right" if number % 3 else "wrong",
            "latency_e2e_ms": 100,
            "input_tokens": 10,
            "output_tokens": 1,
        }
        for number in range(9)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "suite.yaml").write_text(
        "suite: contract\nrubric: answer-quality\ndataset: rows.jsonl\n"
        "judge: {models: [python/judge:strict]}\nconcurrency: 2\n"
    )
    return "suite.yaml"


def jurybox(*arguments: str, url: str) -> dict[str, Any]:
    """Call a command here, where it needs no start."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        done = call(monkeypatch, *arguments, "--json", JURYBOX_STORE=url)
    assert done.code in {0, 1}, done.err
    return done.json


def test_a_run_from_its_beginning_to_its_audit(suite: str, url: str) -> None:
    done = jurybox("run", suite, url=url)
    assert done["status"] == "finished"
    assert done["summary"]["accuracy_mean"] == pytest.approx(4 / 3)
    assert jurybox("show", "last", url=url) == done
    audit = jurybox("verify", "last", url=url)
    assert audit["digest"] == done["digest"]
    again = jurybox("rescore", "last", "--rubric", "answer-quality", url=url)
    assert again["summary"] == done["summary"]
    assert jurybox("verify", again["run_id"], url=url)["run_id"] == again["run_id"]
    # The store knows it only under its name, never under its address.
    assert "password" not in json.dumps(done)


def test_a_stopped_run_goes_on_and_nothing_is_asked_twice(suite: str, url: str) -> None:
    whole = jurybox("run", suite, url=url)
    Path("asked.txt").unlink()
    Path("hold").touch()
    environment = {**os.environ, "JURYBOX_STORE": url}
    with subprocess.Popen(
        [JURYBOX, "run", suite], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 60
        while not Path("asked.txt").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.terminate()
        time.sleep(0.2)
        Path("hold").unlink()
        assert process.stderr is not None
        words = process.stderr.read().decode()
    assert process.returncode == 3
    assert "jurybox resume" in words
    stopped = jurybox("show", "last", url=url)
    assert stopped["status"] == "stopped"
    assert 0 < stopped["summary"]["samples"] < 9
    done = jurybox("resume", "last", url=url)
    assert done["status"] == "finished"
    assert done["digest"] == whole["digest"]
    assert done["summary"] == whole["summary"]
    assert len(Path("asked.txt").read_text().splitlines()) == 9


def test_two_processes_may_write_runs_to_one_store_at_once(suite: str, url: str) -> None:
    environment = {**os.environ, "JURYBOX_STORE": url}
    command = [JURYBOX, "run", suite, "--json"]
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in both]
    assert all(process.returncode == 1 for process in both), outputs
    first, second = (json.loads(out) for out, _ in outputs)
    assert first["run_id"] != second["run_id"]
    assert first["digest"] == second["digest"]
    for run in (first, second):
        assert jurybox("verify", run["run_id"], url=url)["run_id"] == run["run_id"]
