"""What `run` and `show` print (D8, A1): the verdict, then why, then what to look at."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Done

Jurybox = Callable[..., Done]
WIDTH, MOST_LINES = 80, 26
JUDGE = """
from verdicts import scored


def judge(prompt):
    if "Task 3 " in prompt:
        return "It is fine, I think."
    score = 1 if "Task 1 " in prompt else 5
    concerns = ["It tells how to hurt people."] if "Task 2 " in prompt else []
    return scored({"correctness": score}, concerns=concerns)


def bot(prompt):
    if "Task 4 " in prompt:
        raise ValueError("the table of prices is missing")
    return "So."
"""
RUBRIC = """---
id: strict
version: 1.0.0
scale: 1-5
votes: 1
pass: ["correctness >= 3"]
gates: ["pass_rate >= 0.9", "correctness_mean >= 2", "unscored_rate <= 0.5"]
---
# Strict
## Criteria
### Correctness
Facts are right.
"""


@pytest.fixture
def mixed(jurybox: Jurybox, tmp_path: Path) -> Done:
    """Run a suite in which everything goes wrong that can."""
    (tmp_path / "judges.py").write_text(JUDGE)
    (tmp_path / "strict.md").write_text(RUBRIC)
    rows = [
        {"id": f"a-rather-long-sample-id-{n}-{'x' * 20}", "task": f"Task {n} ", "scenario": f"s{n}"}
        for n in range(6)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "suite.yaml").write_text(
        "suite: mixed\nrubric: strict.md\ndataset: rows.jsonl\n"
        "target: python/judges:bot\njudge: python/judges:judge\n"
    )
    return jurybox("run", "suite.yaml", "--allow-unpinned")


def plain(shown: str) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", shown).replace("\r", "").rstrip("\n").split("\n")


def test_a_run_fits_a_screen_and_splits_no_id(mixed: Done, on_terminal: Callable[..., str]) -> None:
    assert mixed.code == 1
    lines = plain(on_terminal("show", "last", COLUMNS=str(WIDTH)))
    assert len(lines) <= MOST_LINES, "\n".join(lines)
    assert max(map(len, lines)) <= WIDTH
    for line in lines:
        # An id is there as a whole or not at all.
        assert line.count("a-rather-long-sample-id-") == len(
            re.findall(r"a-rather-long-sample-id-\d-x{20}", line)
        )


def test_the_verdict_is_first_then_why_then_what_to_look_at(mixed: Done) -> None:
    lines = mixed.out.splitlines()
    assert lines[0].startswith("Don't ship: pass rate is 50.0% and has to be at least 90%; 1 ")
    run_id = re.findall(r"\d{8}-\d{6}-\w{4}", lines[1])[0]
    assert lines[1] == f"run {run_id}  mixed  finished, 6 of 6 samples"
    assert lines[2] == (
        "strict 1.0.0, responses of python/judges:bot, judged by python/judges:judge"
    )
    order = [
        r"^1 vote is missing: .*JSON",
        r"^gate +value +95% interval +passes +margin$",
        r"^pass_rate >= 0.9 +50\.0% +18\.8% to 81\.2% +no +-40\.0 points$",
        r"^correctness_mean >= 2 +4\.000 +1\.404 to 4\.989 +yes, not certain +\+2\.000$",
        r"^not passed  1 sample fails a rule, 1 sample has no score, 1 sample has no ",
        r"^  1  correctness >= 3$",
        r"^  1  no response: .*the table of prices is missing",
        r"^  1  no valid vote$",
        r"^look at$",
        r"^  safety, 1 sample: ",
        rf"^  jurybox show {run_id} --failed$",
        r"^  jurybox serve$",
        rf"^all metrics and settings: jurybox report {run_id} -o -$",
    ]
    places = [
        next((at for at, line in enumerate(lines) if re.search(each, line)), each) for each in order
    ]
    assert places == sorted(places, key=lambda place: (isinstance(place, str), place))


def test_a_rate_is_a_percentage_and_no_rounding_hides_a_failed_gate(
    jurybox: Jurybox, tmp_path: Path
) -> None:
    rubric = RUBRIC.replace("pass_rate >= 0.9", "pass_rate >= 0.6667").replace(
        "_mean >= 2", "_mean >= 3"
    )
    (tmp_path / "judges.py").write_text(JUDGE)
    (tmp_path / "strict.md").write_text(rubric)
    rows = [{"id": f"q{n}", "task": f"Task {n} ", "response": "So"} for n in (0, 1, 5)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "suite.yaml").write_text(
        "suite: thirds\nrubric: strict.md\ndataset: rows.jsonl\njudge: python/judges:judge\n"
    )
    done = jurybox("run", "suite.yaml", "--allow-unpinned")
    assert done.code == 1
    assert re.search(r"^pass_rate >= 0.6667 +0\.666667 .* no, not certain ", done.out, re.MULTILINE)
    assert re.search(r"^correctness_mean >= 3 +3\.667 .* yes.* \+0\.667$", done.out, re.MULTILINE)
    assert "strict 1.0.0, recorded responses, judged by" in done.out


def test_a_mean_has_one_name_the_document_s_own(jurybox: Jurybox) -> None:
    """A1: aggregates are named exactly as in the document."""
    jurybox("init")
    done = jurybox("run", "suite.yaml", "--json")
    summary = json.loads(done.out)["summary"]
    assert summary["accuracy_mean"] == 1.5
    assert "accuracy_score_mean" not in summary
    assert summary["scenarios"]["science"]["accuracy_mean"] == 1.25
    for name in ("run.html", "run.md"):
        jurybox("report", "last", "-o", name)
        assert "accuracy_score_mean" not in Path(name).read_text()
    assert jurybox("verify", "last").code == 0


def test_the_list_of_runs_splits_no_id(jurybox: Jurybox, on_terminal: Callable[..., str]) -> None:
    jurybox("init")
    options = ("--name", "a-name-that-is-long", "--tag", "nightly", "--json")
    run_id = json.loads(jurybox("run", "suite.yaml", *options).out)["run_id"]
    lines = plain(on_terminal("runs", COLUMNS=str(WIDTH)))
    assert max(map(len, lines)) <= WIDTH
    for text in (run_id, "a-name-that-is-long", "2 of 4 gates pass", "python/judge:strict"):
        assert any(text in line for line in lines), lines
