"""The ``two-scores`` format beside the recorded replies."""

import time

import pytest

from jurybox.judging.flow import Defect
from jurybox.judging.replies.two_scores import read_two_scores
from jurybox.judging.verdict import Preference
from readers import TEN, problem, read


def test_the_higher_score_wins_and_both_are_kept() -> None:
    reply = "9 8.5\nAssistant 1 goes deeper."
    outcome = read("two-scores", reply)
    assert isinstance(outcome, Preference)
    assert outcome.winner == "A"
    assert outcome.remarks.extra == {"scores": [9.0, 8.5], "text": reply}


def test_a_defect_names_the_scale() -> None:
    said = problem("two-scores", "11 8")
    assert said == "the score 11 is not a number from 1.0 to 10.0."


@pytest.mark.parametrize("reply", ["9.5 8", "9 8.5", "8.5 8.5"])
def test_a_scale_of_whole_numbers_takes_no_half_points(reply: str) -> None:
    assert isinstance(read_two_scores(reply, TEN), Defect)


@pytest.mark.parametrize(
    "reply",
    [
        " " * 1_000_000 + "\n9 8",
        "9" + " " * 1_000_000 + "x",
        "9 8" + " " * 1_000_000 + "x",
        "\n" * 1_000_000,
        "9 8\n" * 300_000,
        "1" * 1_000_000 + " 9",
    ],
    ids=range(6),
)
def test_no_reply_takes_long(reply: str) -> None:
    before = time.process_time()
    read_two_scores(reply, TEN)
    assert time.process_time() - before < 3
