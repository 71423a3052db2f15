"""Looking at runs: ``runs``, ``show``, ``gate`` and ``rescore``."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import JURYBOX


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with a suite that was run once, three times over, and the run's id."""
    folder = tmp_path_factory.mktemp("made")
    env = {name: value for name, value in os.environ.items() if not name.startswith("JURYBOX_")}
    outs = [
        subprocess.run(
            [JURYBOX, *arguments], cwd=folder, env=env, capture_output=True, check=False
        ).stdout
        for arguments in (("init",), ("run", "suite.yaml", "--repeats", "3", "--json"))
    ]
    return folder, json.loads(outs[1])["run_id"]


@pytest.fixture
def run_id(made: tuple[Path, str], tmp_path: Path) -> str:
    """Have that folder to oneself."""
    folder, run = made
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return run


def test_a_run_is_listed_with_what_matters_most(
    started: Callable, jurybox: Callable, run_id: str
) -> None:
    (run,) = jurybox("runs", "--json").json["runs"]
    assert {name: run[name] for name in ("suite", "status", "samples", "planned")} == {
        "suite": "starter",
        "status": "finished",
        "samples": 18,
        "planned": 18,
    }
    assert (run["metric"], run["value"]) == ("aggregate_score", pytest.approx(5 / 6))
    assert (run["gates_passed"], run["gates"], run["decision"]) == (2, 4, None)
    line = started("runs").out.splitlines()[1]
    assert re.match(
        rf"{run_id} +starter +finished +18 of 18 +aggregate_score 0\.833 +2 of 4 gates pass"
        r" +questions\.jsonl +recorded +python/judge:strict +unknown"
        r" +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d",
        line,
    )


def test_only_the_newest_are_listed_where_there_are_many(jurybox: Callable, run_id: str) -> None:
    jurybox("run", "suite.yaml", "--limit", "1")
    listed = jurybox("runs", "--limit", "1", "--json").json
    assert [run["samples"] for run in listed["runs"]] == [1]
    assert listed["more"] is True
    assert "there are more" in jurybox("runs", "--limit", "1").out
    every = jurybox("runs", "--json").json
    assert [run["samples"] for run in every["runs"]] == [1, 18]
    assert every["more"] is False
    assert every["runs"][1]["run_id"] == run_id


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET outcome = '{' WHERE id = ?",
        "UPDATE runs SET metadata = '{' WHERE id = ?",
        "UPDATE runs SET metadata = '[]' WHERE id = ?",
    ],
)
def test_a_damaged_run_does_not_hide_the_others(
    jurybox: Callable, run_id: str, damage: str
) -> None:
    jurybox("run", "suite.yaml", "--limit", "1")
    with sqlite3.connect(".jurybox/jurybox.db") as store:
        store.execute(damage, (run_id,))
    store.close()
    assert [run["status"] for run in jurybox("runs", "--json").json["runs"]] == [
        "finished",
        "damaged",
    ]
    assert "damaged" in jurybox("runs").out
    done = jurybox("show", run_id)
    assert (done.code, done.out) == (3, "")
    assert "`jurybox verify` says where" in done.err


def test_samples_that_need_a_person_are_named_first(jurybox: Callable, run_id: str) -> None:
    lines = jurybox("show", run_id).out.splitlines()
    assert lines[0].startswith("Don't ship: pass rate is 66.7% and has to be at least 85%; ")
    assert lines[lines.index("look at") + 1] == (
        "  failed, 6 samples: a pass rule fails: planet, planet (repeat 1),"
        " planet (repeat 2), novel, novel (repeat 1) and 1 more"
    )


def test_one_sample_is_shown_with_every_word(jurybox: Callable, run_id: str) -> None:
    done = jurybox("show", run_id, "--sample", "novel", "--repeat", "2")
    assert done.code == 0
    assert done.out.startswith(f"sample novel, repeat 2  of run {run_id}\n")
    for text in (
        "Who wrote the novel Frankenstein?",
        "Frankenstein is a novel by Mary Shelley, first published in 1818.",
        "Mary Shelley wrote Frankenstein in 1795, at the request of Napoleon.",
        "faithfulness_score >= 1  fails",
        '{"accuracy_score": 2, "faithfulness_score": 0, "rationale": "missing from the answer:',
    ):
        assert text in done.out
    assert re.search(r"^sample_score +0\.7$", done.out, re.MULTILINE)
    assert re.search(r"^exchange 1  judge  python/judge:strict  [\d.]+ ms$", done.out, re.MULTILINE)


def test_one_sample_as_json_is_its_exported_record(jurybox: Callable, run_id: str) -> None:
    record = jurybox("show", run_id, "--sample", "novel", "--json").json
    assert (record["run_id"], record["id"], record["repeat"]) == (run_id, "novel", 0)
    assert (record["accuracy_score"], record["faithfulness_score"]) == (2, 0)
    assert record["sample_score"] == 0.7
    assert re.fullmatch("[0-9a-f]{64}", record["record_sha256"])
    (exchange,) = record["exchanges"]
    assert exchange["role"] == "judge"
    assert json.loads(exchange["reply"]["text"])["faithfulness_score"] == 0


def test_the_trace_of_the_rules_is_shown(jurybox: Callable, tmp_path: Path) -> None:
    companion(tmp_path, "I feel sad today.", "I hear you. How are you now?")
    jurybox("run", "suite.yaml")
    done = jurybox("show", "last", "--sample", "a")
    assert re.search(r"^emotional_intelligence +[\d.]+ \w+ +[\d.]+ +base", done.out, re.MULTILINE)
    assert re.search(r"^ +[+-]0\.\d+ +\w", done.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("show", "2099"), "2099: no such run; `jurybox runs` lists them"),
        (("show", "2"), None),
        (("show", "last", "--sample", "novle"), "novle: the run has no such sample; did you mean"),
        (("show", "last", "--sample", "novel", "--repeat", "3"), "novel: there is no repeat 3"),
        (("show", "last", "--repeat", "1"), "jurybox show: --repeat needs --sample"),
        (("resume", "last"), "{run}: the run is finished; `jurybox show` shows it"),
        (("runs", "--store", "none.db"), "no store at none.db; run a suite first"),
        (("gate", "last", "--decision", "deploy"), "{run}: the rubric has no decisions"),
        (("rescore", "last", "--rubric", "companion"), "{run}: the judges replied in the format"),
        (("rescore", "last"), "jurybox rescore: missing option '--rubric'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    jurybox: Callable, run_id: str, arguments: tuple[str, ...], line: str | None
) -> None:
    done = jurybox(*arguments)
    if line is None:
        # The beginning of an id is enough where it is one run's.
        assert done.code == 0
        return
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(line.format(run=run_id))
    assert done.err.count("\n") == 1


def test_the_beginning_of_several_ids_is_refused(jurybox: Callable, run_id: str) -> None:
    jurybox("run", "suite.yaml", "--limit", "1")
    done = jurybox("show", run_id[:4])
    assert done.code == 2
    assert "several runs start with this" in done.err


@pytest.mark.usefixtures("run_id")
def test_a_store_without_runs_says_so(jurybox: Callable) -> None:
    with sqlite3.connect(".jurybox/jurybox.db") as store:
        for table in ("exchanges", "samples", "runs"):
            store.execute(f"DELETE FROM {table}")  # noqa: S608 - names of our own
    store.close()
    assert jurybox("runs").out == "the store has no runs; run a suite first\n"
    assert jurybox("runs", "--json").json == {"runs": [], "more": False}
    assert jurybox("show", "last").err == "last: the store has no runs; run a suite first\n"


def test_gates_that_fail_are_exit_code_1(jurybox: Callable, run_id: str) -> None:
    done = jurybox("gate", "last")
    assert (done.code, done.err) == (1, "")
    gate = r"^pass_rate >= 0\.85 +66\.7% +[\d.]+% to [\d.]+% +no, not certain +-18\.3 points$"
    assert re.search(gate, done.out, re.MULTILINE)
    data = jurybox("gate", "last", "--json")
    assert data.code == 1
    assert (data.json["run_id"], data.json["passed"]) == (run_id, False)
    assert [gate["passed"] for gate in data.json["gates"]] == [True, False, False, True]


def companion(folder: Path, task: str, response: str) -> None:
    row = {"id": "a", "task": task, "response": response}
    (folder / "rows.jsonl").write_text(json.dumps(row))
    (folder / "suite.yaml").write_text("suite: x\nrubric: companion\ndataset: rows.jsonl\n")


def test_a_rubric_without_gates_decides_by_name(jurybox: Callable, tmp_path: Path) -> None:
    companion(tmp_path, "I feel sad today.", "**No.**")
    run: dict[str, Any] = jurybox("run", "suite.yaml", "--json").json
    assert run["decision"] == "needs_revision"
    refused = jurybox("gate", "last")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"{run['run_id']}: the rubric has no gates; ")
    other = jurybox("gate", "last", "--decision", "deploy")
    assert other.code == 1
    assert "decision  needs_revision: " in other.out
    same = jurybox("gate", "last", "--decision", "needs_revision", "--json")
    assert (same.code, same.json["passed"]) == (0, True)
    slip = jurybox("gate", "last", "--decision", "deplyo")
    assert slip.code == 2
    assert "the rubric never decides `deplyo`; did you mean `deploy`?" in slip.err
