import pytest

from jurybox.errors import Unreadable
from jurybox.rubric.conditions import Comparison


@pytest.mark.parametrize("text", ["overall >= 0.6", "overall>=0.6", "  overall  >=  0.60 "])
def test_a_comparison_is_a_name_an_operator_and_a_number(text: str) -> None:
    assert Comparison.parse(text) == Comparison(name="overall", operator=">=", number=0.6)


@pytest.mark.parametrize("text", ["x >= .5", "x >= 0.5000000", "x >= 5e-1"])
def test_a_half_may_be_written_in_several_ways(text: str) -> None:
    assert Comparison.parse(text).number == 0.5


def test_six_decimals_are_kept() -> None:
    assert Comparison.parse("x >= 0.123456").number == 0.123456
    assert Comparison.parse("x >= 0.123456").passes(0.1234564)


def test_a_number_may_be_below_zero() -> None:
    assert Comparison.parse("tone>-1") == Comparison(name="tone", operator=">", number=-1)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("overall = 1", "use `==`"),
        ("overall => 1", "use `>=`"),
        ("overall =< 1", "use `<=`"),
        ("overall \u2265 1", "use `>=`"),
        ("overall \u2264 1", "use `<=`"),
        ("overall \u2260 1", "use `!=`"),
        ("overall <> 1", "use `!=`"),
        ("overall === 1", "use one of >=, <=, >, <, ==, !="),
        ("pass_rate >= 85%", "write 0.85"),
        ("pass_rate >= high", "use a plain number"),
        ("pass_rate >= 0.8500001", "shorten it"),
        ("pass_rate >= 1e-7", "shorten it"),
        ("0.6 <= overall", "such as `overall >= 0.6`"),
        ("", "such as `overall >= 0.6`"),
        ("overall >=", "such as `overall >= 0.6`"),
        ("__import__('os')", "use one of >=, <=, >, <, ==, !="),
    ],
)
def test_a_slip_is_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(Unreadable) as caught:
        Comparison.parse(text)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "below", "equal", "above"),
    [
        ("x >= 2", False, True, True),
        ("x <= 2", True, True, False),
        ("x > 2", False, False, True),
        ("x < 2", True, False, False),
        ("x == 2", False, True, False),
        ("x != 2", True, False, True),
    ],
)
def test_each_operator_means_what_it_says(
    text: str, *, below: bool, equal: bool, above: bool
) -> None:
    comparison = Comparison.parse(text)
    assert [comparison.passes(value) for value in (1.9, 2, 2.1)] == [below, equal, above]


def test_c10_a_value_is_rounded_to_six_decimals_first() -> None:
    assert Comparison.parse("x >= 0.7").passes(0.69999999999)
    assert not Comparison.parse("x >= 0.7").passes(0.699999)
    assert Comparison.parse("x == 0.3").passes(0.1 + 0.2)


def test_a_missing_value_never_passes() -> None:
    assert not any(
        Comparison.parse(f"x {sign} 0").passes(None) for sign in (">=", "<=", "==", "!=")
    )


def test_the_canonical_text_is_spaced_and_short() -> None:
    assert str(Comparison.parse("overall>=0.80")) == "overall >= 0.8"
