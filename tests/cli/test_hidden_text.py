"""Texts with hidden characters: in files for people nothing is hidden, in data nothing is lost."""

import csv
import json
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

# A C1 control, an override of direction, a zero-width space, a tag, a selector, half a character.
HIDDEN = "\x9b31m\u202e\u2066\u200b\U000e0041\U000e0101\x7f"
TEXT = f"right{HIDDEN}wrong"
ROWS = [
    {"id": "a", "task": TEXT, "response": TEXT, "context": TEXT, "reference": TEXT},
    {"id": "b\u202e", "task": TEXT, "response": TEXT},
]
SUITE = """\
suite: hidden
rubric: general
dataset: rows.jsonl
judge: {models: [python/judges:bad], votes: 1}
"""
JUDGE = f"def bad(prompt):\n    return {TEXT!r}\n"


@pytest.fixture
def run(jurybox: Callable) -> Callable:
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    Path("suite.yaml").write_text(SUITE)
    Path("judges.py").write_text(JUDGE)
    done = jurybox("run", "suite.yaml", "--allow-unpinned", "--json")
    assert done.json["status"] == "finished", done.err
    return jurybox


def hidden_in(text: str) -> set[str]:
    return {char for char in text if char in HIDDEN and unicodedata.category(char)[0] in "CM"}


@pytest.mark.parametrize("name", ["x.json", "x.junit.xml", "x.md", "x.html"])
def test_no_report_hides_anything(run: Callable, name: str) -> None:
    assert run("report", "last", "-o", name).code == 0
    text = Path(name).read_text()
    assert hidden_in(text) == set()
    assert ("b\\u202e" if name == "x.json" else "b\ufffd") in text


@pytest.mark.parametrize("raw", [(), ("--raw",)])
def test_exported_lines_have_escapes_and_the_whole_text(
    run: Callable, raw: tuple[str, ...]
) -> None:
    printed = run("export", "last", "-o", "-", *raw).out
    assert hidden_in(printed) == set()
    run("export", "last", "-o", "x.jsonl", *raw)
    assert Path("x.jsonl").read_text() == printed
    rows = [json.loads(line) for line in printed.splitlines()]
    assert rows[0]["response"] == TEXT
    assert rows[1]["id"] == "b\u202e"


def test_tables_for_programs_have_the_text_itself(run: Callable) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("x.csv", "x.parquet"):
        assert run("export", "last", "-o", name).code == 0
    with Path("x.csv").open(newline="") as file:
        assert [row["task"] for row in csv.DictReader(file)] == [TEXT, TEXT]
    assert parquet.read_table("x.parquet")["task"].to_pylist() == [TEXT, TEXT]
