"""One vote on a pair by evidence: each side alone, and both orders."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answering import CHECKLIST, answering, judging, sample, seat, text_of
from jurybox import load_rubric
from jurybox.engine.driver import drive_sync
from jurybox.judging.evidence.evidence_votes import Compared, compare
from jurybox.judging.flow import Failure, ModelRequest, Outcome, Unscored
from jurybox.judging.formats.reply_format import mirror
from jurybox.judging.pairwise import PairVote

GENERAL = judging(load_rubric("general"))
ONE, OTHER = "Paris it is.", "Lyon it is."
Chance = Callable[[str], float]


def chances(alone: dict[str, float], first: dict[str, float]) -> Chance:
    """Return a judge by how good each answer is alone, and how it fares when it is first."""

    def chance(text: str) -> float:
        if "Answer A: " in text:
            return next(value for key, value in first.items() if f"Answer A: {key}\n" in text)
        return next(value for key, value in alone.items() if f"nswer: {key}\n" in text)

    return chance


def compared(chance: Chance, a: str = ONE, b: str = OTHER, vote: int = 0) -> PairVote:
    found = drive_sync(compare(GENERAL, sample(a, b), seat(vote)), answering(chance))
    assert isinstance(found, PairVote)
    return found


def by_levels(of_one: float, of_other: float, first: tuple[float, float]) -> Chance:
    """As above, but so that a yes for the worst level is a no for the best."""
    plain = chances({ONE: of_one, OTHER: of_other}, {ONE: first[0], OTHER: first[1]})

    def chance(text: str) -> float:
        found = plain(text)
        worst = any(
            min(each.levels, key=lambda level: level.low).meaning in text
            for each in GENERAL.rubric.criteria
            if each.levels
        )
        return 1 - found if worst and "Answer A: " not in text else found

    return chance


@pytest.mark.parametrize(
    ("of_one", "of_other", "first", "winner", "stable"),
    [
        # Both ways for the first answer, though the order weighs heavily.
        (0.9, 0.1, (0.95, 0.7), "A", True),
        (0.1, 0.9, (0.7, 0.95), "B", True),
        # The comparison can't tell, or the evidence can't.
        (0.9, 0.1, (0.9, 0.9), "A", True),
        (0.5, 0.5, (0.95, 0.7), "A", True),
        (0.5, 0.5, (0.9, 0.9), "tie", True),
        # Each is decided, for another side (E8).
        (0.9, 0.1, (0.7, 0.95), "tie", False),
        (0.1, 0.9, (0.95, 0.7), "tie", False),
    ],
)
def test_e8_two_ways_decide(
    of_one: float,
    of_other: float,
    first: tuple[float, float],
    winner: str,
    stable: bool,  # noqa: FBT001
) -> None:
    vote = compared(by_levels(of_one, of_other, first))
    assert (vote.winner, vote.stable) == (winner, stable)


@settings(max_examples=60)
@given(
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.integers(0, 2),
)
def test_e8_exchanging_a_and_b_mirrors_the_vote(
    alone: tuple[float, float], first: tuple[float, float], vote: int
) -> None:
    chance = by_levels(*alone, first)
    straight, swapped = compared(chance, ONE, OTHER, vote), compared(chance, OTHER, ONE, vote)
    assert swapped.winner == mirror(straight.winner)
    assert swapped.stable == straight.stable
    assert swapped.preferences == {
        name: mirror(side) for name, side in straight.preferences.items()
    }
    assert swapped.second.winner == mirror(straight.second.winner)


@given(st.floats(0, 1), st.floats(0, 1))
def test_an_answer_compared_with_itself_ties(alone: float, first: float) -> None:
    vote = compared(by_levels(alone, 0.5, (first, 0.5)), ONE, ONE)
    assert (vote.winner, vote.stable) == ("tie", True)
    assert set(vote.preferences.values()) == {"tie"}


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999))
def test_the_lead_and_the_bias_are_the_two_halves_of_both_orders(one: float, other: float) -> None:
    found = Compared(with_a_first=one, with_b_first=other)
    assert found.lead + found.bias == pytest.approx(math.log(one / (1 - one)), abs=1e-9)
    swapped = Compared(with_a_first=other, with_b_first=one)
    assert (swapped.lead, swapped.bias) == (-found.lead, found.bias)


def test_the_bias_of_the_first_place_is_in_the_reasoning() -> None:
    vote = compared(by_levels(0.9, 0.1, (0.9, 0.8)))
    reasoning = next(iter(vote.second.remarks.reasoning.values()))
    # ln 9 = 2.197 and ln 4 = 1.386: half their difference, half their sum.
    assert "0.90 when A is first and 0.80 when B is" in reasoning
    assert "A leads by +0.41" in reasoning
    assert "the order alone makes +1.79" in reasoning
    assert vote.second.remarks.extra == {"lead_of_a": 0.405465, "position_bias": 1.791759}


def test_e4_each_side_has_its_findings_for_every_criterion() -> None:
    vote = compared(by_levels(0.9, 0.1, (0.9, 0.8)))
    reasoning = vote.first.remarks.reasoning
    assert list(reasoning) == [each.id for each in GENERAL.rubric.criteria]
    for text in reasoning.values():
        of_a, of_b = text.split("\nB: ")
        assert of_a.startswith("A: ")
        assert "0.90" in of_a
        assert "0.10" in of_b


def test_e12_the_checklist_of_a_pair_is_complete() -> None:
    completed = compared(by_levels(0.9, 0.1, (0.9, 0.8))).first.remarks.bias_checklist
    assert list(completed) == [item.id for item in CHECKLIST.criteria]
    assert "both orders" in completed["position"]


def test_the_comparison_is_asked_in_both_orders_and_other_words_each_vote() -> None:
    asked: list[str] = []

    def model(request: ModelRequest) -> Outcome:
        asked.append(text_of(request))
        return answering(lambda _: 0.5)(request)

    for vote in range(3):
        drive_sync(compare(GENERAL, sample(ONE, OTHER, context="c"), seat(vote)), model)
    pairs = [text for text in asked if "Answer A: " in text]
    assert len(set(pairs)) == len(pairs) == 6
    assert sum(f"Answer A: {ONE}\nAnswer B: {OTHER}\n" in text for text in pairs) == 3
    assert all(text.startswith("Context: c\nQuestion: ") for text in pairs)
    assert all(text.endswith("Reply A or B.") for text in pairs)


def test_e6_half_a_pair_is_no_vote() -> None:
    failure = Failure(kind="timeout", message="late")
    good = answering(lambda _: 0.5)

    def model(request: ModelRequest) -> Outcome:
        return failure if f"Answer A: {OTHER}" in text_of(request) else good(request)

    found = drive_sync(compare(GENERAL, sample(ONE, OTHER), seat()), model)
    assert isinstance(found, Unscored)
    assert (found.reason, found.cause) == ("late", "failure")
