"""``jurybox demo``: what it shows without a model, and how the part with one is put together."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import real_models

SCRIPT = Path(__file__).parents[2] / "scripts" / "demo"
FILES = [".jurybox", "answers.jsonl", "judge.py", "report.html", "suite.yaml"]
ANSWERS = ["right", "other-words", "wrong", "wrong-number", "half", "invented"]
PULL = "`jurybox model pull` (1.1 GB)"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_without_the_model_rules_and_words_judge_and_a_line_says_missing_model(
    jurybox: Callable, tmp_path: Path
) -> None:
    done = jurybox("demo")
    assert done.code == 0
    assert "0.87  Excellent" in done.out
    assert "Comparing words misses the meaning" in done.out
    assert "A real model" not in done.out
    assert sum(PULL in line for line in done.err.splitlines()) == 1
    assert names(tmp_path / ".jurybox" / "demo") == FILES
    assert "Open .jurybox/demo/report.html in a browser." in done.out
    assert "6 samples are in this file" in (tmp_path / ".jurybox/demo/report.html").read_text()


def test_words_pass_a_wrong_answer_and_what_was_run_can_be_looked_at_and_run_again(
    jurybox: Callable, tmp_path: Path
) -> None:
    done = jurybox("demo", ".", "--model", "none", "--json")
    assert done.code == 0
    assert done.json["runs"][0]["stopped"] is None
    rows = map(json.loads, jurybox("export", "last", "-o", "-").out.splitlines())
    passed = {each["id"]: each["passed"] for each in rows}
    assert list(passed) == ANSWERS
    assert (passed["right"], passed["wrong"], passed["other-words"]) == (True, True, False)
    assert (done.json["pair"], done.json["report"]) == (None, "report.html")
    assert done.json["missing"] in done.err
    assert jurybox("verify", "last").code == 0
    assert jurybox("demo", ".", "--model", "none").code == 0
    assert len(jurybox("runs", "--json").json["runs"]) == 2
    assert names(tmp_path) == FILES


def test_files_that_were_changed_are_left_alone(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text("mine")
    done = jurybox("demo", ".", "--model", "none")
    assert (done.code, done.out) == (2, "")
    assert done.err == ("answers.jsonl: the file exists; choose another place\n")
    assert names(tmp_path) == ["answers.jsonl"]


def test_a_model_that_nobody_knows_is_refused_before_anything_is_written(
    jurybox: Callable, tmp_path: Path
) -> None:
    done = jurybox("demo", "--model", "smollm2-135")
    assert (done.code, done.out) == (2, "")
    assert "did you mean `smollm2-135m`?" in done.err
    assert names(tmp_path) == []


def test_a_named_model_that_is_not_here_is_refused_with_how_to_pull_it(jurybox: Callable) -> None:
    done = jurybox("demo", "--model", "smollm2-135m")
    assert done.code == 2
    assert "jurybox model pull smollm2-135m" in done.err


@pytest.mark.judge_model  # takes a minute, on any model
def test_with_a_real_model_answers_are_judged_and_both_orders_told(jurybox: Callable) -> None:
    # The model is at chance: what it says counts for nothing, only that it is told.
    folder = str(real_models.path_of(real_models.SMALL).parent)
    done = jurybox("demo", "there", "--model", "smollm2-135m", "--json", JURYBOX_MODELS=folder)
    assert done.code == 0, done.err
    words, model = done.json["runs"]
    assert model["summary"]["samples"] == 3
    assert model["metadata"]["evaluator_model_id"] == f"local/{real_models.SMALL}"
    assert words["run_id"] != model["run_id"]
    assert done.json["missing"] is None
    assert done.json["pair"]["winner"] in {"A", "B", "tie", None}
    # The last run is the model's, and it is the one that the report is about.
    shown = jurybox("verify", "last", "--store", "there/.jurybox/jurybox.db", "--json")
    assert shown.json["run_id"] == model["run_id"]
    assert model["run_id"] in Path("there/report.html").read_text()


def run_script(**environment: str) -> subprocess.CompletedProcess[bytes]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, **environment}
    return subprocess.run([SCRIPT], capture_output=True, check=False, env=env)


def test_the_script_pulls_nothing_where_no_model_is_wanted(tmp_path: Path) -> None:
    # What the commands themselves do is shown by the test below.
    fake = tmp_path / "bin" / "jurybox"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\ncase "$1 $2" in "rubric new") touch "$3.md";; "rubric check") exit 2;; esac\n'
    )
    fake.chmod(0o755)
    done = run_script(MODEL="none", PATH=f"{fake.parent}:{os.environ['PATH']}")
    assert done.returncode == 0, done.stderr
    assert b"model pull" not in done.stdout
    assert b"$ jurybox demo . --model none\n" in done.stdout


def test_the_script_continues_where_the_model_can_not_be_pulled() -> None:
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:1", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "links"}
    done = run_script(**nowhere, PIP_CONFIG_FILE=os.devnull, MODEL="")
    # A result comes before the pull is tried.
    assert done.stdout.index(b"needs_revision") < done.stdout.index(b"model pull")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"demo: the model could not be pulled") == 1
    assert b"verified: 6 samples" in done.stdout
    assert Path(".jurybox/demo/report.html").is_file()
