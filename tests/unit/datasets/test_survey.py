"""Looking over a dataset before the first call, and reading it once more for the run."""

import itertools
import os
from pathlib import Path

import pytest

from dataset_files import dataset, findings, jsonl, refusal
from jurybox.datasets import Dataset, DatasetError, Survey, open_dataset, survey
from jurybox.errors import IncompleteError, InputError

TEXT = jsonl({"id": "a", "task": "x"}, {"id": "b", "task": "y"}, {"id": "c", "task": "z"})


def look(opened: Dataset) -> Survey:
    return survey(opened, needs_response=False)


def tasks(opened: Dataset, expected: Survey | None = None) -> list[str]:
    return [row.task for _, row in opened.rows(needs_response=False, expected=expected)]


def test_ids_given_twice_are_refused_with_both_lines() -> None:
    text = TEXT + jsonl({"id": "b", "task": "v"}, {"id": "d", "task": "w"}, {"id": "b", "task": ""})
    assert str(refusal(text)) == (
        "rows.jsonl:4:1: the id `b` is given twice (first on line 2); "
        "give every row its own [duplicate-id]\n"
        "rows.jsonl:6:1: `task` is blank; give a string, or leave it out [blank]"
    )


def test_all_ids_given_twice_are_cut_short() -> None:
    rows = [{"id": number % 3000, "task": "x"} for number in range(6000)]
    found = findings(jsonl(*rows))
    assert len(found) == 101
    assert [each.partition(" ")[2] for each in found] == ["duplicate-id"] * 100 + ["too-many"]


@pytest.mark.parametrize(
    ("now", "how"),
    [
        (TEXT.replace('"z"', '"w"'), "its SHA-256 differs"),
        (TEXT + "\n", "its size differs"),
        ("", "its size differs"),
        (TEXT.replace('"b"', '""""'[:3]), r"rows.jsonl:2:10: not valid JSON"),
    ],
)
def test_a_dataset_that_changed_since_the_survey_is_refused(now: str, how: str) -> None:
    opened = dataset(TEXT)
    found = look(opened)
    dataset(now)
    with pytest.raises(IncompleteError) as caught:
        tasks(opened, found)
    assert str(caught.value).startswith(f"rows.jsonl: the dataset changed during the run ({how}")


def test_a_file_that_is_replaced_during_the_run_is_read_to_its_end() -> None:
    opened = dataset(TEXT)
    rows = opened.rows(needs_response=False, expected=look(opened))
    next(rows)
    Path("new.jsonl").write_text("x")
    Path("new.jsonl").rename("rows.jsonl")
    assert [row.id for _, row in rows] == ["b", "c"]


def test_who_stops_early_has_nothing_checked() -> None:
    opened = dataset(TEXT)
    found = look(opened)
    dataset(TEXT.replace('"z"', '"w"'))
    rows = opened.rows(needs_response=False, expected=found)
    assert [row.id for _, row in itertools.islice(rows, 2)] == ["a", "b"]


def test_the_first_fault_ends_a_reading_that_nobody_surveyed() -> None:
    rows = dataset(f"{TEXT}x\n{{}}\n{TEXT}").rows(needs_response=False)
    taken: list[str] = []
    with pytest.raises(DatasetError) as caught:
        taken.extend(row.id for _, row in rows)
    assert [each.line for each in caught.value.findings] == [4]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "rows.txt",
            (
                "a `.txt` file can't be a dataset; "
                "use one of `.jsonl`, `.ndjson`, `.json`, `.csv`, `.tsv`, `.parquet`, `.yaml`, "
                "`.yml`"
            ),
        ),
        (
            "rows",
            (
                "a file without an extension can't be a dataset; "
                "use one of `.jsonl`, `.ndjson`, `.json`, `.csv`, `.tsv`, `.parquet`, `.yaml`, "
                "`.yml`"
            ),
        ),
        ("rows.jsonl.gz", "a `.gz` file can't be a dataset; unpack it first"),
    ],
)
def test_a_file_of_another_kind_is_refused(name: str, said: str) -> None:
    Path(name).write_text(TEXT)
    with pytest.raises(InputError) as caught:
        open_dataset(Path(name))
    assert str(caught.value) == f"{name}: {said}"


@pytest.mark.parametrize("name", ["rows.JSONL", "rows.ndjson"])
def test_an_ending_may_be_written_in_capitals_or_otherwise(name: str) -> None:
    assert tasks(dataset(TEXT, name)) == ["x", "y", "z"]


def test_a_file_that_is_gone_later_is_refused() -> None:
    opened = dataset(TEXT)
    Path("rows.jsonl").unlink()
    with pytest.raises(InputError, match=r"^rows\.jsonl: no such file"):
        look(opened)


def test_a_folder_is_refused() -> None:
    Path("rows.jsonl").mkdir()
    with pytest.raises(InputError, match=r"^rows\.jsonl: is a folder; name a file in it$"):
        open_dataset(Path("rows.jsonl"))


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.csv", "rows.parquet"])
def test_a_pipe_is_refused_and_not_waited_for(name: str) -> None:
    os.mkfifo(name)
    with pytest.raises(InputError, match="not a file that can be read twice"):
        open_dataset(Path(name))


def test_a_name_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(InputError, match=r"can't be read \(.*null"):
        open_dataset(Path("a\0.jsonl"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused() -> None:
    dataset(TEXT)
    Path("rows.jsonl").chmod(0)
    with pytest.raises(InputError, match=r"can't be read \(permission denied\)"):
        open_dataset(Path("rows.jsonl"))


def test_a_strange_name_is_shown_safely() -> None:
    with pytest.raises(InputError) as caught:
        open_dataset(Path("a\x1b[31m\udc80.jsonl"))
    assert str(caught.value) == "a\ufffd[31m\ufffd.jsonl: no such file; check the path"
