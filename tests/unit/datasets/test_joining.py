"""Recorded responses from a file of their own."""

import json
from pathlib import Path

import pytest

from jurybox.datasets import DatasetError, open_dataset, survey
from jurybox.sample import Row

ROWS = [{"id": "a", "task": "Hi", "response": "old"}, {"id": 7, "task": "Bye"}]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows_of(tmp_path: Path, answers: list[dict[str, object]]) -> list[Row]:
    dataset = open_dataset(
        write(tmp_path / "rows.jsonl", ROWS), write(tmp_path / "answers.jsonl", answers)
    )
    return [row for _, row in dataset.rows(needs_response=True)]


def findings(tmp_path: Path, answers: list[dict[str, object]]) -> list[str]:
    with pytest.raises(DatasetError) as caught:
        rows_of(tmp_path, answers)
    return [f"{caught.value.where.rpartition('/')[2]}:{each}" for each in caught.value.findings]


def test_a_csv_may_answer_json_lines(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("id,response\na,One\n7,Two\n", encoding="utf-8")
    dataset = open_dataset(write(tmp_path / "rows.jsonl", ROWS), tmp_path / "answers.csv")
    texts = [row.response and row.response.text for _, row in dataset.rows(needs_response=True)]
    assert texts == ["One", "Two"]
    assert dataset.recorded is not None


def test_what_is_wrong_with_the_responses_is_said_with_its_line(tmp_path: Path) -> None:
    answers: list[dict[str, object]] = [
        {"response": "x"},
        {"id": "a", "response": "x"},
        {"id": "a", "response": "y"},
        {"id": "b", "text": "z"},
    ]
    assert findings(tmp_path, answers) == [
        (
            "answers.jsonl:1:1: the response has no `id`; "
            "give the id of the sample that it answers [missing-field]"
        ),
        (
            "answers.jsonl:3:1: the id `a` is given twice (first on line 2); "
            "give each sample one response [duplicate-id]"
        ),
        (
            "answers.jsonl:4:1: the row has no `response`; "
            "add it, or rename one of its columns [missing-field]"
        ),
    ]


def test_a_sample_without_a_response_is_named(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, [{"id": "a", "response": "x"}])
    assert found.startswith("rows.jsonl:2:1: the sample `7` has no response in ")
    (found,) = findings(tmp_path, [{"id": "b", "response": "x"}])
    assert found.startswith("rows.jsonl:1:1: the sample `a` has no response in ")
    assert "answers.jsonl, and 1 more have none; " in found


def test_rows_without_ids_are_joined_by_their_number(tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.jsonl", [{"task": "Hi"}, {"task": "Bye"}])
    answers = write(
        tmp_path / "answers.jsonl", [{"id": 2, "response": "two"}, {"id": 1, "response": "one"}]
    )
    found = [row for _, row in open_dataset(rows, answers).rows(needs_response=True)]
    assert [row.response and row.response.text for row in found] == ["one", "two"]


def test_responses_that_answer_no_sample_are_told(tmp_path: Path) -> None:
    answers = write(
        tmp_path / "answers.jsonl",
        [{"id": each, "response": "x"} for each in ("a", "7", "stray")],
    )
    dataset = open_dataset(write(tmp_path / "rows.jsonl", ROWS), answers)
    (warning,) = survey(dataset, needs_response=True).warnings
    assert warning.endswith("answer no sample: `stray`")
