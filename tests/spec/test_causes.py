"""E6 and D8: why votes are missing and samples fail is named with counts."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Done, call
from tests.faults.judge_server import JudgeServer

from verdicts import scored

pytestmark = pytest.mark.usefixtures("quick_retries")
CRITERIA = ("correctness", "completeness", "soundness", "clarity", "usefulness")
Jurybox = Callable[..., Done]
JUDGES = """
def broken(prompt):
    raise KeyError("no such column")
"""


class FailingServer(JudgeServer):
    def answer(self, body: bytes) -> tuple[int, bytes]:
        if b"Task 0" in body:
            return 500, b'{"error": {"message": "the model crashed, request req_8f3a9c1d2e4b5a6c"}}'
        return super().answer(body)


def verdict_or_prose(request: dict[str, Any], number: int) -> str:
    del number
    text = request["messages"][0]["content"]
    if "Task 1" in text:
        return "I would say that it is rather good."
    return scored(dict.fromkeys(CRITERIA, 2 if "Task 2" in text else 5))


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with FailingServer(verdict_or_prose).running() as running:
        yield running


@pytest.fixture
def jurybox(server: JudgeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Jurybox:
    rows = [{"id": f"q{n}", "task": f"Task {n}", "response": "So"} for n in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "judges.py").write_text(JUDGES)
    (tmp_path / "plain.md").write_text(
        "---\nid: plain\nversion: 1.0.0\nextends: general\npass: []\n---\n# Plain\n"
    )
    (tmp_path / "suite.yaml").write_text(
        "suite: s\nrubric: general\ndataset: rows.jsonl\n"
        "judge: {models: [openai/judge@1], votes: 3}\n"
    )

    def run(*arguments: str) -> Done:
        return call(monkeypatch, *arguments, OPENAI_BASE_URL=server.url)

    return run


def test_the_causes_of_missing_votes_are_named_with_counts(jurybox: Jurybox) -> None:
    data = json.loads(jurybox("run", "suite.yaml", "--json").out)
    causes: dict[str, int] = data["summary"]["unscored_causes"]
    assert sorted(causes.values()) == [3, 3]
    (crash,) = [cause for cause in causes if "HTTP 500" in cause]
    (prose,) = [cause for cause in causes if "JSON" in cause]
    # What differs from request to request is left out, so that one cause is one line.
    assert "the model crashed, request ..." in crash
    (note,) = [note for note in data["notes"] if note.startswith("6 votes are missing: ")]
    place, _, failure = crash.partition(": ")
    assert f"3 x {failure} ({place})" in note
    assert f"3 x the reply{prose.removeprefix('it').rstrip('.')}" in note
    out = " ".join(jurybox("show", "last").out.split())
    assert note in out
    for name in ("run.html", "run.md"):
        jurybox("report", "last", "-o", name)
        assert "3 x " in Path(name).read_text()
        assert "the model crashed" in Path(name).read_text()
    assert jurybox("verify", "last").code == 0


def test_failed_samples_are_counted_per_pass_rule(jurybox: Jurybox) -> None:
    data = json.loads(jurybox("run", "suite.yaml", "--json").out)
    failed = data["summary"]["failed_samples"]
    assert failed["no valid vote"] == 2
    assert failed["correctness >= 3"] == 1
    shown = " ".join(jurybox("show", "last").out.split())
    assert "not passed 1 sample fails a rule, 2 samples have no score 2 no valid vote" in shown
    assert "1 correctness >= 3" in shown


def test_without_pass_rules_only_samples_without_a_score_do_not_pass(jurybox: Jurybox) -> None:
    jurybox("run", "suite.yaml", "--rubric", "plain.md")
    shown = " ".join(jurybox("show", "last").out.split())
    assert "not passed 2 samples have no score 2 no valid vote" in shown


def test_an_exception_of_a_function_is_named_with_its_text(jurybox: Jurybox) -> None:
    done = jurybox("run", "suite.yaml", "--judge", "python/judges:broken", "--json")
    assert done.code == 3
    (cause,) = json.loads(done.out)["summary"]["unscored_causes"]
    assert "KeyError: 'no such column'" in cause


def test_why_a_target_failed_is_counted(jurybox: Jurybox) -> None:
    done = jurybox("run", "suite.yaml", "--target", "openai/bot@1", "--json")
    summary = json.loads(done.out)["summary"]
    ((cause, count),) = summary["target_errors"].items()
    assert "HTTP 500" in cause
    assert (count, summary["failed_samples"]["no response"]) == (1, 1)


def test_e9_a_cause_names_its_judge_where_there_are_several(jurybox: Jurybox) -> None:
    judges = ("--judge", "openai/judge@1", "--judge", "openai/other@1", "--votes", "2")
    data = json.loads(jurybox("run", "suite.yaml", *judges, "--json").out)
    named = {cause.partition(": ")[0] for cause in data["summary"]["unscored_causes"]}
    assert named == {"openai/judge@1", "openai/other@1"}
