"""A dataset is never held whole, however long it is."""

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from jurybox.datasets import open_dataset, survey

MEGABYTE = 1_000_000


def write_json_lines(rows: int) -> Path:
    path = Path("rows.jsonl")
    with path.open("w") as file:
        for number in range(rows):
            record = {"id": f"q-{number}", "task": f"What is {number} plus one?" + "x" * 400}
            file.write(json.dumps(record) + "\n")
    return path


def write_csv(rows: int) -> Path:
    path = Path("rows.csv")
    with path.open("w") as file:
        file.write("id,task\n")
        for number in range(rows):
            file.write(f'q-{number},"What is {number} plus one? {"x" * 400}"\n')
    return path


def peak_of(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("write", [write_json_lines, write_csv])
def test_reading_takes_the_same_memory_for_any_number_of_rows(
    write: Callable[[int], Path],
) -> None:
    # More than one piece of the file even for the short one.
    path = write(1_500)
    opened = open_dataset(path)

    def read() -> None:
        for _ in opened.rows(needs_response=False):
            pass

    short = peak_of(read)
    write(6_000)
    assert path.stat().st_size > 2 * MEGABYTE > short
    assert peak_of(read) < 1.2 * short


def test_a_survey_takes_48_bytes_an_id() -> None:
    path = write_json_lines(2_000)
    opened = open_dataset(path)
    short = peak_of(lambda: survey(opened, needs_response=False))
    write_json_lines(12_000)
    long = peak_of(lambda: survey(opened, needs_response=False))
    # Eight are kept; sorting them at the end takes 40 more for a moment.
    assert long - short < 10_000 * 48 * 1.1


def test_a_long_line_is_read_once_not_again_with_every_piece() -> None:
    path = Path("rows.jsonl")
    path.write_text(json.dumps({"task": "x" * 8 * MEGABYTE}))
    opened = open_dataset(path)
    assert peak_of(lambda: list(opened.rows(needs_response=False))) < 40 * MEGABYTE
