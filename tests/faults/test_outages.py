"""Runs whose endpoint fails for a while, or fails one request only: nothing is lost for good."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import call
from judge_server import JudgeServer, general_verdict

pytestmark = pytest.mark.usefixtures("quick_retries")
SAMPLES = 60


@pytest.fixture
def judge() -> Iterator[JudgeServer]:
    with JudgeServer(general_verdict).running() as server:
        yield server


@pytest.fixture(autouse=True)
def suite() -> None:
    rows = [
        {"id": f"q{number}", "task": f"Add {number}.", "response": f"It is {number}."}
        for number in range(SAMPLES)
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("suite.yaml").write_text(
        "suite: outages\nrubric: general\ndataset: rows.jsonl\n"
        "judge: {models: [openai/judge-2025-01-01], votes: 3}\nconcurrency: 8\n"
    )


def jurybox(*arguments: str, code: int | None = None, **environment: str) -> dict[str, object]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        done = call(monkeypatch, *arguments, "--json", OPENAI_API_KEY="key", **environment)
    assert code is None or done.code == code, done.err
    return json.loads(done.out) if done.out else {"err": done.err}


def unscored(run: dict[str, object]) -> float:
    summary = run["summary"]
    assert isinstance(summary, dict)
    return summary["unscored_rate"]


def lost_votes(run_id: object) -> int:
    """Count the votes of a run that nothing came of."""
    jurybox("export", str(run_id), "-o", "rows.out.jsonl", "--raw")
    rows = map(json.loads, Path("rows.out.jsonl").read_text().splitlines())
    return sum("failure" in str(each) for row in rows for each in row["exchanges"])


@pytest.mark.parametrize("status", [429, 500, 502, 307])
def test_a_short_storm_loses_no_vote(judge: JudgeServer, status: int) -> None:
    judge.faults = dict.fromkeys(range(40, 100), status)
    run = jurybox("run", "suite.yaml", "--base-url", judge.url)
    assert run["status"] == "finished"
    assert lost_votes(run["run_id"]) == 0
    jurybox("verify", str(run["run_id"]), code=0)


def test_when_patience_ends_the_run_stops_and_can_be_resumed(judge: JudgeServer) -> None:
    judge.faults = dict.fromkeys(range(40, 10**6), 503)
    options = ("--base-url", judge.url)
    run = jurybox("run", "suite.yaml", *options, code=3, JURYBOX_PATIENCE="1")
    assert run["status"] == "stopped"
    assert unscored(run) == 0
    judge.faults = {}
    run = jurybox("resume", str(run["run_id"]), *options)
    assert (run["status"], lost_votes(run["run_id"])) == ("finished", 0)
    jurybox("verify", str(run["run_id"]), code=0)


def test_a_new_address_that_no_model_would_be_asked_at_is_an_error(judge: JudgeServer) -> None:
    suite, spec = Path("suite.yaml"), f"{{model: openai/judge-2025-01-01, base_url: '{judge.url}'}}"
    suite.write_text(suite.read_text().replace("[openai/judge-2025-01-01]", f"[{spec}]"))
    judge.faults = dict.fromkeys(range(40, 10**6), 503)
    run = jurybox("run", "suite.yaml", code=3, JURYBOX_PATIENCE="0.3")
    refused = jurybox("resume", str(run["run_id"]), "--base-url", "http://127.0.0.1:9/v1", code=2)
    assert "--base-url: every model of the run has its own address" in str(refused["err"])


def test_the_reason_for_a_stop_is_one_line(judge: JudgeServer) -> None:
    judge.faults = dict.fromkeys(range(40, 10**6), 503)
    with pytest.MonkeyPatch.context() as monkeypatch:
        options = ("--base-url", judge.url)
        done = call(monkeypatch, "run", "suite.yaml", *options, JURYBOX_PATIENCE="1")
    assert done.code == 3
    (line,) = [line for line in done.err.splitlines() if line.startswith("stopped: ")]
    assert "HTTP 503" in line
    assert "no answer for 1 s" in line


def test_a_last_sample_that_always_fails_fails_alone(judge: JudgeServer) -> None:
    """The endpoint answers all others, so the run ends, and says of this one why it failed."""
    judge.faults = dict.fromkeys(range(40, 10**6), 503)
    options = ("--base-url", judge.url)
    run = jurybox("run", "suite.yaml", *options, code=3, JURYBOX_PATIENCE="0.3")
    judge.faults, judge.poison = {}, "Add 59."
    run = jurybox("resume", str(run["run_id"]), *options, JURYBOX_PATIENCE="0.3")
    assert run["status"] == "finished"
    assert lost_votes(run["run_id"]) == 3
    assert unscored(run) == pytest.approx(1 / SAMPLES)
    rows = map(json.loads, Path("rows.out.jsonl").read_text().splitlines())
    (failed,) = [row for row in rows if row["evaluator_error"]]
    assert "HTTP 500" in str(failed)
    assert "after 12 attempts, while another request was answered" in str(failed)
    assert "is the server running" not in str(failed)
    jurybox("verify", str(run["run_id"]), code=0)


def test_a_run_of_nothing_but_failing_samples_ends(judge: JudgeServer) -> None:
    judge.poison = "Add "
    run = jurybox(
        "run", "suite.yaml", "--base-url", judge.url, "--limit", "1", code=3, JURYBOX_PATIENCE="0.3"
    )
    assert run["status"] == "finished"
    assert unscored(run) == 1


def test_what_failed_in_a_finished_run_is_asked_again_and_nothing_else(judge: JudgeServer) -> None:
    judge.poison = "Add 7."
    options = ("--base-url", judge.url)
    run = jurybox("run", "suite.yaml", *options, JURYBOX_PATIENCE="0.3")
    run_id = str(run["run_id"])
    assert (run["status"], lost_votes(run_id)) == ("finished", 3)
    jurybox("verify", run_id, code=0)
    refused = jurybox("resume", run_id, *options, code=2)
    assert "--retry-failed" in str(refused["err"])
    options = (*options, "--retry-failed")
    # It fails again: alone, its failure is recorded again; in an outage, the run stops.
    jurybox("resume", run_id, *options, JURYBOX_PATIENCE="0.3")
    judge.faults = dict.fromkeys(range(judge.calls, 10**6), 503)
    with pytest.MonkeyPatch.context() as monkeypatch:
        environment = {"OPENAI_API_KEY": "key", "JURYBOX_PATIENCE": "0.3"}
        stopped = call(monkeypatch, "resume", run_id, *options, **environment)
    assert stopped.code == 3
    assert f"continue with: jurybox resume {run_id}" in stopped.err
    still = jurybox("show", run_id)
    assert (still["status"], still["summary"]["samples"]) == ("stopped", SAMPLES - 1)
    jurybox("verify", run_id, code=0)
    judge.poison, judge.faults = "", {}
    before = judge.requests
    options = options[:2]
    again = jurybox("resume", run_id, *options)
    assert again.get("status") == "finished", again
    assert again["digest"] != run["digest"]
    assert unscored(again) == 0
    # Three votes, and what of them had to be asked again because a reply was invalid.
    assert 3 <= judge.requests - before <= 9
    assert {count for body, count in judge.asked.items() if "word: ok" not in body} == {1}
    jurybox("verify", run_id, code=0)
    nothing = jurybox("resume", run_id, *options, "--retry-failed", code=2)
    assert "it has no failed request to retry" in str(nothing["err"])
