"""``jurybox diff`` (A13, section I of the specification), on runs that the command has made."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from jurybox import load_rubric, render_rubric

JUDGES = """
def strict(prompt):
    score = 2 if "four" in prompt else 0
    return '{"accuracy_score": %d, "faithfulness_score": 2, "rationale": "Seen."}' % score


def kind(prompt):
    return '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Seen."}'
"""
SUITE = """
suite: sums
rubric: answer-quality
dataset: rows.jsonl
judge:
  models: [python/judges:strict]
"""
USED = {"latency_e2e_ms": 10, "input_tokens": 5, "output_tokens": 5}
ROWS = [
    {"id": "right", "task": "2 + 2?", "response": "four", **USED},
    {"id": "wrong", "task": "2 + 2?", "response": "five", **USED},
]


@pytest.fixture
def runs(tmp_path: Path, jurybox: Callable, once: Callable) -> tuple[str, ...]:
    """Return the ids of two equal runs, and of one with a judge that likes everything."""
    once(lambda: _make_runs(tmp_path, jurybox))
    found = jurybox("runs", "--json").json["runs"]
    return tuple(run["run_id"] for run in reversed(found))


def _make_runs(folder: Path, jurybox: Callable) -> None:
    (folder / "judges.py").write_text(JUDGES)
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for judge in ("strict", "strict", "kind"):
        model = f"python/judges:{judge}"
        done = jurybox("run", "suite.yaml", "--allow-unpinned", "--judge", model, "--json")
        assert done.json["status"] == "finished", done.err


def test_a_rerun_is_identical_to_the_hash(
    started: Callable, jurybox: Callable, runs: tuple[str, ...]
) -> None:
    one, other, _ = runs
    done = started("diff", one, other)
    assert done.code == 0
    assert "records  inputs, replies and results are identical, by hash" in done.out
    assert "differs" not in done.out
    assert jurybox("diff", one, other, "--json").json["identical"] is True


def test_changed_samples_are_listed_with_what_may_explain_them(
    jurybox: Callable, runs: tuple[str, ...]
) -> None:
    one, _, other = runs
    done = jurybox("diff", one, other)
    assert done.code == 0
    assert "differs  judges: python/judges:strict -> python/judges:kind" in done.out
    counted = "0 lower, 1 unchanged, 1 higher, none newly fails, 1 newly passes"
    assert f"{counted}\n" in done.out
    assert "+0.45" in done.out
    assert "passed no -> yes" in done.out
    assert "better" not in done.out


def test_the_json_form_has_everything(jurybox: Callable, runs: tuple[str, ...]) -> None:
    one, _, other = runs
    data = jurybox("diff", one, other, "--json").json
    assert (data["a"]["run_id"], data["b"]["run_id"]) == (one, other)
    assert "has to be at least" in data["a"]["reason"]
    assert data["a"]["reason"] in jurybox("diff", one, other).out
    assert data["counts"] == {
        "same": 1,
        "higher": 1,
        "lower": 0,
        "changed": 0,
        "no_longer_scored": 0,
        "newly_scored": 0,
        "unscored": 0,
        "now_fails": 0,
        "now_unscored": 0,
        "newly_passes": 0,
        "newly_fails": 0,
        "now_passes": 1,
        "other_winner": 0,
        "moved_to_b": 0,
        "moved_to_a": 0,
        "pairs": 0,
        "only_in_a": 0,
        "only_in_b": 0,
        "identical_records": 0,
        "same_responses": 2,
        "labeled": 0,
    }
    assert [each["change"] for each in data["samples"]] == ["higher"]
    assert data["samples"][0]["passed"] == [False, True]
    assert {each["field"] for each in data["fields"]} == {"evaluator_model_id"}
    rate = next(each for each in data["metrics"] if each["metric"] == "pass_rate")
    assert (rate["a"], rate["b"], rate["difference"]) == (0.5, 1.0, 0.5)


def test_what_only_another_rubric_changes_is_not_called_chance(
    tmp_path: Path, jurybox: Callable, runs: tuple[str, ...]
) -> None:
    text = render_rubric(load_rubric("answer-quality"))
    text = text.replace("accuracy_score >= 1", "accuracy_score >= 0")
    (tmp_path / "lax.md").write_text(text.replace("version: 1.0.0", "version: 2.0.0"))
    again = jurybox("rescore", runs[0], "--rubric", "lax.md", "--json").json["run_id"]
    done = jurybox("diff", runs[0], again)
    turned = "no sample newly fails, 1 newly passes"
    assert f"the same replies, so all differences come from the rubric: {turned}\n" in done.out
    assert "chance" not in done.out
    assert "evaluator_model_version" not in done.out
    assert "judge is" not in done.out
    passed = next(line for line in done.out.splitlines() if line.startswith("pass_rate "))
    assert passed.split()[-1] == "higher"
    (tested,) = (
        each
        for each in jurybox("diff", runs[0], again, "--json").json["tested"]
        if each["metric"] == "passed"
    )
    assert (tested["interval"], tested["p_value"], tested["test"]) == (None, None, None)
    assert "the same replies, so the difference is exact" in tested["reason"]


def test_the_limit_says_how_many_are_left(jurybox: Callable, runs: tuple[str, ...]) -> None:
    one, _, other = runs
    done = jurybox("diff", one, other, "--limit", "0")
    assert "--limit N lists 1 more changed sample" in done.out
    assert "higher" in done.out
    assert jurybox("diff", one, other, "--limit", "0", "--json").json["samples"] == []


MANY = """
import re


def before(prompt):
    return said(prompt, 0)


def after(prompt):
    return said(prompt, 1)


def said(prompt, less):
    number = int(re.search(r"sum ([0-9]+)", prompt)[1])
    score = 2 - less * (number % 3 == 0)
    return '{"accuracy_score": %d, "faithfulness_score": 2, "rationale": "Seen."}' % score
"""


@pytest.fixture
def longer(tmp_path: Path, jurybox: Callable, once: Callable) -> tuple[str, str]:
    """Return the ids of two runs; in the second a third of sixty samples has less accuracy."""

    def make() -> None:
        (tmp_path / "many.py").write_text(MANY)
        (tmp_path / "suite.yaml").write_text(SUITE)
        rows = [
            {"id": f"s{n}", "task": f"sum {n}", "response": "x", "talk": f"t{n % 4}", **USED}
            for n in range(60)
        ]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        for judge in ("before", "after"):
            model = f"python/many:{judge}"
            done = jurybox("run", "suite.yaml", "--allow-unpinned", "--judge", model, "--json")
            assert done.json["status"] == "finished", done.err

    once(make, "longer")
    found = jurybox("runs", "--json").json["runs"]
    return found[1]["run_id"], found[0]["run_id"]


def test_a_regression_beyond_chance_is_named_and_can_fail_a_build(
    jurybox: Callable, longer: tuple[str, str]
) -> None:
    before, after = longer
    done = jurybox("diff", before, after)
    assert done.code == 0
    names = "sample_score, accuracy_score and overall (by more than chance at 95%)"
    # Another judge read the same responses, so these didn't get worse.
    same = "the same responses under another judge: B is"
    assert f"{same} lower than A in {names}\n" in done.out
    assert jurybox("diff", before, after, "--fail-on", "regression").code == 1
    back = jurybox("diff", after, before, "--fail-on", "regression")
    assert back.code == 0
    assert f"{same} higher than A in {names}\n" in back.out


def test_every_tested_metric_has_its_interval_and_what_could_have_been_found(
    jurybox: Callable, longer: tuple[str, str]
) -> None:
    data = jurybox("diff", *longer, "--json", "--level", "0.9", "--seed", "3").json
    assert data["regressions"] == ["accuracy_score", "overall", "sample_score"]
    accuracy = data["tested"][0]
    assert (accuracy["metric"], accuracy["n"], accuracy["verdict"]) == (
        "accuracy_score",
        60,
        "lower",
    )
    assert accuracy["difference"] == pytest.approx(-1 / 3)
    assert accuracy["interval"]["level"] == 0.9
    assert accuracy["interval"]["low"] < -1 / 3 < accuracy["interval"]["high"] < 0
    assert accuracy["p_value"] <= accuracy["p_adjusted"] < 0.01
    assert accuracy["detectable"] > 0
    assert accuracy["sentence"].startswith("B is lower than A by 0.333 (90% interval")
    again = jurybox("diff", *longer, "--json", "--level", "0.9", "--seed", "3").json
    assert again["tested"] == data["tested"]
    # The terminal, the page and its file name the tests that were used, each with its metrics.
    shown = " ".join(jurybox("diff", *longer).out.split())
    score = r"paired permutation \([^)]+\) with Student's t intervals for accuracy_score"
    tests = sum(each["p_value"] is not None for each in data["tested"])
    assert re.search(rf"methods {score}.*; p by Holm's correction for {tests} tests", shown)
    assert re.search(r"; McNemar \(exact\) with Bonett-Price intervals for [^;]*pass_rate", shown)
    jurybox("diff", *longer, "-o", "file.html")
    assert "Methods: paired permutation (" in Path("file.html").read_text()


def test_samples_of_one_conversation_are_not_independent(
    jurybox: Callable, longer: tuple[str, str]
) -> None:
    done = jurybox("diff", *longer, "--cluster", "talk", "--fail-on", "regression", "--json")
    assert done.code == 0
    assert done.json["tested"][0]["clusters"] == 4
    assert done.json["tested"][0]["verdict"] == "undecided"
    shown = jurybox("diff", *longer, "--cluster", "talk").out
    assert "with Student's t intervals over 4 clusters for accuracy_score, " in shown
    assert "McNemar" not in shown


def test_a_field_that_no_sample_has_is_one_line_and_2(
    jurybox: Callable, longer: tuple[str, str]
) -> None:
    done = jurybox("diff", *longer, "--cluster", "chat")
    assert done.code == 2
    assert "no sample has a field `chat` to cluster by" in done.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("last", "last", "--level", "95"), "95.0 is not in the range"),
        (("last", "nosuch"), "nosuch: no such run"),
        (("last",), "missing argument 'RUN_B'"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_2(
    jurybox: Callable, runs: tuple[str, ...], more: tuple[str, ...], said: str
) -> None:
    assert len(runs) == 3
    done = jurybox("diff", *more)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
