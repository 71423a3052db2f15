"""The bracket formats beside the recorded replies."""

import time

import pytest

from jurybox.judging.flow import Defect
from jurybox.judging.replies.brackets import read_bracket_rating
from jurybox.judging.verdict import Preference, Scores
from readers import CONTINUOUS_TEN, problem, read


def test_a_verdict_keeps_the_whole_reply() -> None:
    outcome = read("bracket-verdict", "A is right.\n[[A]]")
    assert isinstance(outcome, Preference)
    assert outcome.remarks.extra == {"text": "A is right.\n[[A]]"}


def test_a_rating_keeps_the_whole_reply() -> None:
    outcome = read("bracket-rating", "It is right.\n[[7]]")
    assert isinstance(outcome, Scores)
    assert outcome.remarks.reasoning == {"rating": "It is right.\n[[7]]"}


def test_a_defect_names_the_choice_and_the_scale() -> None:
    assert problem("bracket-verdict", "[[D]]") == "[[D]] is none of [[A]], [[B]] and [[C]]."
    said = problem("bracket-rating", "[[11]]")
    assert said == "the rating [[11]] is not a whole number from 1 to 10."


@pytest.mark.parametrize(("reply", "rating"), [("[[7]]", 7), ("[[7.5]]", 7.5), ("[[10.0]]", 10)])
def test_a_continuous_scale_takes_decimals(reply: str, rating: float) -> None:
    outcome = read_bracket_rating(reply, "rating", CONTINUOUS_TEN)
    assert isinstance(outcome, Scores), outcome
    assert outcome.scores == {"rating": rating}


@pytest.mark.parametrize("reply", ["[[10.5]]", "[[0.5]]", "[[nan]]", "[[inf]]", "[[7,5]]"])
def test_a_continuous_scale_takes_nothing_beyond_it(reply: str) -> None:
    assert isinstance(read_bracket_rating(reply, "rating", CONTINUOUS_TEN), Defect)


@pytest.mark.parametrize("form", ["bracket-verdict", "bracket-rating"])
@pytest.mark.parametrize("text", ["[", "[[", "]]", "[[x", "[[x]] ", "[[A]"])
def test_no_reply_takes_long(form: str, text: str) -> None:
    before = time.process_time()
    assert isinstance(read(form, text * 500_000), Defect)
    assert time.process_time() - before < 3
