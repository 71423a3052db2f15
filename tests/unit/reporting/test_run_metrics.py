"""Numbers as people want to see them."""

import pytest

from jurybox.documents.numbers import difference, exact, short, shown, signed
from jurybox.reporting.metric_text import cost_of, listed_counts


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (3.0, "3"),
        (1 / 3, "0.3333"),
        (0.00001, "1e-05"),
        (-0.00001, "-1e-05"),
        (8556.025, "8556"),
        (1234.56, "1234.6"),
        (1234567.0, "1234567"),
        (0.5, "0.5"),
    ],
)
def test_a_number_is_as_long_as_it_has_to_be(value: float | None, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.00043, "0.00043"), (0.00001, "0.00001"), (3.2e-08, "0"), (-3e-8, "0")]
)
def test_a_page_shows_no_more_digits_than_are_compared(value: float, text: str) -> None:
    assert short(value) == text


def test_a_value_just_below_its_gate_does_not_look_like_the_gate() -> None:
    assert shown(0.84999) == "0.85"
    assert exact(0.84999) == "0.84999"
    assert exact(None) == "-"


@pytest.mark.parametrize(
    ("one", "other", "apart", "text"),
    [
        (0.1, 0.3, 0.2, "+0.2"),
        (0.3, 0.1, -0.2, "-0.2"),
        (0.1, 0.1, 0.0, "0"),
        (None, 0.1, None, "-"),
        (0.1, None, None, "-"),
    ],
)
def test_a_difference_is_what_people_would_say(
    one: float | None, other: float | None, apart: float | None, text: str
) -> None:
    assert difference(one, other) == apart
    assert signed(apart) == text


def test_a_cause_that_judges_share_is_listed_once_with_their_names() -> None:
    counts = {"a/one: timed out: 5 s": 1, "b/two: timed out: 5 s": 2, "no JSON: nothing": 1}
    assert listed_counts(counts) == "3 x timed out: 5 s (a/one, b/two); 1 x no JSON: nothing"


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        ({"judge": 1.7012, "target": None}, "$1.70 + target unknown"),
        ({"judge": 0.5, "target": 0.25}, "$0.75"),
        ({"judge": None, "target": None}, "unknown"),
        ({"judge": None, "target": 0.0}, "unknown"),
    ],
)
def test_a_cost_of_which_a_part_is_unknown_has_the_other_part(
    dollars: dict[str, float | None], text: str
) -> None:
    models = [{"role": role, "dollars": cost} for role, cost in dollars.items()]
    known = [cost for cost in dollars.values() if cost is not None]
    whole = sum(known) if len(known) == len(models) else None
    assert cost_of({"dollars": whole, "models": models}) == text
