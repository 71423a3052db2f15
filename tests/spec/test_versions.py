"""A10: the version that a provider reports is checked, for judges and for systems under test."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.commands import Done, call
from tests.faults.judge_server import JudgeServer, answer_or_praise

from jurybox.judging.model_versions import check_version

Jurybox = Callable[..., Done]
ROWS = [{"id": f"q{n}", "task": f"Task {n}", "response": f"Answer {n}"} for n in range(6)]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(answer_or_praise).running() as running:
        yield running


@pytest.fixture
def jurybox(server: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jurybox:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "suite.yaml").write_text("suite: s\nrubric: general\ndataset: rows.jsonl\n")

    def run(*arguments: str) -> Done:
        return call(monkeypatch, *arguments, OPENAI_BASE_URL=server.url)

    return run


@pytest.mark.parametrize(
    ("model", "reported", "found"),
    [
        ("openai/gpt-4o@2024-08-06", "gpt-4o-2024-08-06", "verified"),
        ("openai/gpt-4o@2024-08-06", "openai/gpt-4o-2024-08-06", "verified"),
        ("openai/gpt-4o@2024-08-06", "gpt-4o-2024-11-20", "contradicted"),
        ("openai/gpt-4o@2024-08-06", "gpt-4o", "unverified"),
        ("openai/gpt-4o@2024-08-06", None, "unverified"),
        ("openai/gpt-4o", "gpt-4o-2024-11-20", None),
        ("openai/gpt-4.1-2025-04-14", "gpt-4.1-2025-04-14", "verified"),
        ("openai/gpt-4.1-2025-04-14", "gpt-4.1-2025-05-01", "contradicted"),
        ("openai/gpt-4-1106-preview", "gpt-4-0125-preview", "contradicted"),
        ("anthropic/claude-sonnet-4-5@2025-09-29", "claude-sonnet-4-5-20250929", "verified"),
        ("anthropic/claude-sonnet-4-5-20250929", "claude-sonnet-4-5-20251101", "contradicted"),
        ("openai/gemini-1.5-pro@002", "models/gemini-1.5-pro-002", "verified"),
        ("openai/gemini-1.5-pro@002", "models/gemini-1.5-pro-001", "contradicted"),
        ("openai/gpt-4@0613", "gpt-4-2023-06-13", "verified"),
        ("openai/m@sha256:0123456789ab", "m@sha256:0123456789abcdef", "verified"),
        ("openai/m@sha256:0123456789ab", "m@sha256:ffff456789abcdef", "contradicted"),
        # A name that merely differs, a label of one's own, a folder's date: no contradiction.
        (
            "openai/anthropic.claude-3-5-sonnet-20241022-v2:0",
            "claude-3-5-sonnet-20241022",
            "verified",
        ),
        ("anthropic/claude-3-5-sonnet@20241022", "claude-3-5-haiku-20241022", "contradicted"),
        # Another model of the same date; what a gateway adds before or behind is none.
        ("openai/gpt-4o-2024-08-06", "gpt-4o-mini-2024-08-06", "contradicted"),
        ("openai/gpt-4o@2024-08-06", "gpt-4o-mini-2024-08-06", "contradicted"),
        ("openai/gpt-4o-mini-2024-08-06", "gpt-4o-2024-08-06", "contradicted"),
        ("openai/gpt-4o@2024-08-06", "openai/gpt-4o-mini-2024-08-06", "contradicted"),
        ("openai/gpt-4-1106-preview", "gpt-4-1106-vision-preview", "contradicted"),
        ("openai/gpt-4o-2024-08-06", "openai/gpt-4o-2024-08-06", "verified"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-08-06-eu", "verified"),
        ("openai/gpt-4o-2024-08-06", "azure-gpt-4o-2024-08-06", "verified"),
        ("openai/gpt-4o@2024-08-06", "eu.gpt-4o-2024-08-06-v1:0", "verified"),
        ("openai/my-deployment@2024-08-06", "gpt-4o-2024-08-06", "unverified"),
        ("openai/llama@2024-08-06", "/data/2025-01-01/llama.gguf", "unverified"),
        ("openai/llama@Q4_K_M", "/data/llama.Q4_K_M.gguf", "verified"),
        ("openai/judge@v1", "judge-2025-01-01", "unverified"),
        ("openai/judge@v1", "judge-v2", "contradicted"),
        ("openai/llama3@2", "llama3.1", "unverified"),
        ("openai/m@a09a354", "m/snapshots/9bb58f26192e4ba00f01e2e7b136bbd8a09a354f", "verified"),
        ("openai/m@2024-08-06", "m/9bb58f26192e4ba00f01e2e7b136bbd8a09a354f", "unverified"),
        ("python/judges:strict@2024-08-06", "gpt-4o-2024-11-20", None),
    ],
)
def test_what_a_reported_name_says_of_a_pin(
    model: str, reported: str | None, found: str | None
) -> None:
    assert check_version(model, reported) == found


@pytest.mark.parametrize("model", ["openai/gpt-4o@2024-08-06", "openai/gpt-4o-2024-08-06"])
@pytest.mark.parametrize("role", ["--judge", "--target"])
def test_another_version_stops_the_run_and_nothing_is_lost(
    server: JudgeServer,
    jurybox: Jurybox,
    model: str,
    role: str,
) -> None:
    server.model = "gpt-4o-2024-11-20"
    judge = () if role == "--judge" else ("--judge", "openai/other@1")
    done = jurybox("run", "suite.yaml", role, model, *judge, "--concurrency", "1", "--json")
    assert done.code == 3
    assert json.loads(next(iter(server.asked)))["model"] in {"gpt-4o", "gpt-4o-2024-08-06"}
    (line,) = [each for each in done.err.splitlines() if each.startswith("stopped: ")]
    assert f"{model}: the provider answered with `gpt-4o-2024-11-20`" in line
    assert "ask for `openai/gpt-4o-2024-" in line
    assert "--allow-version-drift" in line
    assert done.err.splitlines()[-1].endswith(" --allow-version-drift")
    # What is stored of the stopped run says what answered, and why it stopped.
    stopped = json.loads(jurybox("show", "last", "--json").out)
    assert json.loads(done.out)["metadata"] == stopped["metadata"]
    assert stopped["metadata"]["version_verified"] is False
    assert "gpt-4o-2024-11-20" in {
        each["reported_model"] for each in stopped["metadata"]["reported_models"]
    }
    reason = f"{model}: `gpt-4o-2024-11-20` answered, another model or version; the run stopped"
    assert any(note.startswith(reason) for note in stopped["notes"])
    assert jurybox("resume", "last", "--json").code == 3
    done = jurybox("resume", "last", "--allow-version-drift", "--json")
    assert done.code == 0
    assert max(server.asked.values()) == 1, "a reply was paid for twice"
    data = json.loads(done.out)
    assert data["metadata"]["allow_version_drift"] is True
    assert data["metadata"]["version_verified"] is False
    field = "evaluator_model_version" if role == "--judge" else "model_version"
    assert data["metadata"][field] == "gpt-4o-2024-11-20 fp_1"
    assert any(
        "`gpt-4o-2024-11-20` answered, another model or version" in note for note in data["notes"]
    )
    assert jurybox("verify", "last").code == 0


def test_a11_a_key_that_a_provider_echoes_is_not_stored(
    server: JudgeServer, jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789-of-ours")
    server.model = "sk-0123456789-of-ours"
    done = jurybox("run", "suite.yaml", "--judge", "openai/gpt-4o@2024-08-06", "--json")
    assert done.code == 0
    reported = json.loads(done.out)["metadata"]["reported_models"][0]["reported_model"]
    assert reported == "[hidden]"
    assert b"sk-0123456789" not in Path(".jurybox/jurybox.db").read_bytes()


def test_evaluate_stops_too(server: JudgeServer, jurybox: Jurybox) -> None:
    server.model = "gpt-4o-2024-11-20"
    asked = ("evaluate", "--rubric", "general", "--task", "2 + 2?", "--response", "4")
    done = jurybox(*asked, "--judge", "openai/gpt-4o@2024-08-06")
    assert (done.code, done.out) == (3, "")
    assert len(done.err.splitlines()) == 1
    assert "ask for `openai/gpt-4o-2024-08-06`" in done.err
    done = jurybox(*asked, "--judge", "openai/gpt-4o@2024-08-06", "--allow-version-drift", "--json")
    assert done.code == 0
    assert json.loads(done.out)["reported_models"] == ["gpt-4o-2024-11-20 fp_1"]
    assert json.loads(done.out)["version_verified"] is False
    server.model = "gpt-4o-2024-08-06"
    done = jurybox(*asked, "--judge", "openai/gpt-4o@2024-08-06", "--json")
    assert json.loads(done.out)["version_verified"] is True


@pytest.mark.parametrize(
    ("reported", "verified"), [("gpt-4o-2024-08-06", True), ("gpt-4o", False), (None, False)]
)
def test_what_the_provider_reports_is_recorded(
    server: JudgeServer,
    jurybox: Jurybox,
    reported: str | None,
    verified: bool,  # noqa: FBT001
) -> None:
    server.model = reported
    done = jurybox("run", "suite.yaml", "--judge", "openai/gpt-4o@2024-08-06", "--json")
    assert done.code == 0
    metadata = json.loads(done.out)["metadata"]
    assert metadata["version_verified"] is verified
    (found,) = metadata["reported_models"]
    assert found == {
        "role": "judge",
        "model": "openai/gpt-4o@2024-08-06",
        "reported_model": reported,
        "system_fingerprint": "fp_1",
        "version_verified": verified,
    }
    notes = [note for note in json.loads(done.out)["notes"] if "version is not verified" in note]
    assert bool(notes) is not verified
    shown = jurybox("show", "last").out
    assert ("version is not verified" in shown) is not verified
    assert jurybox("verify", "last").code == 0
