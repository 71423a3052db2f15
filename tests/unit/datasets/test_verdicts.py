"""Rows of verdicts on pairs of models."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jurybox.datasets import DatasetError
from jurybox.datasets.ratings import Verdicts, read_verdicts
from jurybox.errors import InputError


def read(*rows: object) -> Verdicts:
    path = Path("verdicts.jsonl")
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines))
    return read_verdicts(path)


@pytest.mark.parametrize(
    ("winner", "meant"),
    [
        ("a", "a"),
        ("B", "b"),
        ("x-1", "a"),
        ("y-2", "b"),
        ("tie", "tie"),
        ("Tie", "tie"),
        ("model_b", "b"),
        ("tie (bothbad)", "tie"),
    ],
)
def test_a_winner_may_be_a_side_or_a_name(winner: str, meant: str) -> None:
    (row,) = read({"a": "x-1", "b": "y-2", "winner": winner}).rows
    assert (row.a, row.b, row.winner, row.item) == ("x-1", "y-2", meant, None)


def test_rows_as_an_arena_or_a_run_writes_them() -> None:
    """A run's export has the models in the metadata of its samples, if anywhere."""
    arena = {"model_a": "x", "model_b": "y", "winner": "model_a", "id": "q1"}
    exported = {"id": "q2", "metadata": {"a": "x", "b": "y"}, "winner": "B", "response": "..."}
    named = {**exported, "metadata": {"a": "x", "b": "y", "item": "topic"}}
    one, other, third = read(arena, exported, named).rows
    assert (one.a, one.winner, one.item) == ("x", "a", "q1")
    assert (other.b, other.winner, other.item) == ("y", "b", "q2")
    assert third.item == "topic"


@pytest.mark.parametrize("written", [lambda each: each, json.dumps], ids=["jsonl", "csv"])
def test_e9_a_scored_pair_is_ranked_by_the_means_of_its_votes(
    written: Callable[[object], object],
) -> None:
    by_majority = {"a": "x", "b": "y", "winner": "A"}
    means = {"A": {"overall_by_votes": 0.6}, "B": {"overall_by_votes": 0.7}}
    (row,) = read({**by_majority, "responses": written(means)}).rows
    assert row.winner == "b"
    unknown = {"A": {"overall_by_votes": None}, "B": {"overall_by_votes": None}}
    (row,) = read({**by_majority, "responses": written(unknown)}).rows
    assert row.winner == "a"


def test_csv_is_read_as_people_and_as_export_write_it() -> None:
    path = Path("verdicts.csv")
    with path.open("w", newline="") as file:
        metadata = json.dumps({"a": "x", "b": "y", "item": "topic"})
        csv.writer(file).writerows([("id", "winner", "metadata"), ("q1", "B", metadata)])
    (row,) = read_verdicts(path).rows
    assert (row.a, row.b, row.winner, row.item) == ("x", "y", "b", "topic")
    path.write_text("item,a,b,winner\n1,x,y,tie\n1,x,y,\n")
    plain = read_verdicts(path)
    assert (plain.rows[0].winner, plain.rows[0].item, plain.without) == ("tie", "1", 1)


def test_a_row_without_a_winner_is_counted_and_left_out() -> None:
    read_rows = read({"a": "x", "b": "y", "winner": None}, {"a": "x", "b": "y", "winner": "a"})
    assert (len(read_rows.rows), read_rows.without) == (1, 1)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"a": "x", "b": "y"}, "no `winner`"),
        ({"a": "x", "winner": "a"}, "no `b`"),
        ({"a": 3, "b": "y", "winner": "a"}, "no text as `a`"),
        ({"a": "x", "b": "x", "winner": "a"}, "with itself"),
        ({"a": "x", "b": "y", "winner": "z"}, "neither one of the two"),
        ({"a": "x", "b": "y", "winner": 1}, "neither one of the two"),
        ({"a": "b", "b": "a", "winner": "a"}, "is ambiguous"),
        ({"a": "x", "b": "y", "winner": "a", "item": [1]}, "`item` is neither"),
        ("[1]", "not an object"),
        ('{"a": ', "breaks off"),
    ],
)
def test_a_faulty_row_is_named_by_its_line(row: object, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        read({"a": "x", "b": "y", "winner": "a"}, row)
    assert str(caught.value).startswith("verdicts.jsonl:2:")
    assert problem in str(caught.value)
    assert "task" not in str(caught.value)


def test_all_faulty_rows_are_named() -> None:
    with pytest.raises(DatasetError) as caught:
        read(*[{"a": "x", "b": "y", "winner": "z"}] * 3)
    assert [each.line for each in caught.value.findings] == [1, 2, 3]


@pytest.mark.parametrize("rows", [[], [{"a": "x", "b": "y", "winner": None}]])
def test_a_file_without_verdicts_is_refused(rows: list[object]) -> None:
    with pytest.raises(InputError, match="no row"):
        read(*rows)
