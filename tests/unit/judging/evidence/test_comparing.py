"""One vote on a pair by evidence: the comparison in both orders, averaged."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answering import answering, judging, sample, seat, text_of
from jurybox import load_rubric
from jurybox.engine.driver import drive_sync
from jurybox.judging.evidence_votes import compare
from jurybox.judging.flow import Failure, ModelRequest, Outcome, Unscored
from jurybox.judging.formats.reply_format import mirror
from jurybox.judging.pairwise import PairVote

GENERAL = judging(load_rubric("general"))
ONE, OTHER = "Paris it is.", "Lyon it is."
Chance = Callable[[str], float]


def first(of_one: float, of_other: float) -> Chance:
    """Return a judge by how each answer fares when it is first."""
    return lambda text: of_one if f"Answer A: {ONE}\n" in text else of_other


def compared(chance: Chance, a: str = ONE, b: str = OTHER, vote: int = 0) -> PairVote:
    found = drive_sync(compare(GENERAL, sample(a, b), seat(vote)), answering(chance))
    assert isinstance(found, PairVote)
    return found


@pytest.mark.parametrize(
    ("of_one", "of_other", "winner", "stable"),
    [
        # Though the order weighs heavily, the first answer fares better when it is first.
        (0.95, 0.7, "A", True),
        (0.3, 0.05, "A", True),
        (0.7, 0.95, "B", True),
        (0.9, 0.1, "A", True),
        # Nothing is left once the order is averaged out (E8).
        (0.9, 0.9, "tie", False),
        (0.2, 0.2, "tie", False),
    ],
)
def test_e8_both_orders_decide(of_one: float, of_other: float, winner: str, stable: bool) -> None:  # noqa: FBT001
    vote = compared(first(of_one, of_other))
    assert (vote.winner, vote.stable) == (winner, stable)
    assert set(vote.preferences.values()) == {winner}


@settings(max_examples=60)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 2))
def test_e8_exchanging_a_and_b_mirrors_the_vote(of_one: float, of_other: float, vote: int) -> None:
    chance = first(of_one, of_other)
    straight, swapped = compared(chance, ONE, OTHER, vote), compared(chance, OTHER, ONE, vote)
    assert swapped.winner == mirror(straight.winner)
    assert swapped.stable == straight.stable
    assert swapped.preferences == {
        name: mirror(side) for name, side in straight.preferences.items()
    }


def test_criteria_are_asked_apart_and_weighed() -> None:
    """One criterion prefers the other answer, strongly enough for all."""
    name = GENERAL.rubric.criteria[0].name

    def chance(text: str) -> float:
        is_one = f"Answer A: {ONE}\n" in text
        lead = 0.999999 if f"by {name.lower()}?" in text else 0.4
        return lead if is_one else 1 - lead

    vote = compared(chance)
    assert vote.winner == "A"
    assert list(vote.preferences.values()) == ["A"] + ["B"] * (len(vote.preferences) - 1)


def test_the_bias_of_the_first_place_is_in_the_reasoning() -> None:
    vote = compared(first(0.9, 0.8))
    reasoning = next(iter(vote.second.remarks.reasoning.values()))
    # ln 9 = 2.197 and ln 4 = 1.386: half their difference, half their sum.
    assert "0.90 when A is first and 0.80 when B is" in reasoning
    assert "A leads by +0.41" in reasoning
    assert "the order alone gives the first answer +1.79" in reasoning
    assert vote.second.remarks.extra == {"lead_of_a": 0.405465, "position_bias": 1.791759}


def test_e6_half_a_pair_is_no_vote() -> None:
    failure = Failure(kind="timeout", message="late")
    good = answering(lambda _: 0.5)

    def model(request: ModelRequest) -> Outcome:
        return failure if f"Answer A: {OTHER}" in text_of(request) else good(request)

    found = drive_sync(compare(GENERAL, sample(ONE, OTHER), seat()), model)
    assert isinstance(found, Unscored)
    assert (found.reason, found.cause) == ("late", "failure")
