"""The rows of a run in a file: streamed, in each of the formats."""

import csv
import io
import json
import string
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jurybox.engine.records import SampleRow
from jurybox.errors import IncompleteError, InputError
from jurybox.reporting import export_rows
from jurybox.reporting.export_rows import (
    export_run,
    export_writer,
    write_csv,
    write_json_lines,
    write_parquet,
)

GOOD = '{"accuracy_score": 2, "faithfulness_score": 1, "rationale": "Right; one guess."}'


def exported(made: object, *, raw: bool = False) -> list[dict]:
    file = io.BytesIO()
    export_run(made.store, made.row, file, write_json_lines, raw=raw)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_a_missing_exchange_is_told_and_not_left_out(
    make_run: Callable, row: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_run([row("q1")], lambda _: GOOD)
    monkeypatch.setattr(made.store, "exchanges", lambda _: iter(()))
    with pytest.raises(IncompleteError, match=r"run run-a can't be read .*verify"):
        exported(made, raw=True)


class _Counting:
    """Yields the same sample over and over, and holds how many were written by then."""

    def __init__(self, sample: SampleRow, file: io.BytesIO) -> None:
        self._sample = sample
        self._file = file
        self.behind: list[int] = []

    def reviews(self, run_id: str) -> list[object]:
        del run_id
        return []

    def samples(self, run_id: str) -> Iterator[SampleRow]:
        del run_id
        for count in range(50):
            self.behind.append(count - self._file.getvalue().count(b"\n"))
            yield self._sample


def test_rows_are_written_as_they_are_read(make_run: Callable, row: Callable) -> None:
    made = make_run([row("q1")], lambda _: GOOD)
    (sample,) = made.store.samples(made.row.id)
    file = io.BytesIO()
    counting = _Counting(sample, file)
    assert export_run(counting, made.row, file, write_json_lines) == 50
    assert max(counting.behind) == 0


def test_csv_holds_the_same_as_json_lines(make_run: Callable, row: Callable) -> None:
    text = '1+1, "quoted"\r\nand\ron'
    made = make_run([row("a", text, metadata={"k": [1, None]}), row("b")], lambda _: GOOD)
    file = io.BytesIO()
    export_run(made.store, made.row, file, write_csv)
    table = list(csv.DictReader(io.StringIO(file.getvalue().decode(), newline="")))
    records = exported(made)
    assert {*records[0]} - {*table[0]} >= {"reference", "response_b", "reviews", "target_error"}
    assert list(table[0]) == [name for name in records[0] if name in table[0]]
    # Named by the specification, so they are there without a value too.
    assert table[0]["stable"] == table[0]["evaluator_error"] == ""
    assert table[0]["response"] == text
    assert table[0]["accuracy_score"] == "2"
    assert table[0]["passed"] == "true"
    assert json.loads(table[0]["criteria"]) == records[0]["criteria"]
    assert json.loads(table[0]["metadata"]) == {"k": [1, None]}


@example(["\n=1+1", "\uff1d1+1"])
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=2))
def test_a_cell_of_csv_reads_back_as_the_text_it_was_unless_it_is_a_formula(
    texts: list[str],
) -> None:
    columns = dict.fromkeys("ab", "text")
    file = io.BytesIO()
    write_csv(file, columns, [dict(zip("ab", texts, strict=True))])
    lines = list(csv.reader(io.StringIO(file.getvalue().decode(), newline="")))
    formula = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
    cells = [f"'{text}" if text.startswith(formula) else text for text in texts]
    used = [name for name, text in zip("ab", texts, strict=True) if text]
    assert lines == [used, [cell for cell in cells if cell]]


def test_csv_leaves_out_columns_without_a_value_in_any_row() -> None:
    rows = [{"a": None, "b": 0, "c": [], "d": "x"}, {"a": "", "b": None, "c": {}, "d": None}]
    columns = dict.fromkeys("abcd", "json")
    file = io.BytesIO()
    assert write_csv(file, columns, rows) == 2
    assert file.getvalue() == b"b,d\r\n0,x\r\n,\r\n"
    file = io.BytesIO()
    assert write_csv(file, columns, []) == 0
    assert file.getvalue() == b"a,b,c,d\r\n"


def test_numbers_of_csv_are_no_formulas() -> None:
    file = io.BytesIO()
    write_csv(file, {"a": "number", "b": "text"}, [{"a": -0.5, "b": "=1+1"}])
    assert file.getvalue() == b"a,b\r\n-0.5,'=1+1\r\n"


def test_parquet_has_fixed_types_and_the_same_rows(make_run: Callable, row: Callable) -> None:
    import pyarrow.parquet

    made = make_run([row("a"), row("b", "", late=True)], lambda _: GOOD)
    file = io.BytesIO()
    assert export_run(made.store, made.row, file, write_parquet, raw=True) == 2
    table = pyarrow.parquet.read_table(io.BytesIO(file.getvalue()))
    types = {field.name: str(field.type) for field in table.schema}
    assert types["accuracy_score"] == types["latency_e2e_ms"] == "double"
    assert types["input_tokens"] == types["repeat"] == "int64"
    assert types["passed"] == "bool"
    assert types["criteria"] == types["exchanges"] == types["id"] == "string"
    records = exported(made, raw=True)
    assert table.column_names == list(records[0])
    for line, record in zip(table.to_pylist(), records, strict=True):
        for name, value in record.items():
            nested = isinstance(value, list | dict)
            assert (json.loads(line[name]) if nested else line[name]) == value


def test_parquet_groups_are_bounded_by_rows_and_by_characters(
    make_run: Callable, row: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet

    made = make_run([row(letter) for letter in string.ascii_lowercase[:5]], lambda _: GOOD)

    def groups() -> int:
        file = io.BytesIO()
        export_run(made.store, made.row, file, write_parquet)
        return pyarrow.parquet.ParquetFile(io.BytesIO(file.getvalue())).num_row_groups

    assert groups() == 1
    monkeypatch.setattr(export_rows, "_MOST_ROWS", 2)
    assert groups() == 3
    monkeypatch.setattr(export_rows, "_MOST_CHARACTERS", 1)
    assert groups() == 5


def test_parquet_without_its_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(InputError, match=r"jurybox\[parquet\]"):
        export_writer("x.parquet")
    assert export_writer("x.csv") is write_csv
