"""``jurybox export`` (section I of the specification), on runs that the command itself has made."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from lazily import Lazily

parquet = Lazily("pyarrow.parquet")

JUDGES = """
def strict(prompt):
    score = 2 if "four" in prompt else 0
    return '{"accuracy_score": %d, "faithfulness_score": 2, "rationale": "Seen."}' % score
"""
SUITE = """
suite: sums
rubric: answer-quality
dataset: rows.jsonl
judge:
  models: [python/judges:strict]
"""
ROWS = [
    {"id": "right", "task": "2 + 2?", "response": "four", "latency_e2e_ms": 10},
    {"id": "wrong", "task": "2 + 2?", "response": "=SUM(2,2)", "latency_e2e_ms": 10},
]


@pytest.fixture(autouse=True)
def _run(tmp_path: Path, jurybox: Callable, once: Callable) -> None:
    def make() -> None:
        (tmp_path / "judges.py").write_text(JUDGES)
        (tmp_path / "suite.yaml").write_text(SUITE)
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        done = jurybox("run", "suite.yaml", "--allow-unpinned", "--json")
        assert done.json["status"] == "finished", done.err

    once(make)


def _change(tmp_path: Path, *statements: str) -> None:
    connection = sqlite3.connect(tmp_path / ".jurybox" / "jurybox.db")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_samples_go_to_a_file_and_a_line_to_standard_error(
    started: Callable, tmp_path: Path
) -> None:
    done = started("export", "last", "-o", "x.jsonl")
    assert (done.code, done.out) == (0, "")
    assert done.err == "wrote x.jsonl: 2 rows\n"
    records = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert [(each["id"], each["accuracy_score"]) for each in records] == [
        ("right", 2),
        ("wrong", 0),
    ]
    assert "exchanges" not in records[0]


def test_json_says_what_was_written(jurybox: Callable) -> None:
    done = jurybox("export", "last", "-o", "x.csv", "--json")
    assert done.json == {"written": "x.csv", "rows": 2}
    assert done.err == ""


def test_json_lines_can_go_to_standard_output(jurybox: Callable) -> None:
    done = jurybox("export", "last", "-o", "-", "--raw")
    assert (done.code, done.err) == (0, "")
    records = [json.loads(line) for line in done.out.splitlines()]
    assert len(records) == 2
    assert records[0]["exchanges"][0]["reply"]["text"].startswith('{"accuracy_score": 2')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("last", "-o", "x.xlsx"), "x.xlsx: `.xlsx` isn't a format of rows; end it with one of"),
        (("nosuch", "-o", "x.csv"), "nosuch: no such run; `jurybox runs` lists them"),
        (("last", "-o", "missing/x.csv"), "missing/x.csv: the folder missing does not exist"),
        (("last", "-o", "-", "--json"), "exclude each other"),
        (("last",), "missing option '-o'"),
        (("last", "-o", "x.csv", "--store", "other.db"), "other.db"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_2(
    jurybox: Callable, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = jurybox("export", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not list(tmp_path.glob("x.*"))


def test_an_unfinished_run_is_written_as_far_as_it_is(jurybox: Callable, tmp_path: Path) -> None:
    _change(
        tmp_path,
        "UPDATE runs SET status = 'stopped', outcome = NULL, digest = NULL",
        "DELETE FROM samples WHERE number = 1",
    )
    done = jurybox("export", "last", "-o", "x.jsonl")
    assert done.code == 0
    assert "is not finished: 1 of 2 samples are stored\n" in done.err
    assert "wrote x.jsonl: 1 row\n" in done.err


def test_a_damaged_run_is_3_and_the_old_file_stays(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("old")
    _change(tmp_path, "UPDATE samples SET result = '{' WHERE number = 1")
    done = jurybox("export", "last", "-o", "x.jsonl")
    assert done.code == 3
    assert "can't be read" in done.err
    assert (tmp_path / "x.jsonl").read_text() == "old"
    assert not list(tmp_path.glob(".x*"))


def test_a_reader_that_goes_away_is_no_fault(redirected: Callable) -> None:
    done = redirected("| true", "export", "last", "-o", "-")
    assert "fault" not in done.err


def test_a_full_disk_is_3(redirected: Callable) -> None:
    done = redirected(">/dev/full", "export", "last", "-o", "-")
    assert done.code == 3
    assert "no space left" in done.err


def test_a_folder_of_parquet_files_is_one_dataset(
    jurybox: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurybox.reporting.export_rows._ROWS_PER_FILE", 1)
    monkeypatch.setattr("jurybox.reporting.export_rows._MOST_ROWS", 1)
    done = jurybox("export", "last", "-o", "samples/")
    assert (done.code, done.err) == (0, "wrote samples/: 2 rows\n")
    assert sorted(each.name for each in Path("samples").iterdir()) == [
        "part-0.parquet",
        "part-1.parquet",
    ]
    jurybox("export", "last", "-o", "samples.parquet")
    parts = parquet.read_table("samples")
    assert parts.to_pylist() == parquet.read_table("samples.parquet").to_pylist()
    again = jurybox("export", "last", "-o", "samples/")
    assert again.code == 2
    assert "samples: already exists; choose a new folder, or remove this one" in again.err


def test_an_export_that_breaks_off_leaves_no_folder(jurybox: Callable, tmp_path: Path) -> None:
    _change(tmp_path, "UPDATE samples SET responses = '{' WHERE number = 1")
    assert jurybox("export", "last", "-o", "samples/").code == 3
    assert not [each for each in Path().iterdir() if "samples" in each.name]


def test_a_row_names_its_run_its_rubric_and_the_judge_of_each_vote(
    jurybox: Callable, tmp_path: Path
) -> None:
    odd = """
def odd(prompt):
    good = '{"accuracy_score": 1, "faithfulness_score": 2, "rationale": "Seen."}'
    return good if "four" in prompt else "I'm sorry."
"""
    (tmp_path / "judges.py").write_text(JUDGES + odd)
    models = "models: [python/judges:odd, python/judges:strict]\n  votes: 4"
    (tmp_path / "suite.yaml").write_text(SUITE.replace("models: [python/judges:strict]", models))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    run = jurybox("run", "suite.yaml", "--allow-unpinned", "--json").json
    right, wrong = map(json.loads, jurybox("export", "last", "-o", "-").out.splitlines())
    assert (right["run_id"], right["rubric"]) == (run["run_id"], "answer-quality 1.0.0")
    assert right["criteria"][0]["votes"] == [1, 2, 1, 2]
    names = ["python/judges:odd", "python/judges:strict"]
    assert right["vote_judges"] == names * 2
    # The judge whose votes are lost has none.
    assert (wrong["criteria"][0]["votes"], wrong["vote_judges"]) == ([0, 0], names[1:] * 2)
