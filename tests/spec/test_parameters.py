"""A11 and E10: a run records the parameters that were really sent, and how long a user waited."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Done, call
from tests.faults.judge_server import JudgeServer, answer_or_praise

Jurybox = Callable[..., Done]


class PickyServer(JudgeServer):
    """Refuses parameters by name, and fails the first attempts at every answer."""

    refused: tuple[str, ...] = ()
    fails = 0

    def answer(self, body: bytes) -> tuple[int, bytes]:
        request = json.loads(body)
        for name in self.refused:
            if name in request:
                error = {"message": f"Unsupported parameter: {name}", "param": name}
                return 400, json.dumps({"error": error}).encode()
        if self.fails:
            self.fails -= 1
            time.sleep(0.1)
            return 500, b'{"error": {"message": "try again"}}'
        return super().answer(body)


@pytest.fixture
def server() -> Iterator[PickyServer]:
    with PickyServer(answer_or_praise).running() as running:
        assert isinstance(running, PickyServer)
        yield running


@pytest.fixture
def jurybox(server: PickyServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jurybox:
    rows = [{"id": f"q{n}", "task": f"Task {n}"} for n in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "suite.yaml").write_text(
        "suite: s\nrubric: general\ndataset: rows.jsonl\ntarget: {model: openai/bot@1}\n"
        "judge: {models: [openai/judge@1], votes: 3}\n"
    )

    def run(*arguments: str) -> Done:
        return call(monkeypatch, *arguments, OPENAI_BASE_URL=server.url)

    return run


def exported(jurybox: Jurybox) -> list[dict[str, Any]]:
    lines = jurybox("export", "last", "-o", "-").out.splitlines()
    return [json.loads(line) for line in lines]


def test_the_vote_temperature_and_the_seeds_are_recorded(jurybox: Jurybox) -> None:
    data = json.loads(jurybox("run", "suite.yaml", "--json").out)
    params = data["metadata"]["generation_params"]
    usual = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 1024, "seed": 42}
    nothing = {"refused": {}, "not_supported": {}}
    assert params["target"] == {**usual, "overrides": {}, **nothing}
    assert params["judge"] == {
        **usual,
        "temperature": 0.7,
        "seed": [42, 43, 44],
        "overrides": {"temperature": 0.7},
        **nothing,
    }
    for place in (data, data["metadata"]):
        assert (place["method"], place["votes_independent"]) == ("rubric", True)
    for row in exported(jurybox):
        assert (row["method"], row["votes_independent"]) == ("rubric", True)
        assert row["generation_params"] == params
    assert json.loads(jurybox("show", "last", "--json").out)["metadata"] == data["metadata"]


def test_a_refused_parameter_is_recorded_as_refused(server: PickyServer, jurybox: Jurybox) -> None:
    server.refused = ("seed", "temperature")
    data = json.loads(jurybox("run", "suite.yaml", "--json").out)
    params = data["metadata"]["generation_params"]
    assert (params["judge"]["seed"], params["judge"]["temperature"]) == (None, None)
    assert params["judge"]["refused"] == {key: {"openai/judge@1": 9} for key in server.refused}
    assert params["target"]["refused"] == {key: {"openai/bot@1": 3} for key in server.refused}
    assert params["judge"]["top_p"] == 1.0
    assert params["judge"]["overrides"] == {}
    for row in exported(jurybox):
        assert row["generation_params"]["judge"]["overrides"] == {}
    evaluated = ("evaluate", "--rubric", "general", "--task", "T", "--response", "R")
    report = json.loads(jurybox(*evaluated, "--judge", "openai/judge@1", "--json").out)
    assert report["overrides"] == {}
    # Three times the same question with the same parameters is one vote.
    assert data["votes_independent"] is False
    assert any("not independent" in note for note in data["notes"])
    assert [row["votes_independent"] for row in exported(jurybox)] == [False] * 3
    assert jurybox("verify", "last").code == 0


def test_latency_runs_from_the_first_attempt_to_the_last_byte(
    server: PickyServer, jurybox: Jurybox
) -> None:
    server.fails = 2
    server.latency = 0.05
    jurybox("run", "suite.yaml", "--concurrency", "1", "--limit", "1")
    (row,) = exported(jurybox)
    assert row["attempts"] == 3
    assert row["latency_e2e_ms"] > 200 + row["latency_attempt_ms"]
    assert row["latency_attempt_ms"] >= 50
    assert "3 attempts" in jurybox("show", "last", "--sample", "q0").out
    assert jurybox("verify", "last").code == 0


def test_a_refused_parameter_costs_the_user_an_attempt(
    server: PickyServer, jurybox: Jurybox
) -> None:
    server.refused = ("seed",)
    jurybox("run", "suite.yaml", "--concurrency", "1", "--limit", "1")
    (row,) = exported(jurybox)
    assert row["attempts"] == 2
    assert row["latency_e2e_ms"] > row["latency_attempt_ms"]


def test_what_cannot_be_known_is_null_with_the_reason(jurybox: Jurybox) -> None:
    metadata = json.loads(jurybox("run", "suite.yaml", "--json").out)["metadata"]
    assert metadata["code_version"] is None
    assert metadata["environment"]["region"] is None
    assert metadata["not_known"] == {
        "prompt_template_id": "the task is sent without a prompt template",
        "prompt_template_version_or_hash": "the task is sent without a prompt template",
        "code_version": "the suite's folder is not in a git repository with a commit",
        "environment.region": "JURYBOX_REGION is not set",
    }
