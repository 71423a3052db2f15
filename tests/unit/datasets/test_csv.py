"""CSV: a header, then a record of as many cells."""

import csv
import io

import pytest

from dataset_files import CSV, findings, only_finding, read
from jurybox.datasets.row_reader import FileContext
from jurybox.datasets.source import Source
from jurybox.datasets.text_rows import read_csv
from jurybox.documents.findings import Findings
from jurybox.sample import Response, Row, Timing


def table(*rows: list[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue()


def cell(column: str, value: str) -> str:
    return table(["task", column], ["x", value])


def test_a_record_is_where_it_begins() -> None:
    text = 'task,topic\n"a\nb\nc",d\n\n   \n"e\nf"\ng,h\ni\n'
    assert findings(text, CSV) == ["7:1 wrong-cells", "10:1 wrong-cells"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "task,a\nx\n",
            (
                "2:1: the record has 1 cell, but the header has 2; "
                "put quotes around a cell that contains a separator [wrong-cells]"
            ),
        ),
        (
            'task,a\n"x"y,z\n',
            (
                "2:1: not valid CSV (',' expected after '\"'); "
                "double each quote inside quotes [csv-syntax]"
            ),
        ),
        (
            'task,a\nx,y\n"x,\nz\n',
            ("3:1: not valid CSV (a quote is never closed); close it [csv-syntax]"),
        ),
        (
            "task,a\nx\ry,z\n",
            (
                "2:1: not valid CSV (a carriage return in a cell); "
                "end lines with a line feed [csv-syntax]"
            ),
        ),
        (
            "task,,a\nx,y,z\n",
            ("1:1: column 2 of the header has no name; name it, or remove the column [bad-header]"),
        ),
        (
            "task,a, a\nx,y,z\n",
            ("1:1: the header has two columns `a`; rename one of them [bad-header]"),
        ),
        ("", "1:1: the dataset has no rows; give it at least one [no-rows]"),
        ("task,a\n", "1:1: the dataset has no rows; give it at least one [no-rows]"),
        (
            "task,a\nx\0,y\n",
            (
                "2:2: the line contains NUL characters, as in UTF-16; "
                "save the file as UTF-8 [encoding]"
            ),
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_exactly(text: str, said: str) -> None:
    assert only_finding(text, CSV) == said


@pytest.mark.parametrize(
    ("column", "value", "code"),
    [
        ("latency_e2e_ms", "fast", "wrong-type"),
        ("latency_e2e_ms", "1,5", "wrong-type"),
        ("latency_e2e_ms", "inf", "wrong-type"),
        ("input_tokens", "1.0", "wrong-type"),
        ("output_tokens", "-1", "wrong-type"),
        ("timed_out", "yes", "wrong-type"),
        ("messages", "hi", "json-syntax"),
        ("messages", '{"role": "user"}', "wrong-type"),
        ("metadata", "{'a': 1}", "json-syntax"),
        ("metadata", '{"a": 1, "a": 2}', "duplicate-key"),
        ("metadata", "[]", "wrong-type"),
        ("reference", "  ", "blank"),
    ],
)
def test_a_cell_is_read_strictly(column: str, value: str, code: str) -> None:
    assert findings(cell(column, value), CSV) == [f"2:1 {code}"]


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("True", True), ("FALSE", False)])
def test_a_flag_may_be_in_any_case(text: str, *, flag: bool) -> None:
    rows = read(table(["task", "answer", "timed_out"], ["x", "y", text]), CSV, needs_response=True)
    assert rows[0].response == Response(text="y", timing=Timing(timed_out=flag))


def test_a_quote_that_is_never_closed_does_not_fill_the_memory() -> None:
    text = b'task,a\nx,y\n"' + b"x,y\n" * 100
    source = Source(io.BytesIO(text), "x", size=len(text), most=100)
    findings = Findings()
    assert len(list(read_csv(source, FileContext(findings)))) == 1
    assert [str(each) for each in findings.in_order()] == [
        "3:1: the record is longer than 0.0001 MB; close its last quote [too-long]"
    ]


@pytest.mark.parametrize("name", [CSV, "rows.tsv"])
@pytest.mark.parametrize(
    "text",
    ["id;task\n1;a, b\n", "id\ttask\n1\ta, b\n", 'id;"task"\n"1";"a, b"\n', "id|task\n1|a, b"],
)
def test_the_header_shows_what_separates_the_cells(text: str, name: str) -> None:
    assert read(text, name) == [Row(id="1", task="a, b")]
