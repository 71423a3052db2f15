"""What was written comes back, and no file makes a reader raise anything but findings."""

import csv
import io
import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from jurybox.datasets import DatasetError, open_dataset, survey
from jurybox.datasets.dataset import Dataset
from jurybox.documents.findings import Findings
from jurybox.sample import Response, Row, Timing, Turn, Usage, emptiness
from lazily import Lazily

pa = Lazily("pyarrow")
pq = Lazily("pyarrow.parquet")

# What readers trip over. A NUL isn't here: in a cell it tells of UTF-16.
TEXTS = st.text("aé😀\u2028\x1b\ufeff\n\r\t \\\"',;:{}[]", max_size=8)
FILLED = TEXTS.filter(lambda text: bool(text.strip()))
NUMBERS = st.floats(0, 1e9)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def rows(draw: DrawFn, number: int) -> Row:
    metadata = draw(st.dictionaries(TEXTS, JSON, max_size=2))
    text, timed_out = draw(FILLED), draw(st.booleans())
    return Row(
        id=f"{number}-{draw(st.sampled_from(['a', 'é', '😀', ' ']))}",
        task=draw(FILLED),
        reference=draw(st.none() | FILLED),
        context=draw(st.none() | FILLED),
        messages=tuple(
            Turn(role=role, content=content)
            for role, content in draw(
                st.lists(
                    st.tuples(st.sampled_from(["system", "user", "assistant"]), TEXTS), max_size=2
                )
            )
        ),
        scenario=draw(st.none() | FILLED),
        metadata=metadata,
        response=Response(
            text=text,
            timing=Timing(
                latency_e2e_ms=draw(st.none() | NUMBERS),
                latency_model_ms=draw(st.none() | NUMBERS),
                timed_out=timed_out,
            ),
            usage=Usage(
                input_tokens=draw(st.none() | st.integers(0, 10**9)),
                output_tokens=draw(st.none() | st.integers(0, 10**9)),
            ),
            error=None if timed_out else emptiness(text),
        ),
        response_b=draw(
            st.none() | FILLED.map(lambda text: Response(text=text, error=emptiness(text)))
        ),
    )


@st.composite
def several(draw: DrawFn) -> list[Row]:
    return [draw(rows(number)) for number in range(draw(st.integers(1, 3)))]


def columns_of(row: Row) -> dict[str, Any]:
    response = row.response or Response(text="")
    return {
        "id": row.id,
        "task": row.task,
        "reference": row.reference,
        "context": row.context,
        "messages": [{"role": turn.role, "content": turn.content} for turn in row.messages],
        "scenario": row.scenario,
        "metadata": row.metadata,
        "response": response.text,
        "response_b": None if row.response_b is None else row.response_b.text,
        "latency_e2e_ms": response.timing.latency_e2e_ms,
        "latency_model_ms": response.timing.latency_model_ms,
        "timed_out": response.timing.timed_out,
        "input_tokens": response.usage.input_tokens,
        "output_tokens": response.usage.output_tokens,
    }


def read(name: str) -> list[Row]:
    opened = open_dataset(Path(name))
    found = survey(opened, needs_response=True)
    return [row for _, row in opened.rows(needs_response=True, expected=found)]


@given(several(), st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
def test_rows_come_back_from_json_lines(
    given_rows: list[Row], plain: bool, separators: tuple[str, str]  # noqa: FBT001 - drawn
) -> None:  # fmt: skip
    lines = [
        json.dumps(columns_of(row), ensure_ascii=plain, separators=separators) for row in given_rows
    ]
    Path("rows.jsonl").write_text("\n".join(lines), encoding="utf-8", newline="")
    assert read("rows.jsonl") == given_rows


@given(several())
def test_rows_come_back_from_csv(given_rows: list[Row]) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(columns_of(given_rows[0])))
    writer.writeheader()
    for row in given_rows:
        columns = columns_of(row)
        columns["messages"] = json.dumps(columns["messages"])
        columns["metadata"] = json.dumps(columns["metadata"])
        writer.writerow(columns)
    Path("rows.csv").write_bytes(text.getvalue().encode())
    assert read("rows.csv") == given_rows


@given(several())
def test_rows_come_back_from_parquet(given_rows: list[Row]) -> None:
    records = [columns_of(row) for row in given_rows]
    for record in records:
        record["metadata"] = json.dumps(record["metadata"])
    schema = pa.schema(
        {
            **dict.fromkeys(records[0], pa.string()),
            "messages": pa.list_(pa.struct({"role": pa.string(), "content": pa.string()})),
            "latency_e2e_ms": pa.float64(),
            "latency_model_ms": pa.float64(),
            "timed_out": pa.bool_(),
            "input_tokens": pa.int64(),
            "output_tokens": pa.int64(),
        }
    )
    pq.write_table(pa.Table.from_pylist(records, schema), "rows.parquet")
    assert read("rows.parquet") == given_rows


SNIPPETS = [
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\n", b"\r", b"\\", b"\\u", b"\\ud800", b"\0",
    b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"null", b"NaN", b"1e999", b"-", b"0", b'"id"',
    b'"task"', b'"id": 1,', b'"task": "x",', b'"metadata": {},', b'"messages": [],', b";", b"\t",
    b'""', b"true", b"\xc3\xa9", b"\xe2\x80\xa8", b'"timed_out": true,', b"{}", b"9" * 5000,
]  # fmt: skip
SEEDS = [
    (
        b'{"id": "a", "task": "x: y", "response": "z", "metadata": {"a": [1]}}\n'
        b'{"id": 2, "question": "x", "timed_out": true, "latency_e2e_ms": 1.5}\n'
        b'{"id": "c", "input": "x", "output": "", "messages": [{"role": "user", "content": "a"}]}\n'
    ),
    (
        b"id,task,response,latency_e2e_ms,timed_out,metadata\n"
        b'1,"a ""b""\nc",r,1.5,TRUE,"{""a"": 1}"\n'
        b"2,b,r,,,\n"
    ),
]


@st.composite
def mutated(draw: DrawFn) -> bytes:
    """A sound file after a few slips."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 2)):
            case 0:
                data = data[:at] + draw(st.sampled_from(SNIPPETS)) + data[at:]
            case 1:
                data = data[:at] + data[at + draw(st.integers(1, 20)) :]
            case _:
                data = data[:at] + draw(st.binary(min_size=1, max_size=3)) + data[at + 1 :]
    return data


def all_rows(opened: Dataset) -> list[tuple[int, Row]]:
    """Every sound row, whatever is wrong with the others."""
    return list(opened.begin(Findings(), needs_response=False))


@settings(max_examples=settings.default.max_examples * 4)
@given(
    mutated() | st.binary(max_size=100),
    st.sampled_from(["rows.jsonl", "rows.csv", "rows.tsv"]),
)
def test_no_bytes_make_a_reader_raise_anything_but_findings(data: bytes, name: str) -> None:
    path = Path(name)
    path.write_bytes(data)
    opened = open_dataset(path)
    lines = data.count(b"\n") + 1
    error = None
    try:
        found = survey(opened, needs_response=False)
    except DatasetError as caught:
        error = caught
    else:
        taken = list(opened.rows(needs_response=False, expected=found))
        assert taken == all_rows(opened)
        assert len({row.id for _, row in taken}) == len(taken) == found.rows
        json.dumps([columns_of(row) for _, row in taken], ensure_ascii=False).encode()
    for finding in () if error is None else error.findings:
        assert 1 <= finding.line <= lines
        assert finding.column >= 1
        assert str(finding).isprintable()
    assert error is None or error.findings
