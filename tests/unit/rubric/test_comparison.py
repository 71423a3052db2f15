import pytest

from jurybox.rubric.metrics import Comparison


@pytest.mark.parametrize("text", ["overall >= 0.6", "overall>=0.6", "  overall  >=  0.60 "])
def test_a_comparison_is_a_name_an_operator_and_a_number(text: str) -> None:
    assert Comparison.parse(text) == Comparison(name="overall", operator=">=", number=0.6)


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
