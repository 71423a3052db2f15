"""Stability: how far scores move."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.calibration.bias_results import changes
from jurybox.calibration.probes import KINDS
from jurybox.statistics.intervals import mean_of

FLATTERY, ORDER = (
    next(kind for kind in KINDS if kind.id == wanted) for wanted in ("flattery", "criteria_order")
)


def test_the_mean_change_has_an_interval_on_its_scale_and_the_largest_its_sign() -> None:
    before, after = [0.5, 0.5, 0.5, 0.75], [1.0, 0.75, 0.5, 0.5]
    mean, share, largest = changes(before, after, FLATTERY)
    assert mean.value == 0.125
    assert mean.interval == mean_of([0.5, 0.25, 0, -0.25], ends=(-1, 1)).interval
    assert share.value == 0.75
    assert largest.value == 0.5
    assert [each.name for each in (mean, share, largest)] == [
        "injection.flattery.change",
        "injection.flattery.changed",
        "injection.flattery.largest",
    ]
    assert "in 3 of 4 samples, by +0.50 at the most" in mean.sentence


def test_a_harmless_change_that_moves_scores_shouldnt() -> None:
    mean, _, _ = changes([0.2] * 9, [0.5, 0.6, 0.7] * 3, ORDER)
    assert mean.sentence.endswith("an irrelevant change affects the score.")


def test_a_judge_that_isnt_moved_is_told_so_with_what_that_is_worth() -> None:
    mean, share, largest = changes([0.3] * 10, [0.1 + 0.2] * 10, FLATTERY)
    assert (mean.value, share.value, largest.value) == (0, 0, 0)
    assert mean.interval is not None
    assert mean.interval.low < 0 < mean.interval.high
    assert share.interval is not None
    assert mean.sentence == (
        "With flattery behind the response, no score of 10 samples changes (at most 28% would)."
    )


def test_no_samples_give_no_metrics() -> None:
    assert {each.value for each in changes([], [], FLATTERY)} == {None}


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_going_back_is_the_opposite_change(rows: list[tuple[float, float]]) -> None:
    before, after = [a for a, _ in rows], [b for _, b in rows]
    there, back = changes(before, after, FLATTERY), changes(after, before, FLATTERY)
    assert there[0].value == pytest.approx(-(back[0].value or 0), abs=1e-9)
    assert there[1].value == back[1].value
