"""``jurybox rank`` on files of verdicts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest


def write(*rows: tuple[str, str, str, int]) -> str:
    lines = [
        json.dumps({"a": a, "b": b, "winner": winner})
        for a, b, winner, times in rows
        for _ in range(times)
    ]
    Path("verdicts.jsonl").write_text("\n".join(lines) + "\n")
    return "verdicts.jsonl"


def test_models_are_ranked_where_they_can_be_told_apart(started: Callable) -> None:
    name = write(
        ("red", "grey", "a", 40),
        ("red", "grey", "b", 8),
        ("blue", "grey", "a", 40),
        ("blue", "grey", "grey", 8),
        ("red", "blue", "a", 13),
        ("red", "blue", "tie", 4),
        ("red", "blue", "b", 11),
    )
    done = started("rank", name)
    assert done.code == 0, done.err
    assert "blue is ranked above grey (difference" in done.out
    assert "red and blue do not differ significantly (difference" in done.out
    assert "red is ranked" not in done.out
    assert "124 verdicts on 3 models, 4 ties" in done.out


def test_json_holds_strengths_matrix_circles_and_ties(jurybox: Callable) -> None:
    name = write(("A", "B", "a", 2), ("B", "C", "a", 2), ("C", "A", "a", 2), ("A", "B", "tie", 1))
    data = jurybox("rank", name, "--level", "0.9", "--json").json
    assert data["n"] == 7
    assert {model["name"] for model in data["models"]} == {"A", "B", "C"}
    assert set(data["models"][0]) >= {
        "name",
        "strength",
        "interval",
        "rank",
        "wins",
        "losses",
        "ties",
        "win_rate",
    }
    assert data["models"][0]["interval"]["level"] == 0.9
    assert data["matrix"]["A"]["B"] == pytest.approx(2.5 / 3)
    assert data["cycles"] == [["A", "B", "C"]]
    assert data["ties"]["parameter"] > 0
    assert any("form a cycle" in warning for warning in data["warnings"])


def test_groups_that_never_met_are_named(jurybox: Callable) -> None:
    name = write(("A", "B", "a", 2), ("A", "B", "b", 1), ("C", "D", "a", 1), ("C", "D", "b", 1))
    assert "no verdict links `A`, `B` and `C`, `D`" in jurybox("rank", name).out


def test_exported_rows_are_clustered_by_the_item_of_their_metadata(jurybox: Callable) -> None:
    winners = ["a", "a", "b", "a", "tie", "b", "a", "a"]
    rows = [
        {"id": str(i), "winner": winner, "metadata": {"a": "x", "b": "y", "item": i % 2}}
        for i, winner in enumerate(winners)
    ]
    Path("export.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert "8 verdicts on 2 models, 2 items, 1 tie" in jurybox("rank", "export.jsonl").out


def test_verdicts_may_come_from_standard_input(jurybox: Callable) -> None:
    rows = b"".join(b'{"a": "x", "b": "y", "winner": "%s"}\n' % w for w in (b"A", b"y", b"TIE"))
    done = jurybox("rank", "-", stdin=rows)
    assert done.code == 0, done.err
    assert "3 verdicts on 2 models, 1 tie" in done.out
    bad = jurybox("rank", "-", stdin=b'{"a": "x", "b": "y", "winner": "X"}\n')
    assert (bad.code, bad.out) == (2, "")
    assert bad.err.startswith("standard input:1:1: the winner 'X' is neither one of the two models")
