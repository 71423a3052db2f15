"""D7: runs have names, tags and a baseline; they are found by these, listed, and deleted."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from commands import Done, call
from jurybox.storage import open_store
from jurybox.wiring import find_run

Jurybox = Callable[..., Done]


@pytest.fixture
def jurybox(monkeypatch: pytest.MonkeyPatch) -> Jurybox:
    run = partial(call, monkeypatch)
    run("init")
    return run


def started(jurybox: Jurybox, *options: str) -> str:
    return str(jurybox("run", "suite.yaml", *options, "--json").json["run_id"])


def shown(jurybox: Jurybox, name: str) -> str:
    done = jurybox("show", name, "--json")
    assert done.code == 0, done.err
    return str(done.json["run_id"])


def test_a_run_is_found_by_its_name_its_tags_and_its_age(jurybox: Jurybox) -> None:
    first = started(jurybox, "--name", "before", "--tag", "nightly", "--tag", "v1")
    second = started(jurybox, "--name", "after", "--tag", "nightly")
    third = started(jurybox)
    assert [shown(jurybox, name) for name in ("last", "last~1", "last~2")] == [third, second, first]
    assert [shown(jurybox, name) for name in ("before", "after")] == [first, second]
    # A tag stands for the newest run that has it.
    assert [shown(jurybox, name) for name in ("v1", "nightly")] == [first, second]
    assert jurybox("diff", "before", "last~1").code == 0
    assert jurybox("gate", "before").code == 1
    done = jurybox("show", "last~3")
    assert (done.code, done.out) == (2, "")
    assert "there are only 3 runs" in done.err
    assert "`jurybox runs` lists them" in jurybox("show", "befor").err
    assert jurybox("verify", "before").code == 0


@pytest.mark.parametrize("name", ["last", "last~1", "two words", "~x", "", "a" * 65])
def test_a_name_must_be_one_that_can_be_found(jurybox: Jurybox, name: str) -> None:
    for option in ("--name", "--tag"):
        done = jurybox("run", "suite.yaml", option, name)
        assert (done.code, done.out) == (2, "")
    assert not Path(".jurybox").exists()


def test_calibration_and_probe_runs_never_count_as_last(jurybox: Jurybox) -> None:
    mine = started(jurybox)
    probed = jurybox("bias", "last", "--probe", "2", "--json")
    assert probed.code == 0, probed.err
    rows = [json.loads(line) for line in Path("questions.jsonl").read_text().splitlines()]
    gold = [{**row, "gold": {"accuracy_score": 2, "faithfulness_score": 2}} for row in rows]
    Path("gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold))
    options = ("--rubric", "answer-quality", "--gold", "gold.jsonl")
    jurybox("calibrate", *options, "--judge", "python/judge:strict", "--rounds", "0")
    listed = jurybox("runs", "--json").json["runs"]
    suites = [str(each["suite"]) for each in listed]
    assert any("probe" in suite for suite in suites)
    assert any("calibrat" in suite for suite in suites)
    assert shown(jurybox, "last") == mine


def test_the_list_names_dataset_target_and_judge(jurybox: Jurybox) -> None:
    started(jurybox, "--name", "before", "--tag", "nightly")
    (listed,) = jurybox("runs", "--json").json["runs"]
    known = {"name": "before", "tags": ["nightly"], "dataset": "questions.jsonl"}
    known |= {"target": "recorded", "judge": "python/judge:strict"}
    assert known.items() <= listed.items()
    line = jurybox("runs").out.splitlines()[1]
    for text in ("before", "nightly", "questions.jsonl", "recorded", "python/judge:strict"):
        assert text in line


def test_a_run_is_compared_with_its_baseline(jurybox: Jurybox) -> None:
    before = started(jurybox, "--name", "before")
    rows = [json.loads(line) for line in Path("questions.jsonl").read_text().splitlines()]
    better = [{**row, "response": row["reference"]} for row in rows]
    Path("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in better))
    done = jurybox("run", "suite.yaml", "--baseline", "before")
    assert re.search(r"^against before  .*aggregate_score 0\.833 -> 0\.\d+", done.out, re.MULTILINE)
    assert f"jurybox diff {before} " in done.out
    data = json.loads(jurybox("show", "last", "--json").out)
    assert data["metadata"]["baseline"] == before
    assert data["baseline"]["run_id"] == before
    assert data["baseline"]["regressions"] == []
    assert data["baseline"]["tested"][0]["metric"]
    jurybox("run", "suite.yaml", "--filter", "id=planet", "--name", "one")
    other = jurybox("run", "suite.yaml", "--filter", "id=novel", "--baseline", "one")
    none = "no scores could be compared: no sample id is in both runs"
    assert f"against one  {none}" in other.out
    missing = jurybox("run", "suite.yaml", "--baseline", "nothing")
    assert (missing.code, missing.out) == (2, "")
    assert "no such run" in missing.err


def test_a_run_is_deleted_with_all_of_it(jurybox: Jurybox) -> None:
    first, second = started(jurybox, "--name", "before"), started(jurybox)
    refused = jurybox("runs", "--delete", "before")
    assert refused.code == 2
    assert "--yes" in refused.err
    done = jurybox("runs", "--delete", "before", "--yes")
    assert (done.code, done.err) == (0, f"deleted run {first}\n")
    assert [each["run_id"] for each in jurybox("runs", "--json").json["runs"]] == [second]
    store = open_store(".jurybox/jurybox.db")
    assert (list(store.samples(first)), list(store.exchanges(first))) == ([], [])
    assert jurybox("verify", second).code == 0
    with store.claim(second):
        held = jurybox("runs", "--delete", second, "--yes")
    assert (held.code, find_run(store, second).id) == (2, second)
    assert "another process is working on the run" in held.err
    store.close()
