"""A run whose process is killed again and again ends as if nothing had happened (A13).

Killed outright, at ten random moments: before the store is there, while samples are under way,
while rows are being written. Nothing that was stored is asked for again.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from commands import JURYBOX
from judge_server import JudgeServer, general_verdict
from ready import Ready, ready

SAMPLES = 200
KILLS = 10
CONCURRENCY = 6
WHOLE_REQUESTS = (
    "select coalesce(replace(text, char(10), material), material) from exchanges"
    " left join frames on frames.run_id = exchanges.run_id and frames.sha256 = frame"
)


def write_suite(place: Path) -> Path:
    rows = [
        {"id": f"q{number}", "task": f"What is {number} + 1?", "response": f"It is {number + 1}."}
        for number in range(SAMPLES)
    ]
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    suite = place / "suite.yaml"
    suite.write_text(
        "suite: killed\nrubric: general\ndataset: rows.jsonl\n"
        f"judge: {{models: [openai/judge-2025-01-01], votes: 3}}\nconcurrency: {CONCURRENCY}\n"
    )
    return suite


def start(here: Ready, *arguments: str, url: str) -> None:
    environment = {**os.environ, "OPENAI_API_KEY": "sk-test"}
    here.start([*arguments, "--base-url", url, "--json"], environment)


def finish(here: Ready, *arguments: str, url: str) -> dict[str, object]:
    start(here, *arguments, url=url)
    assert here.wait() in {0, 1}, here.err
    return json.loads(here.out)


class Kept:
    """What the store has after a kill, read without our own code."""

    def __init__(self, path: Path) -> None:
        self.run_id: str | None = None
        self.samples: set[str] = set()
        self.requests: set[str] = set()
        if not path.exists():
            return
        with sqlite3.connect(path) as connection:
            tables = {name for (name,) in connection.execute("select name from sqlite_master")}
            if "runs" in tables:
                self.run_id = next(
                    (found for (found,) in connection.execute("select id from runs")), None
                )
                rows = connection.execute("select sample_id, repeat from samples").fetchall()
                assert len(rows) == len(set(rows))
                self.samples = {name for name, _ in rows}
            if "frames" in tables:
                stored = connection.execute(WHOLE_REQUESTS).fetchall()
                self.requests = {request for (request,) in stored}
        connection.close()

    def paid(self) -> set[tuple[str, int]]:
        """Return the questions whose answers are stored: the words, and the seed of the vote."""
        return {_question(json.loads(request)) for request in self.requests}


def _question(request: dict[str, object]) -> tuple[str, int]:
    seed = request["generation"]["seed"] if "generation" in request else request["seed"]  # type: ignore[index]
    return json.dumps(request["messages"]), seed  # type: ignore[return-value]


def asked_so_far(server: JudgeServer) -> dict[tuple[str, int], int]:
    return {_question(json.loads(body)): count for body, count in server.asked.items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    place = tmp_path_factory.mktemp("undisturbed")
    suite = write_suite(place)
    with JudgeServer(general_verdict).running() as server, ready(place) as here:
        store = ("--store", str(place / "store.db"))
        done = finish(here, "run", str(suite), *store, url=server.url)
        assert server.requests == sum(server.asked.values()) == len(server.asked)
    return done


def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, undisturbed: dict[str, object]
) -> None:
    moments = random.Random(0)  # noqa: S311 - moments to kill at
    suite = write_suite(tmp_path)
    path = tmp_path / "store.db"
    store = ("--store", str(path))
    with JudgeServer(general_verdict, latency=0.02).running() as server, ready(tmp_path) as here:
        kept = Kept(path)
        for _ in range(KILLS):
            before, paid = asked_so_far(server), kept.paid()
            goes_on = ("run", str(suite)) if kept.run_id is None else ("resume", kept.run_id)
            start(here, *goes_on, *store, url=server.url)
            kill_at_some_moment(here, server, moments)
            # There are so many samples that no run is finished before its last kill.
            assert here.code == -signal.SIGKILL
            kept = Kept(path)
            after = asked_so_far(server)
            assert all(after[question] == before[question] for question in paid)
            asked = {each for each, count in after.items() if count > before.get(each, 0)}
            # What isn't stored and has to be asked again was in flight.
            assert len(asked - kept.paid()) <= CONCURRENCY
        before, paid = asked_so_far(server), kept.paid()
        goes_on = ("run", str(suite)) if kept.run_id is None else ("resume", kept.run_id)
        done = finish(here, *goes_on, *store, url=server.url)
        after = asked_so_far(server)
        assert all(after[question] == before[question] for question in paid)
    whole = Kept(path)
    assert whole.samples == {f"q{number}" for number in range(SAMPLES)}
    assert done["digest"] == undisturbed["digest"]
    for part in ("summary", "gates", "review", "status"):
        assert done[part] == undisturbed[part]
    audit = subprocess.run([JURYBOX, "verify", str(done["run_id"]), *store], check=False)
    assert audit.returncode == 0


def kill_at_some_moment(here: Ready, server: JudgeServer, moments: random.Random) -> None:
    """Kill after some time, or after some requests and a moment more."""
    begun = server.requests
    if moments.random() < 0.3:
        time.sleep(moments.uniform(0, 0.2))
    else:
        wanted = begun + moments.randrange(1, 16)
        deadline = time.monotonic() + 30
        while server.requests < wanted and here.is_running():
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.08))
    here.kill()
    # What was sent before still arrives, and belongs to the run that was killed.
    seen = -1
    while seen != server.requests:
        seen = server.requests
        time.sleep(0.05)
