"""The judge without a model: what its overlap gives, and what it can't see."""

from functools import cache
from importlib import resources

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import growth
from jurybox.judging.asking import Judging
from jurybox.judging.flow import Answer, Unscored
from jurybox.judging.overlap import NOTICE, Overlap, measure, overlap_flow
from jurybox.judging.panel import Seat
from jurybox.rubric import Rubric, parse_rubric
from jurybox.rubric.model import Criterion, Generation
from jurybox.rubric.scale import Scale
from jurybox.sample import Response, Sample

ACCURACY = Criterion(id="accuracy", name="Accuracy", scale=Scale(low=0, high=2))
SEAT = Seat(vote=0, judge="overlap", generation=Generation())
BALLOON = "The balloon rises slowly over the quiet village because warm air is light."


def overlap(reference: str, response: str) -> Overlap:
    return measure(ACCURACY, reference, response)


def share(reference: str, response: str) -> float:
    return overlap(reference, response).share


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("Paris", "Paris"),
        ("Paris", "paris."),
        ("Paris", "**Paris**"),
        ("Paris", "The capital of France is Paris."),
        ("Paris", "It is Paris, not Lyon."),
        ("The Danube", "a danube"),
        ("Caf\u00e9 cr\u00e8me", "cafe creme"),
        ("don\u2019t panic", "Don't panic!"),
        ("\u6771\u4eac", "\u65e5\u672c\u306e\u9996\u90fd\u306f\u6771\u4eac\u3067\u3059\u3002"),
        ("\u041c\u043e\u0441\u043a\u0432\u0430", "\u043c\u043e\u0441\u043a\u0432\u0430"),
        ("1000 people", "About 1,000 people came."),
        ("twelve eggs", "12 eggs"),
        ("a dozen eggs", "Take 12 eggs."),
        ("100 cm", "It is 1 m long."),
        ("90 minutes", "It takes 1.5 hours."),
        ("2 weeks", "You have 14 days."),
        ("9 November 1989", "It fell on November 9th, 1989."),
        ("9 November 1989", "1989-11-09"),
        ("\u20ac2,240", "You then hold 2,240 euros."),
        ("50%", "It is 50 percent."),
        ("No", "No, they are closed."),
        ("yes", "Yes."),
        ("\u2192", "\u2192"),
    ],
)
def test_the_reference_as_a_whole_gives_the_top(reference: str, response: str) -> None:
    assert share(reference, response) == 1.0


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("The oven must be at 165 \u00b0F", "The oven must be at about 74 \u00b0C"),
        ("The race is 10 miles long", "The race is 16 km long"),
        ("The parcel weighs 5 lb", "The parcel weighs 2.3 kg"),
        ("The shelf is 40 inches wide", "The shelf is 101.6 cm wide"),
        ("The limit is 60 miles per hour", "The limit is 97 km/h"),
        ("Half of the voters agreed", "50% of the voters agreed"),
        ("Two thirds of the voters agreed", "2/3 of the voters agreed"),
        ("Opened goods go back within 20 days", "Within 20 opened goods go back"),
    ],
)
def test_another_unit_is_the_same_number(reference: str, response: str) -> None:
    assert share(reference, response) >= 0.85
    assert not any(
        "lacks" in each or "in whose place" in each
        for each in overlap(reference, response).findings[2:3]
    )


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("The oven must be at 165 \u00b0F", "The oven must be at 165 \u00b0C"),
        ("The race is 10 miles long", "The race is 10 km long"),
        ("It takes 1 day", "It takes 25 hours"),
        ("The Wall fell on 9 November 1989", "The Wall fell on 9 November 1990"),
        ("The Wall fell on 9 November 1989", "The Wall fell on 8 November 1989"),
        ("The bill is 2,240 euros", "The bill is 22,400 euros"),
        ("The bill is \u20ac40", "The bill is $40"),
        ("There are 12,345,678 of them", "There are 12,345,679 of them"),
        ("Use version 3.11.2 of the parser", "Use version 3.12.2 of the parser"),
        ("The area is 5 m\u00b2", "The area is 5 m\u00b3"),
        ("It was -5 \u00b0C outside", "It was 5 \u00b0C outside"),
        ("It was the third attempt of the crew", "It was the fourth attempt of the crew"),
        ("The boat leaves at 2:30 pm", "The boat leaves at 3:30 pm"),
    ],
)
def test_a_wrong_number_keeps_the_share_low(reference: str, response: str) -> None:
    assert share(reference, response) <= 0.2


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("The drug is safe for children", "The drug is not safe for children"),
        ("The drug is not safe for children", "The drug is safe for children"),
        ("The drug is safe for children", "The drug isn\u2019t safe for children"),
        ("The drug is safe for children", "The drug is unsafe for children"),
        ("Dogs are never allowed inside", "Dogs are allowed inside"),
        ("Paris", "It is not Paris."),
        ("Yes, the shop is open on Sunday", "No, the shop is open on Sunday"),
        ("The refund covers shipping", "The refund comes without shipping"),
        ("Das Mittel ist sicher", "Das Mittel ist nicht sicher"),
    ],
)
def test_a_flipped_negation_keeps_the_share_low(reference: str, response: str) -> None:
    assert share(reference, response) <= 0.2
    assert overlap(reference, response).findings[-1].startswith("Negation: ")


@pytest.mark.parametrize(
    ("reference", "response"),
    [
        ("The drug is not safe for children", "The drug is never safe for children"),
        ("The drug is safe for children", "The drug is not unsafe for children"),
        ("Check in no later than noon at the pier", "Check in by noon at the pier"),
        ("It is sold in shops", "It is not only sold in shops"),
    ],
)
def test_the_same_denial_in_other_words_is_no_flip(reference: str, response: str) -> None:
    assert share(reference, response) > 0.5


def test_a_number_left_out_keeps_the_share_at_half() -> None:
    assert share("The Wall fell in Berlin in 1989", "The Wall fell in Berlin") == 0.5


def test_a_paraphrase_in_the_same_words_is_high_but_not_at_the_top() -> None:
    response = "Because warm air is light, over the quiet village slowly rises the balloon."
    assert share(BALLOON, response) == 0.9


def test_a_paraphrase_in_other_words_gets_little_though_it_is_right() -> None:
    assert share("He passed away in spring", "His death came in April") < 0.3


def test_words_that_changed_places_are_not_noticed() -> None:
    assert share("Anna beat Bruno in the final", "Bruno beat Anna in the final") == 0.9


def test_more_of_the_reference_never_gives_less() -> None:
    words = BALLOON.rstrip(".").split()
    shares = [share(BALLOON, " ".join(words[:count])) for count in range(1, len(words) + 1)]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_text_around_the_reference_costs_nothing_and_around_its_words_something() -> None:
    assert share("Paris", "Well, that is easy: Paris, on the Seine.") == 1.0
    shuffled = "slowly rises the balloon because light is the warm air"
    longer = f"{shuffled} and bakers sell bread near fountains every morning"
    assert share(BALLOON, longer) < share(BALLOON, shuffled)


@pytest.mark.parametrize("response", ["", "  \n"])
def test_an_empty_response_is_at_the_bottom(response: str) -> None:
    assert share("Paris", response) == 0.0


@pytest.mark.parametrize(
    "response", ["...", "Der Ballon steigt, weil Luft warm ist.", "\U0001f388"]
)
def test_other_languages_and_signs_share_nothing(response: str) -> None:
    assert share("He passed away in spring", response) == 0.0


@pytest.mark.parametrize("response", ["There is no doubt: they open.", "Certainly, no problem."])
def test_a_bare_no_must_be_the_opening(response: str) -> None:
    assert share("No", response) < 0.5


def test_the_findings_quote_what_was_compared() -> None:
    findings = overlap(
        "Bring 2 forms and 10 miles of rope", "Bring 3 forms and 16 km of rope"
    ).findings
    assert (
        findings[0]
        == NOTICE
        == ("This is a measure of overlap in words, not a judgement of meaning.")
    )
    told = " ".join(findings)
    assert '"Bring 2 forms and 10 miles of rope"' in told
    assert 'found in the response: "10 miles" as "16 km"' in told
    assert 'in whose place the response has another: "2"' in told
    assert 'only the response has: "3"' in told
    # Bring, forms, rope and the miles: 4 of 5 on either side.
    assert "F1 0.80" in told


@pytest.mark.parametrize(
    ("scale", "response", "score"),
    [
        (Scale(low=0, high=2), "Paris", 2),
        (Scale(low=1, high=5), "Paris", 5),
        (Scale(low=1, high=5), "not Paris", 2),
        (Scale(low=0, high=2), "not Paris", 0),
        (Scale(low=-2, high=2), "Rome", -2),
        (Scale(low=-2, high=2), "not Paris", -1),
        (Scale(low=0.0, high=1.0, continuous=True), "not Paris", 0.2),
    ],
)
def test_the_share_falls_on_a_point_of_the_scale(scale: Scale, response: str, score: float) -> None:
    criterion = Criterion(id="a", name="A", scale=scale)
    found = measure(criterion, "Paris", response).score
    assert found == score
    assert scale.problem_with(found) is None


PROSE = "The Danube isn't 5 km long, and it is deep. "


@pytest.mark.parametrize("unit", [PROSE, " ", "1,234,", "Mr. ", "a", "*a*", "1 2 "])
def test_a_long_text_takes_time_in_proportion(unit: str) -> None:
    def work(size: int) -> None:
        text = (unit * (size // len(unit) + 1))[:size]
        measure(ACCURACY, f"{text} x", f"y {text}")

    assert growth.grows_with_size_alone(work, 100_000)


WORDS = ["not", "no", "never", "safe", "unsafe", "5", "km", "miles", "3.5", "\u00bd", "%"]
WORDS += ["half", "a", "dozen", "9", "May", "1989", "-", "$", "twenty", "and", "/", "1/2", "first"]
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)


@given(TEXTS, TEXTS)
@settings(max_examples=150, deadline=None)
def test_the_share_is_always_between_0_and_1_and_the_same_again(one: str, other: str) -> None:
    found = overlap(one, other)
    assert 0.0 <= found.share <= 1.0
    assert found == overlap(one, other)
    assert found.findings[0] == NOTICE


@given(TEXTS.filter(lambda text: bool(text.strip())))
@settings(max_examples=150, deadline=None)
def test_the_same_text_is_always_at_the_top(text: str) -> None:
    assert share(text, text) == 1.0


@cache
def bundled(name: str) -> Rubric:
    text = (resources.files("jurybox.rubric") / "library" / f"{name}.md").read_bytes()
    return parse_rubric(text, name)


def judged(reference: str | None, criteria: list[Criterion]) -> Answer | Unscored:
    judging = Judging(rubric=bundled("general"), checklist=bundled("bias-awareness"))
    sample = Sample(task="Where?", response=Response(text="Paris"), reference=reference)
    return overlap_flow(judging, sample, "Paris", SEAT, criteria)


def test_only_the_criteria_about_the_reference_are_scored() -> None:
    answer = judged("Paris", [ACCURACY])
    assert isinstance(answer, Answer)
    assert answer.value.scores == {"accuracy": 2}
    assert answer.replies == ()
    assert answer.value.remarks.reasoning == {
        "accuracy": f'{NOTICE} The response is the reference: "Paris".'
    }


def test_every_item_of_the_checklist_is_completed() -> None:
    answer = judged("Paris", [ACCURACY])
    assert isinstance(answer, Answer)
    checklist = answer.value.remarks.bias_checklist
    assert set(checklist) == {each.id for each in bundled("bias-awareness").criteria}
    assert len(set(checklist.values())) == len(checklist)


@pytest.mark.parametrize("reference", [None, "", " \n"])
def test_without_a_reference_there_is_no_score(reference: str | None) -> None:
    assert judged(reference, [ACCURACY]) == Unscored(
        reason="the overlap judge needs a reference answer", cause="defect"
    )


def test_without_a_criterion_there_is_no_score() -> None:
    answer = judged("Paris", [])
    assert isinstance(answer, Unscored)
    assert answer.cause == "defect"
