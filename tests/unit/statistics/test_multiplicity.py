"""Holm's correction."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from jurybox.statistics.paired_comparison import holm

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def test_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


def test_nothing_to_correct() -> None:
    assert holm([]) == ()
    assert holm([0.2]) == (0.2,)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan")])
def test_what_is_no_probability_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="not between 0 and 1"):
        holm([0.5, wrong])


@settings(max_examples=settings.default.max_examples // 4)  # it collects garbage each time
@given(P_VALUES)
def test_it_agrees_with_statsmodels(p_values: list[float]) -> None:
    expected = multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected, abs=1e-12)


@given(P_VALUES)
def test_the_order_does_not_matter(p_values: list[float]) -> None:
    assert holm(p_values[::-1]) == pytest.approx(holm(p_values)[::-1])
