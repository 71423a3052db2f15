"""Short forms: a pattern names the files of a dataset, which are read in sorted order."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Done
from jurybox import IncompleteError, load_run
from jurybox.datasets import open_dataset, survey

Call = Callable[..., Done]


def row(name: str, **more: object) -> str:
    return json.dumps({"id": name, "task": "I feel low.", "response": "What happened?", **more})


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    # The folder's own brackets are no pattern.
    home = tmp_path / "run [1]"
    (home / "data" / "more").mkdir(parents=True)
    (home / "data" / "b.jsonl").write_text(row("b1") + "\n\n" + row("b2"))
    (home / "data" / "a.jsonl").write_text(row("a1"))
    (home / "data" / "c.csv").write_text("id,task,response\nc1,I feel low.,What happened?\n")
    (home / "data" / "more" / "d.jsonl").write_text(row("d1") + "\n")
    (home / "suite.yaml").write_text("suite: s\nrubric: companion\ndataset: data/*.jsonl\n")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path / "run [1]")
    return Path()


def hashed(*names: str) -> str:
    return "sha256:" + hashlib.sha256(b"".join(Path(n).read_bytes() for n in names)).hexdigest()


@pytest.mark.parametrize(
    ("pattern", "ids", "files"),
    [
        ("data/*.jsonl", ["a1", "b1", "b2"], ["a.jsonl", "b.jsonl"]),
        ("data/[ac].*", ["a1", "c1"], ["a.jsonl", "c.csv"]),
        ("data/**/*.jsonl", ["a1", "b1", "b2", "d1"], ["a.jsonl", "b.jsonl", "more/d.jsonl"]),
    ],
)
def test_rows_are_those_of_the_files_in_sorted_order(
    pattern: str, ids: list[str], files: list[str], jurybox: Call, home: Path
) -> None:
    done = jurybox("run", "suite.yaml", "--dataset", pattern, "--json")
    assert done.code == 0, done.err
    run = load_run()
    assert [sample.id for sample in run.samples] == ids
    assert run.metadata["dataset_id"] == pattern
    found = hashed(*(str(home / "data" / name) for name in files))
    assert run.metadata["dataset_version_or_hash"] == found
    assert jurybox("verify", "last").code == 0


def test_a_suite_is_run_from_elsewhere_and_a_file_may_have_a_name_like_a_pattern(
    jurybox: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "of 3 samples" in jurybox("run", "run [1]/suite.yaml").err
    (tmp_path / "run [1]" / "data" / "*.jsonl").write_text(row("literal"))
    assert "of 1 sample" in jurybox("run", "run [1]/suite.yaml").err


@pytest.mark.usefixtures("home")
def test_a_pattern_that_matches_nothing_is_one_line(jurybox: Call) -> None:
    done = jurybox("run", "suite.yaml", "--dataset", "data/*.tsv")
    assert done.code == 2
    assert done.err == "data/*.tsv: no file matches; check the pattern\n"
    done = jurybox("run", "suite.yaml", "--dataset", "data/*")
    assert done.err == "data/more: is a folder; name a file in it\n"


def test_a_file_whose_name_could_not_be_recorded_is_refused(jurybox: Call, home: Path) -> None:
    (home / "data" / os.fsdecode(b"\xff.jsonl")).write_text(row("x"))
    done = jurybox("run", "suite.yaml")
    assert done.code == 2
    said = "data/\ufffd.jsonl: the file's name has characters that can't be printed; rename it\n"
    assert done.err == said


def test_findings_name_the_file_and_the_line(jurybox: Call, home: Path) -> None:
    (home / "data" / "a.jsonl").write_text(row("a1") + "\n{\n")
    (home / "data" / "b.jsonl").write_text(row("b1") + "\n" + row("a1") + "\n" + row("b2", task=7))
    done = jurybox("run", "suite.yaml")
    assert done.code == 2
    first, second, third = done.err.splitlines()
    assert first.startswith("data/a.jsonl:2:2: the JSON breaks off")
    assert second.startswith("data/b.jsonl:2:1: the id `a1` is given twice")
    assert "(first on data/a.jsonl, line 1)" in second
    assert third.startswith("data/b.jsonl:3:1: `task` is the number 7")


def test_a_file_of_many_that_goes_away_during_a_run_stops_it(home: Path) -> None:
    dataset = open_dataset(home, pattern="data/*.jsonl")
    rows = dataset.rows(needs_response=True, expected=survey(dataset, needs_response=True))
    assert next(rows)[1].id == "a1"
    (home / "data" / "b.jsonl").unlink()
    with pytest.raises(IncompleteError, match=r"during the run \(data/b.jsonl: no such"):
        next(rows)


BOT = """
import os, signal
from pathlib import Path

def answer(prompt):
    if Path("interrupted").exists():
        os.kill(os.getpid(), signal.SIGINT)
    return "I'm sorry to hear that. What happened?"
"""


@pytest.fixture
def _stopped(jurybox: Call, home: Path) -> None:
    for name in ("a", "b"):
        rows = [{"id": f"{name}{n}", "task": f"I am {n}."} for n in range(5)]
        (home / f"data/{name}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    (home / "bot.py").write_text(BOT)
    (home / "interrupted").touch()
    with (home / "suite.yaml").open("a") as file:
        file.write("target: python/bot:answer\nconcurrency: 1\n")
    done = jurybox("run", "suite.yaml", "--allow-unpinned", "--json")
    assert (done.code, done.json["status"]) == (3, "stopped")
    (home / "interrupted").unlink()


@pytest.mark.usefixtures("_stopped")
def test_a_run_is_resumed_with_the_files_of_its_pattern(jurybox: Call) -> None:
    done = jurybox("resume", "last", "--json")
    assert (done.code, done.json["status"]) == (0, "finished"), done.err
    assert [sample.id for sample in load_run().samples] == [
        f"{f}{n}" for f in "ab" for n in range(5)
    ]
    assert jurybox("verify", "last").code == 0


@pytest.mark.usefixtures("_stopped")
def test_other_files_or_rows_are_not_resumed(jurybox: Call, home: Path) -> None:
    data = home / "data"
    began, hint = "since the run began", "or start a new run"

    def refused() -> str:
        done = jurybox("resume", "last")
        assert done.code == 2
        assert hint in done.err
        return done.err

    (data / "aa.jsonl").write_text("")
    assert f"the dataset's files have changed {began}: `data/aa.jsonl` is new;" in refused()
    (data / "aa.jsonl").unlink()
    (data / "b.jsonl").rename(data / "c.jsonl")
    assert f"have changed {began}: `data/b.jsonl` is missing;" in refused()
    (data / "c.jsonl").rename(data / "b.jsonl")
    kept = (data / "a.jsonl").read_text()
    (data / "a.jsonl").write_text(kept.replace("I am 0", "I was 0"))
    assert "a.jsonl, line 1, sample `a0`, has a different `task`" in refused()
    (data / "a.jsonl").write_text("{" + kept)
    assert "a.jsonl:1:2: not valid JSON" in jurybox("resume", "last").err
    (data / "a.jsonl").write_text(kept)
    assert jurybox("resume", "last", "--json").json["status"] == "finished"
