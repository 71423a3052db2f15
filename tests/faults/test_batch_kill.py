"""A run that waits for batches is killed or interrupted; what was submitted is paid for once."""

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from batch_server import BatchServer
from commands import JURYBOX, call
from judge_server import general_verdict
from jurybox.models.batched import Pace

SAMPLES = 12
OPENAI, ANTHROPIC = "openai/judge-2025-01-01", "anthropic/judge-2025-01-01"
CREATE = {OPENAI: "POST /v1/batches", ANTHROPIC: "POST /v1/messages/batches"}


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer(general_verdict).running() as server:
        yield server


def write(model: str) -> None:
    rows = [
        {"id": f"q{number}", "task": f"Add {number}.", "response": f"It is {number}."}
        for number in range(SAMPLES)
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("suite.yaml").write_text(
        "suite: batches\nrubric: general\ndataset: rows.jsonl\n"
        f"judge: {{models: [{model}], votes: 3}}\n"
    )


def settings(server: BatchServer) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "sk-test-key-123456",
        "OPENAI_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "sk-test-key-123456",
        "ANTHROPIC_BASE_URL": server.address,
    }


def start(server: BatchServer, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [JURYBOX, *arguments, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **settings(server)},
    )


def complete(server: BatchServer, *arguments: str) -> object:
    """Have a command end undisturbed, here, where it needs no start; return its digest."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("jurybox.models.batched.Pace", lambda: Pace(idle=0.05, first=0.01))
        done = call(monkeypatch, *arguments, "--json", **settings(server))
    assert done.code in {0, 1}, done.err
    return done.json["digest"]


def finish(process: "subprocess.Popen[bytes]") -> tuple[int, dict[str, object], str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, json.loads(out) if out else {}, err.decode()


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def wait_for_state(state: str) -> None:
    deadline = time.monotonic() + 60
    while state not in states():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def states() -> list[str]:
    if not Path(".jurybox/jurybox.db").exists():
        return []
    with closing(sqlite3.connect("file:.jurybox/jurybox.db?mode=ro", uri=True)) as connection:
        try:
            return [state for (state,) in connection.execute("select state from batches")]
        except sqlite3.OperationalError:
            return []  # there are no tables yet


def undisturbed(server: BatchServer) -> object:
    """Return the digest of a direct run."""
    return complete(server, "run", "suite.yaml", "--store", "direct.db")


def end_well(server: BatchServer, digest: object) -> None:
    """Go on with the run, and see that it ends as a direct one with nothing submitted twice."""
    server.hold = False
    assert complete(server, "resume", "last") == digest
    assert server.batched == server.direct
    assert complete(server, "verify", "last") == digest


def test_a_run_that_is_killed_while_it_waits_reads_its_batch_when_it_goes_on(
    server: BatchServer,
) -> None:
    write(OPENAI)
    digest = undisturbed(server)
    server.hold = True
    process = start(server, "run", "suite.yaml", "--batch")
    wait_for_state("submitted")
    for _ in range(2):
        kill(process)
        process = start(server, "resume", "last")
        time.sleep(0.5)
    kill(process)
    assert len(server.batches) == 1
    end_well(server, digest)
    assert set(states()) == {"read"}


@pytest.mark.parametrize("model", [OPENAI, ANTHROPIC])
def test_a_run_that_is_killed_while_it_submits_finds_its_batch_when_it_goes_on(
    server: BatchServer, model: str
) -> None:
    """The provider has the batch; nobody here ever heard its name."""
    write(model)
    digest = undisturbed(server)
    server.hold = True
    server.silent_on = CREATE[model]
    process = start(server, "run", "suite.yaml", "--batch")
    server.wait_for(1)
    kill(process)
    server.speak.set()
    assert states() == ["submitting"]
    end_well(server, digest)


def test_a_run_that_is_killed_before_the_provider_heard_of_it_submits_it_then(
    server: BatchServer,
) -> None:
    write(ANTHROPIC)
    digest = undisturbed(server)
    server.refuse = lambda method, path: 503 if f"{method} {path}" == CREATE[ANTHROPIC] else None
    process = start(server, "run", "suite.yaml", "--batch")
    server.wait_for_call(CREATE[ANTHROPIC])
    kill(process)
    assert states() == ["submitting"]
    server.refuse = lambda _method, _path: None
    end_well(server, digest)
    assert states()[0] == "gone"


def test_a_run_that_is_killed_while_it_reads_pays_for_nothing_twice(server: BatchServer) -> None:
    write(OPENAI)
    digest = undisturbed(server)
    process = start(server, "run", "suite.yaml", "--batch")
    # The answers to the first batch are there, and those to be asked again are in the second.
    server.wait_for(1)
    server.wait_for_call("GET /v1/files/ID/content")
    kill(process)
    end_well(server, digest)


def test_ctrl_c_stops_waiting_and_names_what_goes_on(server: BatchServer) -> None:
    write(OPENAI)
    digest = undisturbed(server)
    server.hold = True
    process = start(server, "run", "suite.yaml", "--batch")
    wait_for_state("submitted")
    process.send_signal(signal.SIGINT)
    code, done, err = finish(process)
    assert code == 3
    assert done["status"] == "stopped"
    assert "no longer waiting for batches" in err
    assert (
        "stopped: interrupted; batch batch-0 (36) continues at the provider:"
        " resuming reads the results\n" in err
    )
    assert f"continue with: jurybox resume {done['run_id']}\n" in err
    assert not any("cancel" in call for call in server.calls)
    end_well(server, digest)


def test_ctrl_c_lets_a_batch_that_is_being_submitted_be_noted(server: BatchServer) -> None:
    write(OPENAI)
    digest = undisturbed(server)
    server.silent_on = CREATE[OPENAI]
    process = start(server, "run", "suite.yaml", "--batch")
    server.wait_for(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    server.speak.set()
    code, _, err = finish(process)
    assert code == 3
    assert "batch batch-0 (36) continues" in err
    assert states() == ["submitted"]
    end_well(server, digest)


def test_a_second_ctrl_c_leaves_at_once(server: BatchServer) -> None:
    write(OPENAI)
    digest = undisturbed(server)
    server.silent_on = CREATE[OPENAI]
    process = start(server, "run", "suite.yaml", "--batch")
    server.wait_for(1)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    code, _, err = finish(process)
    server.speak.set()
    assert code == 3
    assert "batch one being submitted (36)" in err
    assert states() == ["submitting"]
    end_well(server, digest)
