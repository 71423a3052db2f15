"""The questions that a reviewer is asked, the keys that answer them, and what a form means."""

import msgspec
import pytest

from jurybox.review.review_input import read_verdict
from jurybox.rubric.rubric_model import Criterion, Level, Rubric
from jurybox.rubric.scale import Scale
from jurybox.web.review.form import (
    Field,
    given_fields,
    given_verdict,
    score_fields,
    winner_field,
)

SCALE = Scale.parse("1-5")
RUBRIC = Rubric(
    id="r",
    version="1",
    title="R",
    scale=SCALE,
    criteria=tuple(Criterion(id=name, name=name, scale=SCALE) for name in ("facts", "tone")),
    sha256="0",
)


def rubric(scale: str, *levels: Level) -> Rubric:
    criterion = Criterion(
        id="tone", name="Tone", scale=Scale.parse(scale), definition="Friendly.", levels=levels
    )
    return Rubric(
        id="r", version="1", title="R", scale=Scale.parse(scale), criteria=(criterion,), sha256="0"
    )


def field(scale: str, *levels: Level) -> Field:
    (only,) = score_fields(rubric(scale, *levels))
    return only


def test_a_definition_has_the_paragraphs_of_its_document_and_not_its_lines() -> None:
    written = "Right in\nthe main.\n\nAs in:\n- a poem\n- a plan"
    criteria = (Criterion(id="tone", name="Tone", scale=SCALE, definition=written),)
    (only,) = score_fields(msgspec.structs.replace(RUBRIC, criteria=criteria))
    assert only.definition == "Right in the main.\n\nAs in:\n- a poem\n- a plan"


def keys(scale: str) -> dict[str, str | None]:
    return {each.label: each.key for each in field(scale).choices}


def test_a_score_has_the_key_of_its_own_digit() -> None:
    own = {str(score): str(score) for score in range(1, 6)}
    assert keys("1-5") == {**own, "Unclear": "x"}


def test_ten_has_the_key_0_where_no_score_is_0() -> None:
    assert keys("1-10")["10"] == "0"
    assert keys("0-10")["0"] == "0"
    assert keys("0-10")["10"] is None


def test_scores_below_zero_have_the_keys_of_their_places() -> None:
    assert list(keys("-2..2").values()) == ["1", "2", "3", "4", "5", "x"]


@pytest.mark.parametrize("scale", ["1-10", "0-9", "0-1", "-5..4", "3-7"])
def test_no_two_answers_share_a_key(scale: str) -> None:
    given = list(keys(scale).values())
    assert None not in given
    assert len(set(given)) == len(given)


@pytest.mark.parametrize(
    ("scale", "low", "high", "step"), [("0.0-1.0", "0", "1", "any"), ("0-100", "0", "100", "1")]
)
def test_many_scores_are_written_as_a_number(scale: str, low: str, high: str, step: str) -> None:
    asked = field(scale, Level(low=0, high=0.5, meaning="poor", label="Low"))
    assert (asked.low, asked.high, asked.step) == (low, high, step)
    assert [each.label for each in asked.choices] == ["Unclear"]
    assert [(each.label, each.meaning) for each in asked.readings] == [("0\u20130.5", "Low: poor")]


def test_a_choice_says_what_its_score_means() -> None:
    levels = (Level(low=1, high=2, meaning="rude"), Level(low=5, high=5, meaning="warm"))
    told = {each.label: each.meaning for each in field("1-5", *levels).choices}
    assert told == {"1": "rude", "2": "rude", "3": "", "4": "", "5": "warm", "Unclear": ""}


def test_of_two_responses_the_winner_is_asked() -> None:
    winner = winner_field(RUBRIC)
    assert winner.definition == "By: facts, tone"
    assert [each.key for each in winner.choices] == ["a", "b", "t", "x"]
    assert not winner.optional


def test_scores_are_numbers_as_json_has_them() -> None:
    form = {"score.facts": "4", "score.tone": "2.5", "csrf": "x"}
    assert given_verdict(form, RUBRIC, pair=False) == {"scores": {"facts": 4, "tone": 2.5}}


def test_who_cannot_tell_gives_null_and_who_says_nothing_leaves_it_out() -> None:
    form = {"score.facts": "none", "score.tone": ""}
    assert given_verdict(form, RUBRIC, pair=False) == {"scores": {"facts": None}}


@pytest.mark.parametrize("text", ["4", "4.0", "40e-1"])
def test_a_whole_number_is_one_however_a_browser_takes_it(text: str) -> None:
    asked = rubric("0-100")
    given = given_verdict({"score.tone": text}, asked, pair=False)
    assert read_verdict(given, asked, pair=False).scores == {"tone": 4}


def test_what_is_no_number_is_passed_on_to_be_refused() -> None:
    form = {"score.facts": "four"}
    assert given_verdict(form, RUBRIC, pair=False) == {"scores": {"facts": "four"}}


@pytest.mark.parametrize(
    ("form", "meant"),
    [
        ({"winner": "A"}, {"winner": "A"}),
        ({"winner": "none"}, {"winner": None}),
        ({}, {"winner": ""}),
    ],
)
def test_a_pair_has_a_winner(form: dict, meant: dict) -> None:
    assert given_verdict(form, RUBRIC, pair=True) == meant


@pytest.mark.parametrize(
    ("form", "pair"),
    [
        ({"score.facts": "4", "score.tone": "none"}, False),
        ({"winner": "B"}, True),
    ],
)
def test_a_verdict_that_was_given_fills_the_form_again(form: dict, *, pair: bool) -> None:
    assert given_fields(given_verdict(form, RUBRIC, pair=pair)) == form
