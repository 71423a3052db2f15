"""``jurybox init``: a suite that runs at once, without a key or a network."""

from collections.abc import Callable
from pathlib import Path

import pytest

from jurybox.cli.starter.judge import strict
from jurybox.rubric_files import read_path
from jurybox.suite import parse_suite
from jurybox.suite.model_spec import ModelSpec

FILES = ["judge.py", "questions.jsonl", "suite.yaml"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_small_suite_is_written_and_the_next_step_named(
    started: Callable, tmp_path: Path
) -> None:
    done = started("init")
    assert (done.code, done.err) == (0, "")
    assert names(tmp_path) == FILES
    assert "run it: jurybox run suite.yaml\n" in done.out
    assert parse_suite((tmp_path / "suite.yaml").read_bytes(), "suite.yaml").rubric == (
        "answer-quality"
    )


def test_json_names_the_files(jurybox: Callable) -> None:
    done = jurybox("init", "there", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["suite"] == "there/suite.yaml"
    assert sorted(done.json["files"]) == [f"there/{name}" for name in FILES]


def test_nothing_is_written_where_something_is_in_the_way(
    jurybox: Callable, tmp_path: Path
) -> None:
    (tmp_path / "judge.py").write_text("mine")
    (tmp_path / "questions.jsonl").write_text("mine")
    done = jurybox("init")
    assert (done.code, done.out) == (2, "")
    assert done.err == ("questions.jsonl, judge.py: the files exist; choose another place\n")
    assert names(tmp_path) == ["judge.py", "questions.jsonl"]
    assert (tmp_path / "judge.py").read_text() == "mine"


def test_a_folder_that_can_not_be_made_is_one_line(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = jurybox("init", "file")
    assert done.code == 2
    assert done.err == "file: can't be written (file exists); choose another place\n"


def test_the_suite_finds_the_three_faults(jurybox: Callable) -> None:
    jurybox("init")
    done = jurybox("run", "suite.yaml", "--json")
    # 4 of 6 pass; the scores are 1, 1, 0.55, 0.775, 0.7 and 0.975.
    assert done.code == 1
    summary = done.json["summary"]
    assert summary["aggregate_score"] == pytest.approx(5 / 6)
    assert summary["pass_rate"] == pytest.approx(4 / 6)
    assert summary["accuracy_full_credit_rate"] == pytest.approx(4 / 6)
    assert summary["faithfulness_failure_rate"] == pytest.approx(1 / 6)
    assert summary["evaluator_error_rate"] == 0
    assert {gate["gate"]: gate["passed"] for gate in done.json["gates"]} == {
        "aggregate_score >= 0.8": True,
        "pass_rate >= 0.85": False,
        "faithfulness_failure_rate <= 0.05": False,
        "latency_e2e_p95_ms <= 10000": True,
    }


def test_the_models_in_its_comments_are_names_that_a_suite_takes(tmp_path: Path) -> None:
    text = read_path(Path(strict.__code__.co_filename).with_name("suite.yaml")).data.decode()
    lines = text.replace("  models: [python/judge:strict]", "").splitlines()
    other = [line.replace("# ", "", 1) if "openai/" in line else line for line in lines]
    target = [line for line in other if "model: openai" in line]
    judge = [line for line in other if "models: [openai" in line]
    suite = "\n".join(
        ["suite: x", "rubric: y", "dataset: z.jsonl", "target:", *target, "judge:", *judge]
    )
    (tmp_path / "suite.yaml").write_text(suite)
    parsed = parse_suite(suite.encode(), "suite.yaml")
    assert parsed.target is not None
    assert parsed.target.model == ModelSpec(model="openai/gpt-4.1-2025-04-14")
    assert parsed.judge is not None
