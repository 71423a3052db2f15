"""E14: what is read of a sample for a comparison, and how far apart people and judge are."""

import pytest

from answers import case, pair, rubric
from jurybox.calibration.gold import Gold, gold_scales, loss_of, read_comments, usable
from jurybox.sample import Response, Row

SCALES = gold_scales(rubric())


def test_what_was_not_scored_counts_as_the_worst() -> None:
    assert loss_of(case(1, 3, None), SCALES) == 1
    assert loss_of(pair(1, "A", None), SCALES) == 1


@pytest.mark.parametrize(
    ("metadata", "comments"),
    [
        ({}, {}),
        ({"comment": "too short"}, {"": "too short"}),
        ({"gold_reasoning": {"clarity": "vague"}, "comment": "x"}, {"clarity": "vague"}),
        ({"gold_reasoning": {"clarity": 4}}, {}),
        ({"comment": "  "}, {}),
        ({"comment": 7}, {}),
    ],
)
def test_people_may_say_why(metadata: dict[str, object], comments: dict[str, str]) -> None:
    assert read_comments(metadata) == comments


def test_two_responses_have_a_winner_and_one_has_scores() -> None:
    both = Gold(scores={"clarity": {"1": 4}}, winners={"1": "A"})
    one = Row(id="1", task="t", response=Response(text="a"))
    two = Row(id="2", task="t", response=Response(text="a"), response_b=Response(text="b"))
    assert usable(one, both) == Gold(scores=both.scores)
    assert usable(two, both) == Gold(winners=both.winners)
    assert usable(one, Gold(winners={"1": "A"})) is None
    assert usable(two, Gold(scores=both.scores)) is None
    assert usable(one, None) is None
