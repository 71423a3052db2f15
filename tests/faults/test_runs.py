"""Runs in a world that changes under them: the dataset, the disk, the store, the judge."""

import json
import os
import resource
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commands import JURYBOX, call
from judge_server import JudgeServer, general_verdict

SAMPLES = 40


KEY = "sk-secret-key-1234567890"


class Done(msgspec.Struct):
    code: int
    err: str
    json: dict[str, Any]


def jurybox(*arguments: str) -> Done:
    """Call a command here, where it needs no start."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        done = call(monkeypatch, *arguments, "--json", OPENAI_API_KEY=KEY)
    return Done(done.code, done.err, json.loads(done.out) if done.out else {})


def started(*arguments: str, limit: int | None = None) -> Done:
    """Run a command as a process, with files no larger than the limit where there is one."""

    def bounded() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [JURYBOX, *arguments, "--json"],
        capture_output=True,
        check=False,
        preexec_fn=bounded,
        env={**os.environ, "OPENAI_API_KEY": KEY},
    )
    out = json.loads(done.stdout) if done.stdout else {}
    return Done(done.returncode, done.stderr.decode(), out)


def write(samples: int = SAMPLES, **changes: dict[str, object]) -> None:
    rows = {
        f"q{number}": {"id": f"q{number}", "task": f"Add {number}.", "response": f"It is {number}."}
        for number in range(samples)
    }
    for name, change in changes.items():
        rows[name] |= change
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    Path("suite.yaml").write_text(
        "suite: faults\nrubric: general\ndataset: rows.jsonl\n"
        "judge: {models: [openai/judge-2025-01-01], votes: 1}\nconcurrency: 4\n"
    )


@pytest.fixture
def stopped(judge: JudgeServer) -> str:
    """Return a run that stopped half-way, its endpoint refusing to go on."""
    write()
    judge.refuse_after = SAMPLES // 2
    done = jurybox("run", "suite.yaml", "--base-url", judge.url)
    judge.refuse_after = None
    assert done.code == 3, done.err
    assert "jurybox resume" in done.err
    assert 0 < done.json["summary"]["samples"] < SAMPLES
    return done.json["run_id"]


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(general_verdict).running() as server:
        yield server


def test_a_run_whose_key_is_refused_stops_and_goes_on(stopped: str, judge: JudgeServer) -> None:
    done = started("resume", stopped, "--base-url", judge.url)
    assert done.json["status"] == "finished"
    assert done.json["summary"]["samples"] == SAMPLES
    assert done.json["summary"]["evaluator_error_rate"] == 0
    # What was refused had to be asked again, and nothing else.
    assert sum(judge.asked.values()) == len(judge.asked)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"q0": {"task": "Subtract 0."}}, "line 1, sample `q0`, has a different `task`"),
        ({"q0": {"reference": "0"}}, "line 1, sample `q0`, has a different `reference`"),
        ({"q39": {"task": "Subtract 39."}}, "since the run began: in rows not judged so far"),
    ],
)
def test_a_dataset_that_changed_is_refused_with_what_changed(
    stopped: str, judge: JudgeServer, change: dict[str, dict[str, object]], said: str
) -> None:
    before = judge.requests
    write(**change)
    done = jurybox("resume", stopped, "--base-url", judge.url)
    assert done.code == 2
    assert "the dataset has changed since the run began" in done.err
    assert said in done.err
    assert judge.requests == before
    write()
    assert jurybox("resume", stopped, "--base-url", judge.url).json["status"] == "finished"


def test_a_dataset_that_grew_or_went_away_is_refused(stopped: str, judge: JudgeServer) -> None:
    write(SAMPLES + 1)
    done = jurybox("resume", stopped, "--base-url", judge.url)
    assert done.code == 2
    assert "41 rows instead of 40" in done.err
    Path("rows.jsonl").unlink()
    done = jurybox("resume", stopped, "--base-url", judge.url)
    assert done.code == 2
    assert "no such file" in done.err


def test_a_rubric_that_changed_is_not_looked_at_again(judge: JudgeServer) -> None:
    write()
    with pytest.MonkeyPatch.context() as monkeypatch:
        Path("mine.md").write_text(call(monkeypatch, "rubric", "show", "general").out)
    suite = Path("suite.yaml").read_text().replace("rubric: general", "rubric: mine.md")
    Path("suite.yaml").write_text(suite)
    judge.refuse_after = 10
    run = jurybox("run", "suite.yaml", "--base-url", judge.url).json["run_id"]
    judge.refuse_after = None
    Path("mine.md").write_text("no rubric any more")
    done = jurybox("resume", run, "--base-url", judge.url)
    assert done.json["status"] == "finished"
    assert jurybox("verify", run).code == 0


def test_a_full_disk_stops_the_run_and_loses_nothing(judge: JudgeServer) -> None:
    write()
    done = started("run", "suite.yaml", "--base-url", judge.url, limit=850_000)
    assert done.code == 3
    assert "disk" in done.err
    assert "Traceback" not in done.err
    run = jurybox("runs").json["runs"][0]["run_id"]
    kept = jurybox("show", run).json
    done = jurybox("resume", run, "--base-url", judge.url)
    assert done.json["status"] == "finished"
    assert jurybox("verify", run).code == 0
    assert kept["summary"]["samples"] < SAMPLES


@pytest.mark.parametrize("where", [0, 30_000])
def test_a_damaged_store_is_said_in_one_line(judge: JudgeServer, where: int) -> None:
    write(5)
    assert jurybox("run", "suite.yaml", "--base-url", judge.url).code == 1
    path = Path(".jurybox/jurybox.db")
    data = bytearray(path.read_bytes())
    data[where : where + 4096] = b"\x55" * 4096
    path.write_bytes(data)
    for command in (["show", "last"], ["verify", "last"], ["run", "suite.yaml"]):
        options = ["--base-url", judge.url] if command[0] == "run" else []
        done = jurybox(*command, *options)
        assert "Traceback" not in done.err
        assert "internal error" not in done.err
        assert done.code in {0, 2, 3}
    assert jurybox("verify", "last").code != 0


def test_no_key_gets_into_the_store(judge: JudgeServer) -> None:
    write(3)
    judge.echo = "sk-secret-key-1234567890"
    address = judge.url.replace("http://", "http://user:hunter22@")
    for url in (judge.url, address):
        jurybox("run", "suite.yaml", "--base-url", url)
    for path in Path(".jurybox").iterdir():
        assert b"sk-secret-key" not in path.read_bytes()
        assert b"hunter22" not in path.read_bytes()


def test_an_endpoint_that_starts_anew_is_waited_for(judge: JudgeServer) -> None:
    write(120)
    judge.latency = 0.05
    port = int(judge.url.split(":")[2].partition("/")[0])
    with subprocess.Popen(
        [JURYBOX, "run", "suite.yaml", "--base-url", judge.url, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        judge.wait_for(20)
        judge.leave()
        time.sleep(0.5)
        with JudgeServer(general_verdict, port=port).running():
            out, err = process.communicate(timeout=120)
    assert process.returncode in {0, 1}, err.decode()
    summary = json.loads(out)["summary"]
    assert summary["samples"] == 120
    assert summary["evaluator_error_rate"] == 0


def test_an_endpoint_that_stays_away_stops_the_run(
    judge: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave() -> None:
        judge.wait_for(20)
        judge.leave()

    monkeypatch.setenv("JURYBOX_PATIENCE", "2")
    write(120)
    judge.latency = 0.05
    leaving = threading.Thread(target=leave)
    leaving.start()
    done = jurybox("run", "suite.yaml", "--base-url", judge.url)
    leaving.join()
    assert done.code == 3
    assert "unreachable" in done.err
    summary = done.json["summary"]
    assert 0 < summary["samples"] < 120
    assert summary["evaluator_error_rate"] == 0


def test_replies_of_an_earlier_run_are_reused_only_when_asked_for(judge: JudgeServer) -> None:
    write(5)
    run = ("run", "suite.yaml", "--base-url", judge.url)
    first = jurybox(*run).json
    once = judge.requests
    assert jurybox(*run).json["digest"] == first["digest"]
    assert judge.requests == 2 * once
    cached = jurybox(*run, "--cache").json
    assert judge.requests == 2 * once
    assert cached["summary"] == first["summary"]
    assert cached["cost"]["models"][0]["cached"] == once
    assert cached["cost"]["dollars"] == 0
    assert jurybox("verify", cached["run_id"]).code == 0
    # Another repeat, another address or another message is another request.
    more = jurybox(*run, "--cache", "--repeats", "2").json
    assert judge.requests == 3 * once
    assert more["cost"]["models"][0]["cached"] == once
    with JudgeServer(general_verdict).running() as elsewhere:
        jurybox("run", "suite.yaml", "--base-url", elsewhere.url, "--cache")
        assert elsewhere.requests == once
