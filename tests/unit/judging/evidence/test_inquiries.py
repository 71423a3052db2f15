"""From chosen probabilities to exact scores: references, contexts, levels, and which of them."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answering import SCALES, criterion, evidence, sample
from jurybox.judging.evidence.questions import Evidence, Inquiry
from jurybox.judging.evidence.sources import (
    OwnAnswer,
    by_context,
    by_knowledge,
    by_levels,
    by_reference,
    inquiry_for,
    source_for,
)
from jurybox.judging.flow import ModelReply
from jurybox.rubric.rubric_model import Criterion, Indicators, Level
from jurybox.rubric.scale import Scale
from jurybox.sample import Sample

CHANCE = st.floats(0, 1)
VOTES = (0, 1, 2)


def scores(share: float) -> list[float]:
    return [SCALES[text].denormalize(share) for text in ("0-2", "1-5", "0.0-1.0")]


# Against a reference ---------------------------------------------------------------------------

FULL = "Water boils at 100 degrees; mercury freezes near minus forty."
HALF = "Water boils at 100 degrees."


def referenced(response: str, beside: float, alone: float = 0.5, vote: int = 0) -> Evidence:
    inquiry = by_reference(sample(response), FULL, response, vote)
    return evidence(inquiry, lambda text: beside if "Correct answer: " in text else alone)


@pytest.mark.parametrize(
    ("response", "beside", "alone", "expected"),
    [
        # ln 9 + 1 (all words) = 3.1972, which is 0.960730: 0.4 of the rest off.
        (FULL, 0.9, 0.5, [2, 5, 0.984292]),
        # It sounds as well without the reference: 0.6 * ln 99 = 2.7571 less.
        (FULL, 0.9, 0.99, [2, 4, 0.843318]),
        # -ln 4 + 1 = -0.3863, which is 0.404610: 0.4 of it.
        (FULL, 0.2, 0.5, [0, 2, 0.161844]),
        # Of two statements one has its words; 0 + 0.05 * ln 9 are not 0.34 of the other.
        (HALF, 0.9, 0.5, [1, 3, 0.5]),
        # A wrong answer is wrong, whichever words it has.
        (HALF, 0.1, 0.5, [0, 1, 0.040000]),
        (FULL, 0.0, 0.5, [0, 1, 0.0]),
        (FULL, 1.0, 0.5, [2, 5, 1.0]),
    ],
)
def test_an_answer_is_wrong_partial_or_full(
    response: str, beside: float, alone: float, expected: list[float]
) -> None:
    assert scores(referenced(response, beside, alone).share) == pytest.approx(expected, abs=2e-6)


def test_it_is_asked_with_and_without_the_reference() -> None:
    beside, alone = by_reference(sample(FULL), FULL, FULL, 0).probes
    assert f"Correct answer: {FULL}" in beside.head
    assert "Correct answer: " not in alone.head
    assert (beside.question, beside.body) == (alone.question, alone.body)


def test_the_findings_of_a_reference_quote_the_questions_and_the_statements() -> None:
    assert referenced(HALF, 0.9).findings == (
        "Beside the reference: Is the student's answer correct? Yes: 0.90; without it: 0.50.",
        'Of the reference: "Water boils at 100 degrees" (100% of its words are in the answer).',
        'Of the reference: "mercury freezes near minus forty" (0% of its words are in the answer).',
    )


@given(CHANCE, CHANCE, CHANCE, st.sampled_from([FULL, HALF, "", "Mercury freezes."]))
def test_a_surer_yes_never_lowers_the_score_against_a_reference(
    one: float, other: float, alone: float, response: str
) -> None:
    low, high = sorted((one, other))
    less, more = referenced(response, low, alone), referenced(response, high, alone)
    assert 0 <= less.share <= more.share <= 1
    assert less.strength <= more.strength


def test_a_reference_that_says_nothing_leaves_nothing_out() -> None:
    found = evidence(
        by_reference(sample("Yes."), "!", "Yes.", 0),
        lambda text: 0.9 if "Correct answer: " in text else 0.5,
    )
    assert scores(found.share)[:2] == [2, 5]


def test_without_anything_to_hold_it_against_the_chance_is_the_share() -> None:
    found = evidence(by_knowledge(sample(), "Paris.", 0), lambda _: 0.75)
    assert scores(found.share) == pytest.approx([2, 4, 0.75])
    assert "there was neither a reference nor a context" in found.findings[0]


# Against a context -----------------------------------------------------------------------------

CLAIMS = "The door is red. The roof is blue."
OWN = OwnAnswer(text="It is red.", source="A red door.", reply=ModelReply(text="It is red."))


def grounded(
    beside: float, whole: float, least: float, alone: float = 0.5, response: str = CLAIMS
) -> Evidence:
    def chance(text: str) -> float:
        if "Correct answer: It is red." in text:
            return beside
        if "Text: A red door." not in text:
            return alone
        if response in text:
            return whole
        return least if "roof" in text else 0.99

    return evidence(by_context(sample(response), OWN, response, 0), chance)


@pytest.mark.parametrize(
    ("beside", "whole", "least", "alone", "expected"),
    [
        # ln 9 - ln 9 / 2 = 1.0986 is 2.1986 above the bar, which is 0.900125: 0.4 of the rest off.
        (0.9, 0.9, 0.1, 0.5, [2, 5, 0.960050]),
        # The whole is what the text bears out least, where that is so.
        (0.9, 0.1, 0.9, 0.5, [2, 5, 0.960050]),
        # It sounds as well without the text: ln 9 / 2 less, and only 1.1 above the bar.
        (0.9, 0.9, 0.1, 0.9, [2, 5, 0.900104]),
        # -ln 9 + ln 9 / 2 = -1.0986 is just above the bar.
        (0.1, 0.9, 0.9, 0.5, [2, 4, 0.800139]),
        # -ln 9 - ln 9 / 2 = -3.2958 is 2.1958 below it, which is 0.100125: 0.4 of it.
        (0.1, 0.9, 0.1, 0.5, [0, 1, 0.040050]),
        (0.0, 0.0, 0.0, 0.5, [0, 1, 0.0]),
        (1.0, 1.0, 1.0, 0.5, [2, 5, 1.0]),
    ],
)
def test_an_answer_is_held_against_the_models_own_and_the_text(
    beside: float, whole: float, least: float, alone: float, expected: list[float]
) -> None:
    found = grounded(beside, whole, least, alone)
    assert scores(found.share) == pytest.approx(expected, abs=2e-6)


def test_the_findings_of_a_context_quote_the_own_answer_and_every_claim() -> None:
    assert grounded(0.8, 0.9, 0.2).findings == (
        (
            'By the text the model itself answers: "It is red." Beside that: Is the student\'s'
            " answer correct? Yes: 0.80; without it: 0.50."
        ),
        "Beside the text: Does the student's answer deserve full marks? Yes: 0.90.",
        'Its claim "The door is red" alone: 0.99.',
        'Its claim "The roof is blue" alone: 0.20.',
    )


def test_claims_are_asked_once_each_and_a_single_one_is_the_whole() -> None:
    for response, claims in (
        ("The door is red.", 0),
        ("The door is red. The door is red.", 1),
        (CLAIMS, 2),
        ("", 0),
    ):
        probes = by_context(sample(), OWN, response, 0).probes
        assert len(set(probes)) == len(probes) == 3 + claims


@given(CHANCE, CHANCE, CHANCE, CHANCE, CHANCE, CHANCE)
def test_a_surer_yes_never_lowers_the_score_by_the_context(
    one: float, other: float, third: float, fourth: float, fifth: float, sixth: float
) -> None:
    (no, yes), (whole, wholly), (least, most) = (
        sorted(pair) for pair in ((one, other), (third, fourth), (fifth, sixth))
    )
    less, more = grounded(no, whole, least), grounded(yes, wholly, most)
    assert 0 <= less.share <= more.share <= 1
    assert less.strength <= more.strength + 1e-12


# By the rubric's own words ---------------------------------------------------------------------

LEVELS = criterion(
    levels=(
        Level(low=1, high=1, meaning="Wrong or misleading"),
        Level(low=3, high=3, meaning="A slip"),
        Level(low=5, high=5, meaning="Everything is right"),
    )
)


def levelled(used: Criterion, chance: Callable[[str], float]) -> Evidence:
    return evidence(by_levels(used, sample(), "Paris.", 0), chance)


@pytest.mark.parametrize(
    ("best", "worst", "expected"),
    [
        # ln 4 + ln 4 = ln 16
        (0.8, 0.2, [2, 5, 0.941176]),
        (0.5, 0.5, [1, 3, 0.5]),
        (0.9, 0.9, [1, 3, 0.5]),
        (0.2, 0.8, [0, 1, 0.058824]),
        # ln 3: 0.75
        (0.75, 0.5, [2, 4, 0.75]),
    ],
)
def test_the_best_level_is_weighed_against_the_worst(
    best: float, worst: float, expected: list[float]
) -> None:
    found = levelled(LEVELS, lambda text: best if "Everything" in text else worst)
    assert scores(found.share) == pytest.approx(expected, abs=1e-6)
    assert [each.split('"')[1] for each in found.findings] == [
        "Everything is right",
        "Wrong or misleading",
    ]


def test_without_levels_the_indicators_are_asked() -> None:
    used = criterion(
        indicators=(
            Indicators(label="Positive indicators", items=("Is kind", "Is short")),
            Indicators(label="Negative indicators", items=("Is rude",)),
            Indicators(label="What to look for", items=("Nothing",)),
        )
    )
    found = levelled(used, lambda text: 0.2 if "rude" in text else 0.8)
    assert len(found.findings) == 3
    assert found.share == pytest.approx(16 / 17)


def test_only_negative_indicators_speak_against_it() -> None:
    used = criterion(indicators=(Indicators(label="Negative signs", items=("Is rude",)),))
    assert levelled(used, lambda _: 0.8).share == pytest.approx(0.2)


def test_with_nothing_but_a_name_the_definition_is_asked() -> None:
    assert levelled(criterion(definition="Facts are right."), lambda _: 0.8).findings == (
        'Is this true of the answer: "It does well by this measure: Facts are right."? Yes: 0.80.',
    )
    assert "Correctness" in levelled(criterion(), lambda _: 0.8).findings[0]


ASKED = criterion(
    levels=LEVELS.levels,
    indicators=(Indicators(label="Questions", items=("Is it right?", "Is it kind?")),),
)


def test_questions_of_the_document_are_asked_instead_of_its_levels() -> None:
    found = levelled(ASKED, lambda text: 0.9 if "right" in text else 0.6)
    assert found.findings == ("Is it right? Yes: 0.90.", "Is it kind? Yes: 0.60.")
    assert scores(found.share) == pytest.approx([2, 4, 0.75])


@given(CHANCE, CHANCE, CHANCE)
def test_a_surer_yes_for_the_best_never_lowers_the_score(
    one: float, other: float, worst: float
) -> None:
    low, high = sorted((one, other))
    for used, mark in ((LEVELS, "Everything"), (ASKED, "right")):
        less, more = (
            levelled(used, lambda text, best=best, mark=mark: best if mark in text else worst)
            for best in (low, high)
        )
        assert 0 <= less.share <= more.share <= 1
        assert less.strength <= more.strength


@given(CHANCE, CHANCE, CHANCE)
def test_a_surer_yes_for_the_worst_never_raises_the_score(
    one: float, other: float, best: float
) -> None:
    low, high = sorted((one, other))
    less, more = (
        levelled(LEVELS, lambda text, worst=worst: worst if "Wrong" in text else best)
        for worst in (low, high)
    )
    assert less.share >= more.share


def test_the_context_and_the_reference_are_shown_with_the_levels() -> None:
    one = sample(context="It rains.", reference="Paris")
    (probe, _) = by_levels(LEVELS, one, "Paris.", 0).probes
    assert probe.head == (
        "Context: It rains.\nQuestion: What is the capital of France?\nCorrect answer: Paris\n"
    )
    assert probe.body == "Answer: Paris.\n"


# Which of them, and how often --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "given_parts", "source", "begins"),
    [
        ("reference", {"reference": "R"}, None, "Question: "),
        ("reference", {"reference": "R", "context": "C"}, None, "Question: "),
        ("reference", {"context": "C"}, "C", "Text: C\n"),
        ("reference", {}, None, "Question: "),
        ("context", {"context": "C"}, "C", "Text: C\n"),
        ("context", {"reference": "R", "context": "C"}, "C", "Text: C\n"),
        ("context", {"reference": "R"}, "R", "Text: R\n"),
        ("context", {"reference": "R", "context": " \n"}, "R", "Text: R\n"),
        ("reference", {"context": " \n"}, None, "Question: "),
        ("levels", {"reference": "R", "context": "C"}, None, "Context: C\n"),
    ],
)
def test_a_criterion_is_held_against_what_it_names_where_that_is_there(
    kind: str, given_parts: dict[str, str], source: str | None, begins: str
) -> None:
    used = criterion(levels=LEVELS.levels, evidence=kind)
    given = sample(**given_parts)
    assert source_for((LEVELS, used), given) == source
    first = asked_of(used, given).probes[0]
    assert f"{first.opening}{first.head}".startswith(begins)


def asked_of(used: Criterion, given: Sample, vote: int = 0) -> Inquiry:
    source = source_for((used,), given)
    own = None
    if source is not None:
        own = OwnAnswer(text="Paris", source=source, reply=ModelReply(text="Paris"))
    return inquiry_for(used, given, "Paris.", vote, own)


def test_without_any_context_a_grounded_criterion_is_asked_by_its_levels() -> None:
    used = criterion(levels=LEVELS.levels, evidence="context")
    inquiry = asked_of(used, sample())
    assert [probe.role for probe in inquiry.probes] == ["You are a strict reviewer of answers."] * 2


@pytest.mark.parametrize(
    ("used", "given_parts"),
    [
        (criterion(evidence="reference"), {"reference": "R"}),
        (criterion(evidence="reference"), {"context": "C"}),
        (criterion(evidence="reference"), {}),
        (criterion(evidence="context"), {"context": "C"}),
        (LEVELS, {}),
        (criterion(), {}),
        (ASKED, {}),
    ],
    ids=["reference", "text", "knowledge", "context", "levels", "definition", "own questions"],
)
def test_e10_every_vote_of_three_asks_in_other_words(
    used: Criterion, given_parts: dict[str, str]
) -> None:
    votes = [set(asked_of(used, sample(**given_parts), vote).probes) for vote in VOTES]
    assert votes[0] != votes[1]
    assert votes[1] != votes[2]
    assert votes[0] != votes[2]


# On the scale ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "points"),
    [
        ("0-2", [0, 1, 1, 2, 2]),
        ("1-5", [1, 2, 3, 4, 5]),
        ("0-1", [0, 0, 1, 1, 1]),
        ("-2..2", [-2, -1, 0, 1, 2]),
        ("-1..1", [-1, 0, 0, 1, 1]),
        ("0.0-1.0", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("-1.0..1.0", [-1.0, -0.5, 0.0, 0.5, 1.0]),
    ],
)
def test_a_share_is_a_point_of_the_scale(scale: str, points: list[float]) -> None:
    read = Scale.parse(scale)
    found = [read.denormalize(share) for share in (0, 0.25, 0.5, 0.75, 1)]
    assert found == points
    assert all(read.accepts(each) for each in found)
    assert all(isinstance(each, int) is not read.continuous for each in found)


@given(
    st.integers(-20, 20),
    st.integers(1, 100),
    st.booleans(),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_e5_every_share_is_on_the_scale_and_more_is_never_less(
    low: int,
    width: int,
    continuous: bool,  # noqa: FBT001
    one: float,
    other: float,
) -> None:
    scale = Scale(low=low, high=low + width, continuous=continuous)
    less, more = (scale.denormalize(share) for share in sorted((one, other)))
    assert scale.accepts(less)
    assert scale.accepts(more)
    assert less <= more
    assert scale.denormalize(0) == low
    assert scale.denormalize(1) == low + width
