"""The ``score-line`` format beside the recorded replies (C15)."""

import time

import pytest

from jurybox.judging.flow import Defect
from jurybox.judging.formats.reply_format import Scores
from jurybox.judging.formats.score_line_format import read_score_line
from jurybox.rubric.scale import Scale
from readers import TEN, UNIT, problem, read


def reasoning(reply: str) -> str:
    outcome = read("score-line", reply)
    assert isinstance(outcome, Scores), outcome
    return outcome.remarks.reasoning["overall_quality"]


def test_a_defect_names_the_scale() -> None:
    assert problem("score-line", "Score: 85") == "the score 85 is not a number from 0.0 to 1.0."


@pytest.mark.parametrize("reply", ["Score: 7", "Score: 7/10", "Score: 7 out of 10", "score = 7"])
def test_a_scale_of_whole_numbers_takes_whole_numbers(reply: str) -> None:
    outcome = read_score_line(reply, "rating", TEN)
    assert isinstance(outcome, Scores), outcome
    assert outcome.scores == {"rating": 7}


@pytest.mark.parametrize("reply", ["Score: 7.5", "Score: 7.0", "Score: 7.0/10", "Score: 7/5"])
def test_e5_a_scale_of_whole_numbers_takes_nothing_else(reply: str) -> None:
    assert isinstance(read_score_line(reply, "rating", TEN), Defect)


def test_a_sign_belongs_to_the_number() -> None:
    outcome = read_score_line("Score: -2", "rating", Scale(low=-2, high=2))
    assert isinstance(outcome, Scores), outcome
    assert outcome.scores == {"rating": -2}


@pytest.mark.parametrize(
    "reply",
    [
        "score" + " " * 1_000_000,
        "score: " * 200_000,
        "score" + "*" * 1_000_000 + "x",
        'score"' * 200_000,
        ("Score: 0.8" + " " * 1_000) * 1_000,
        "Score: 0.8/" + "1" * 1_000_000,
        "Score: 0.8 " + "reasoning " * 100_000,
        "Score: 0.8 | Reasoning" + "*" * 1_000_000,
        "Score: " + "1" * 1_000_000,
    ],
    ids=range(9),
)
def test_no_reply_takes_long(reply: str) -> None:
    before = time.process_time()
    read_score_line(reply, "overall_quality", UNIT)
    assert time.process_time() - before < 3


@pytest.mark.parametrize(
    "reply",
    [
        "Score (0.0-1.0): 0.8 | Reasoning: Kind.",
        "Score: [0.8] | Reasoning: Kind.",
        "**Score (0.0 to 1.0):** 0.8\nReasoning: Kind.",
    ],
)
def test_a_score_may_stand_as_the_prompt_shows_it(reply: str) -> None:
    found = read_score_line(reply, "whole", UNIT)
    assert isinstance(found, Scores)
    assert found.scores == {"whole": 0.8}
    assert found.remarks.reasoning == {"whole": "Kind."}


@pytest.mark.parametrize("reply", ["Score: [0.8", "Score: [0.8-0.9]", "Score (0.8)", "Score: [8]"])
def test_brackets_make_no_score_of_what_is_none(reply: str) -> None:
    assert isinstance(read_score_line(reply, "whole", UNIT), Defect)
