"""Replies that give exactly one verdict, however they are laid out (E7)."""

import pytest

from jurybox.judging.formats.reply_format import Preference, Scores
from readers import READERS, golden, read

VALID = golden("valid")


@pytest.mark.parametrize("form", READERS)
def test_a_valid_reply_is_read_as_it_stands_with_what_it_says_besides(form: str) -> None:
    rows = [row for row in VALID if row["format"] == form]
    assert rows
    for row in rows:
        outcome = read(form, row["reply"])
        assert isinstance(outcome, Scores | Preference), (row, outcome)
        if isinstance(outcome, Scores):
            assert outcome.scores == row["scores"], row
            if form != "score-line":
                assert {type(score) for score in outcome.scores.values()} == {int}, row
        else:
            assert outcome.winner == row["winner"], row
            assert outcome.preferences == row.get("preferences", {}), row
        remarks = outcome.remarks
        assert remarks.reasoning == row.get("reasoning", remarks.reasoning), row
        assert remarks.extra == row.get("extra", remarks.extra), row
        assert list(remarks.safety_concerns) == row.get("safety_concerns", []), row
