"""What a form says."""

import pytest

from jurybox.rubric.model import Criterion, Rubric
from jurybox.rubric.scale import Scale
from jurybox.web.review.forms import given_fields, given_verdict

SCALE = Scale.parse("1-5")
RUBRIC = Rubric(
    id="r",
    version="1",
    title="R",
    scale=SCALE,
    criteria=tuple(Criterion(id=name, name=name, scale=SCALE) for name in ("facts", "tone")),
    sha256="0",
)


def test_scores_are_numbers_as_json_has_them() -> None:
    form = {"score.facts": "4", "score.tone": "2.5", "csrf": "x"}
    assert given_verdict(form, RUBRIC, pair=False) == {"scores": {"facts": 4, "tone": 2.5}}


def test_who_cannot_tell_gives_null_and_who_says_nothing_leaves_it_out() -> None:
    form = {"score.facts": "none", "score.tone": ""}
    assert given_verdict(form, RUBRIC, pair=False) == {"scores": {"facts": None}}


def test_what_is_no_number_is_passed_on_to_be_refused() -> None:
    form = {"score.facts": "four"}
    assert given_verdict(form, RUBRIC, pair=False) == {"scores": {"facts": "four"}}


@pytest.mark.parametrize(
    ("form", "meant"),
    [
        ({"winner": "A"}, {"winner": "A"}),
        ({"winner": "none"}, {"winner": None}),
        ({}, {}),
        (
            {"winner": "tie", "preference.tone": "B"},
            {"winner": "tie", "preferences": {"tone": "B"}},
        ),
    ],
)
def test_a_pair_has_a_winner_and_perhaps_preferences(form: dict, meant: dict) -> None:
    assert given_verdict(form, RUBRIC, pair=True) == meant


@pytest.mark.parametrize(
    ("form", "pair"),
    [
        ({"score.facts": "4", "score.tone": "none"}, False),
        ({"winner": "B", "preference.tone": "tie"}, True),
    ],
)
def test_a_verdict_that_was_given_fills_the_form_again(form: dict, *, pair: bool) -> None:
    assert given_fields(given_verdict(form, RUBRIC, pair=pair)) == form
