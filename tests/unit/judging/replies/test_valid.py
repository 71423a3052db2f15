"""Replies that give exactly one verdict, however they are laid out (E7)."""

from typing import Any

import pytest

from jurybox.judging.formats.reply_format import Preference, Scores
from readers import golden, read, title

VALID = golden("valid")


@pytest.mark.parametrize("row", VALID, ids=title)
def test_a_valid_reply_is_read_as_it_stands(row: dict[str, Any]) -> None:
    outcome = read(row["format"], row["reply"])
    if "scores" in row:
        assert isinstance(outcome, Scores), outcome
        assert outcome.scores == row["scores"]
    else:
        assert isinstance(outcome, Preference), outcome
        assert outcome.winner == row["winner"]
        assert outcome.preferences == row.get("preferences", {})


@pytest.mark.parametrize("row", VALID, ids=title)
def test_what_a_reply_says_besides_is_kept(row: dict[str, Any]) -> None:
    outcome = read(row["format"], row["reply"])
    assert isinstance(outcome, Scores | Preference), outcome
    remarks = outcome.remarks
    if "reasoning" in row:
        assert remarks.reasoning == row["reasoning"]
    if "extra" in row:
        assert remarks.extra == row["extra"]
    assert list(remarks.safety_concerns) == row.get("safety_concerns", [])


@pytest.mark.parametrize("row", VALID, ids=title)
def test_a_whole_score_stays_a_whole_number(row: dict[str, Any]) -> None:
    outcome = read(row["format"], row["reply"])
    if isinstance(outcome, Scores) and row["format"] != "score-line":
        assert {type(score) for score in outcome.scores.values()} == {int}
