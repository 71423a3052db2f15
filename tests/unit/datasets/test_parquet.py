"""Parquet: the same rows, from columns."""

import datetime as dt
import decimal
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from dataset_files import dataset, read, refusal
from jurybox.datasets import DatasetError, open_dataset, survey
from jurybox.errors import InputError
from jurybox.sample import Row, Turn
from lazily import Lazily

pa = Lazily("pyarrow")
pq = Lazily("pyarrow.parquet")

PARQUET = Path("rows.parquet")


def write(columns: dict[str, Any], **options: Any) -> bytes:  # noqa: ANN401 - as the writer has it
    pq.write_table(pa.table(columns), PARQUET, **options)
    return PARQUET.read_bytes()


def rows(columns: dict[str, Any], *, needs_response: bool = False) -> list[Row]:
    return read(write(columns), PARQUET.name, needs_response=needs_response)


def findings(columns: dict[str, Any]) -> list[str]:
    return [str(each) for each in refusal(write(columns), PARQUET.name).findings]


def test_rows_are_numbered_across_groups_and_batches() -> None:
    columns = {"task": [f"task {number}" for number in range(3000)]}
    opened = dataset(write(columns, row_group_size=700), PARQUET.name)
    found = list(opened.rows(needs_response=False))
    assert [number for number, _ in found] == list(range(1, 3001))
    assert [row.task for _, row in found] == columns["task"]
    assert [row.id for _, row in found] == [str(number) for number in range(1, 3001)]


def test_messages_and_metadata_may_be_json_texts() -> None:
    found = rows(
        {
            "task": ["x", "y"],
            "messages": ['[{"role": "user", "content": "Hi"}]', ""],
            "metadata": ['{"a": {"b": 1}}', None],
        }
    )
    assert found[0].messages == (Turn(role="user", content="Hi"),)
    assert found[0].metadata == {"a": {"b": 1}}
    assert (found[1].messages, found[1].metadata) == ((), {})


def test_faults_have_the_number_of_their_row() -> None:
    found = findings(
        {
            "id": ["a", "b", "a", "c"],
            "task": ["x", " ", "z", "v"],
            "metadata": ["{}", "{}", "{}", "{"],
            "input_tokens": [1, 2, 3, -4],
        }
    )
    assert found == [
        "2:1: `task` is blank; give a string, or leave it out [blank]",
        "3:1: the id `a` is given twice (first on row 1); give every row its own [duplicate-id]",
        (
            "4:1: in the column `metadata`: the JSON breaks off "
            "(expecting property name enclosed in double quotes); "
            "complete it, on one line [json-syntax]"
        ),
        "4:1: `input_tokens` is the number -4; give a whole number from 0 to 1e15 [wrong-type]",
    ]


def test_dates_and_decimals_of_one_s_own_are_kept_as_texts() -> None:
    own = {
        "day": [dt.date(2024, 2, 29)],
        "nanosecond": pa.array([1], pa.timestamp("ns")),
        "time": [dt.time(1, 2, 3)],
        "price": [decimal.Decimal("1.50")],
    }
    assert rows({"task": ["x"], **own})[0].metadata == {
        "day": "2024-02-29",
        "nanosecond": "1970-01-01 00:00:00.000000001",
        "time": "01:02:03.000000",
        "price": "1.50",
    }


@pytest.mark.parametrize("value", [b"x", {"bytes": b"x"}, [b"x"]])
def test_what_can_not_be_kept_is_left_out_with_a_warning(value: object) -> None:
    opened = dataset(write({"task": ["x"], "image": [value], "a.b": [1]}), PARQUET.name)
    assert [row.metadata for _, row in opened.rows(needs_response=False)] == [{"a.b": 1}]
    (warning,) = survey(opened, needs_response=False).warnings
    assert warning.startswith("the column `image` is left out: values of type ")


@pytest.mark.parametrize("name", ["task", "reference", "latency_e2e_ms", "metadata"])
def test_a_field_of_an_unfit_type_is_refused_once(name: str) -> None:
    columns = {"task": ["x"] * 5, name: [b"x"] * 5}
    assert findings(columns) == [
        f"1:1: the column `{name}` is of type binary; store plain strings and numbers [wrong-type]"
    ]


def test_nan_counts_as_absent_in_a_column_of_one_s_own() -> None:
    found = rows({"task": ["x", "y"], "own": pa.array([float("nan"), 1.0])})
    assert [row.metadata for row in found] == [{}, {"own": 1.0}]


def test_the_index_that_pandas_stores_is_no_column() -> None:
    assert rows({"task": ["x"], "__index_level_0__": [0]})[0].metadata == {}


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 10, b'{"task": "x"}\n' * 100])
def test_what_is_no_parquet_is_refused(data: bytes) -> None:
    (found,) = refusal(data, PARQUET.name).findings
    assert (found.line, found.code) == (1, "parquet")


def test_without_pyarrow_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    write({"task": ["x"]})

    def missing(name: str, *_: object) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(InputError) as caught:
        open_dataset(PARQUET)
    assert str(caught.value) == (
        "Parquet needs pyarrow; install it with: pip install 'jurybox[parquet]'"
    )


def repeated(text: str, count: int, compression: str) -> bytes:
    """Return a file whose rows all have the same text, which is stored once."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([text]))
    columns = {"id": pa.array(list(map(str, range(count)))), "task": column, "response": column}
    return write(columns, compression=compression, use_dictionary=["task", "response"])


def test_a_file_that_unpacks_to_far_more_than_it_has_is_refused() -> None:
    data = repeated("x" * 3_000_000, 512, "zstd")
    assert len(data) < 2000
    (finding,) = refusal(data, PARQUET.name).findings
    assert " bytes unpack to 6,00" in finding.problem


def test_a_column_that_contradicts_its_statistics_is_refused() -> None:
    sound = write({"task": ["t"], "response": ["r"]})
    # The column can't be null any more. Asked about it, pyarrow would end the process.
    damaged = sound.replace(b"%\x02\x18\x04task", b"%\x00\x18\x04task")
    assert damaged != sound
    (finding,) = refusal(damaged, PARQUET.name).findings
    assert finding.code == "parquet"
    assert "Definition level histogram size mismatch" in finding.problem


def test_few_long_rows_are_read_at_once() -> None:
    chance = random.Random(1)  # noqa: S311 - nothing secret
    text = "".join(chance.choices("abcdefgh ", k=3000)) * 1000
    tracemalloc.start()
    rows = dataset(repeated(text, 512, "gzip"), PARQUET.name).rows(needs_response=True)
    _, first = next(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert first.task == text
    # In batches of 512 rows, it would be 3 GB.
    assert peak < 200_000_000


def sliced(numbers: range) -> list[Row]:
    found = open_dataset(Path(), pattern="part*.parquet", columns={})
    return [*found.rows_between(numbers, needs_response=False)]


@pytest.mark.parametrize("ids", [True, False])
def test_some_rows_of_several_files_are_those_of_a_whole_pass(*, ids: bool) -> None:
    for part, size in enumerate((25, 1, 30)):
        numbers = [part * 100 + each for each in range(size)]
        columns = {"task": [f"Task {each}" for each in numbers]}
        columns |= {"id": [f"r{each}" for each in numbers]} if ids else {}
        pq.write_table(pa.table(columns), f"part{part}.parquet", row_group_size=10)
    whole = open_dataset(Path(), pattern="part*.parquet")
    every = [row for _, row in whole.rows(needs_response=False)]
    slices = whole.slices()
    assert slices == [
        range(10), range(10, 20), range(20, 25), range(25, 26),
        range(26, 36), range(36, 46), range(46, 56),
    ]  # fmt: skip
    for start in range(0, 56, 5):
        for stop in range(start + 1, 57, 6):
            assert sliced(range(start, stop)) == every[start:stop]


def test_rows_are_read_without_the_groups_before_and_behind_them() -> None:
    texts = [f"Task {each} " + "x" * 1000 for each in range(30)]
    data = bytearray(write({"task": texts}, row_group_size=10, compression="none"))
    for number in (3, 25):
        place = data.index(f"Task {number} ".encode())
        data[place - 400 : place + 900] = bytes(1300)
    PARQUET.write_bytes(data)
    found = open_dataset(PARQUET)
    rows = [*found.rows_between(range(12, 18), needs_response=False)]
    assert [row.task for row in rows] == texts[12:18]
    assert [row.id for row in rows] == [str(number + 1) for number in range(12, 18)]


def test_a_part_lacks_a_column_that_another_has() -> None:
    pq.write_table(pa.table({"task": ["a"] * 5, "answer": ["b"] * 5}), "part0.parquet")
    pq.write_table(pa.table({"task": ["a"] * 5}), "part1.parquet")
    found = open_dataset(Path(), pattern="part*.parquet", columns={"reference": "answer"})
    rows = found.rows_between(range(3, 8), needs_response=False)
    assert [row.reference for row in rows] == ["b", "b", None, None, None]
    part = found.survey_between(range(5, 10), needs_response=False, check=lambda _: None)
    assert part.unseen == {"reference"}


def test_a_fault_in_a_slice_is_found_in_its_file() -> None:
    pq.write_table(pa.table({"task": ["a"] * 10}), "part0.parquet")
    pq.write_table(pa.table({"task": ["a"] * 5 + [None] * 5}), "part1.parquet")
    with pytest.raises(DatasetError, match=r"part1.parquet:.*no `task`"):
        sliced(range(12, 20))


def test_rows_that_are_filtered_have_no_slices() -> None:
    write({"task": ["a", "b"], "scenario": ["x", "y"]})
    assert open_dataset(PARQUET).slices() == [range(2)]
    assert open_dataset(PARQUET, filters=["scenario=x"]).slices() is None
