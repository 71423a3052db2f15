"""Ctrl-C once and twice: nothing finished is lost, and nothing is asked twice."""

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commands import JURYBOX

ROWS = 30
# A judge that answers its first questions at once, and then waits for a file to appear.
JUDGE = """
import json, pathlib, re, threading, time

QUICK = 3
lock, count = threading.Lock(), 0


def note(file, prompt):
    with open(file, "a") as lines:
        lines.write(re.search("- task: (.*)", prompt)[1] + "\\n")


def patient(prompt: str) -> str:
    global count
    with lock:
        count += 1
        waits = count > QUICK
        note("asked", prompt)
    while waits and not pathlib.Path("go").exists():
        time.sleep(0.01)
    with lock:
        note("answered", prompt)
    return json.dumps({"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."})
"""


@pytest.fixture(autouse=True)
def _suite(tmp_path: Path) -> None:
    (tmp_path / "judges.py").write_text(JUDGE)
    rows = [
        {
            "id": f"q{number}",
            "task": f"Task {number}",
            "response": "yes",
            "latency_e2e_ms": 10,
            "input_tokens": 1,
            "output_tokens": 1,
        }
        for number in range(ROWS)
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "suite.yaml").write_text(
        "suite: slow\nrubric: answer-quality\ndataset: rows.jsonl\n"
        "judge: {models: [python/judges:patient]}\nconcurrency: 2\n"
    )


class Started:
    """A command at work, with everything it says."""

    def __init__(self, *arguments: str, **how: Any) -> None:  # noqa: ANN401 - as Popen takes it
        self.process = subprocess.Popen(
            [JURYBOX, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **how,
        )
        self.said: list[str] = []

    def until_said(self, text: str) -> str:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if text in line:
                return line
        raise AssertionError(f"{text!r} was never said, but: {self.said}")

    def until_asked(self, count: int) -> None:
        while len(lines("asked")) < count:
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.01)

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, "".join(self.said) + err


@pytest.fixture
def start() -> Iterator[Callable[..., Started]]:
    begun: list[Started] = []

    def started(*arguments: str, **how: Any) -> Started:  # noqa: ANN401 - as Popen takes it
        begun.append(Started(*arguments, **how))
        return begun[-1]

    yield started
    for each in begun:
        each.process.kill()
        each.process.communicate()


def lines(file: str) -> list[str]:
    path = Path(file)
    return path.read_text().splitlines() if path.exists() else []


def data(out: str) -> dict[str, Any]:
    return msgspec.json.decode(out, type=dict[str, Any])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_the_first_signal_finishes_what_is_under_way(
    jurybox: Callable, start: Callable[..., Started], number: signal.Signals
) -> None:
    started = start("run", "suite.yaml", "--json")
    started.until_asked(5)
    started.process.send_signal(number)
    line = started.until_said("finishing")
    found = re.fullmatch(r"finishing (\d+) samples in progress; Ctrl-C again stops at once\n", line)
    assert found is not None
    Path("go").touch()
    code, out, err = started.end()
    run = data(out)
    assert (code, run["status"]) == (3, "stopped")
    assert 3 + int(found[1]) == run["summary"]["samples"] < ROWS
    assert err.splitlines()[-1] == f"continue with: jurybox resume {run['run_id']}"
    assert err.splitlines()[-2].startswith("stopped: ")
    assert run["release_ready"] is False
    assert run["cost"]["models"][0]["calls"] == run["summary"]["samples"]

    done = jurybox("resume", "last", "--json")
    assert (done.code, done.json["status"]) == (0, "finished")
    assert done.json["run_id"] == run["run_id"]
    assert done.json["summary"]["samples"] == ROWS
    assert Counter(lines("asked")) == Counter(f"Task {number}" for number in range(ROWS))
    assert jurybox("verify", "last").code == 0


def test_the_second_ctrl_c_stops_at_once_and_what_was_answered_is_kept(
    jurybox: Callable, start: Callable[..., Started]
) -> None:
    started = start("run", "suite.yaml", "--json", "--store", "mine.db")
    started.until_asked(5)
    started.process.send_signal(signal.SIGINT)
    started.until_said("finishing")
    started.process.send_signal(signal.SIGINT)
    # The file that the judge waits for never comes.
    code, out, err = started.end()
    run = data(out)
    assert (code, run["status"], run["summary"]["samples"]) == (3, "stopped", 3)
    last = err.splitlines()[-1]
    assert last == f"continue with: jurybox resume {run['run_id']} --store mine.db"

    Path("go").touch()
    done = jurybox("resume", run["run_id"], "--store", "mine.db", "--json", "--concurrency", "4")
    assert (done.code, done.json["summary"]["samples"]) == (0, ROWS)
    shown = jurybox("show", run["run_id"], "--store", "mine.db").out.splitlines()
    assert f"all metrics and settings: jurybox report {run['run_id']} -o - --store mine.db" in shown
    assert Counter(lines("answered")) == Counter(f"Task {number}" for number in range(ROWS))
    again = {task for task, count in Counter(lines("asked")).items() if count > 1}
    assert len(again) == 2
    assert jurybox("verify", "last", "--store", "mine.db").code == 0


def test_a_stopped_run_can_be_looked_at_and_is_not_decided_on(
    jurybox: Callable, start: Callable[..., Started]
) -> None:
    started = start("run", "suite.yaml")
    started.until_asked(5)
    working = jurybox("runs", "--json").json["runs"][0]
    assert (working["status"], working["planned"]) == ("running", ROWS)
    refused = jurybox("resume", "last")
    assert refused.code == 2
    assert "another process is working on the run" in refused.err

    started.process.send_signal(signal.SIGINT)
    started.until_said("finishing")
    started.process.send_signal(signal.SIGINT)
    code, out, _ = started.end()
    assert code == 3
    assert f"not finished: 3 of {ROWS} samples" in out
    assert "Not finished: The run has to be finished before anything is decided" in out

    assert jurybox("runs", "--json").json["runs"][0]["status"] == "stopped"
    assert f"3 of {ROWS}" in jurybox("runs").out
    assert jurybox("show", "last", "--json").json["status"] == "stopped"
    gate = jurybox("gate", "last")
    assert (gate.code, gate.out) == (3, "")
    assert "the run isn't finished" in gate.err
    assert gate.err.count("\n") == 1
    verified = jurybox("verify", "last")
    assert verified.code == 0
    assert verified.out.startswith("verified so far: 3 samples, 3 exchanges; the run isn't")


def test_whoever_has_ctrl_c_ignored_is_not_stopped_by_it(start: Callable[..., Started]) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    started = start("run", "suite.yaml", "--json", preexec_fn=ignore)
    started.until_asked(5)
    started.process.send_signal(signal.SIGINT)
    Path("go").touch()
    code, out, err = started.end()
    assert (code, data(out)["summary"]["samples"]) == (0, ROWS)
    assert "finishing" not in err


def test_on_a_terminal_the_line_stands_apart_from_the_bar() -> None:
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    shown = b""
    with subprocess.Popen(
        [JURYBOX, "run", "suite.yaml"], stdout=slave, stderr=slave, env=env
    ) as it:
        os.close(slave)
        asked = False
        while b"in progress" not in shown and it.poll() is None:
            shown += os.read(master, 65536)
            if not asked and len(lines("asked")) == 5:
                asked = True
                it.send_signal(signal.SIGINT)
        it.kill()
    os.close(master)
    # The bar is wiped out first, and drawn again below.
    assert b"\x1b[2Kfinishing " in shown
