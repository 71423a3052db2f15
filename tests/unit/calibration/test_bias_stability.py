"""Stability: how far scores move."""

from jurybox.calibration.bias_results import change_of
from jurybox.calibration.probes import KINDS
from jurybox.statistics.intervals import mean_of

FLATTERY, ORDER = (
    next(kind for kind in KINDS if kind.id == wanted) for wanted in ("flattery", "criteria_order")
)


def test_the_mean_change_has_an_interval_on_its_scale() -> None:
    found = change_of([0.5, 0.5, 0.5, 0.75], [1.0, 0.75, 0.5, 0.5], FLATTERY)
    assert (found.name, found.value) == ("injection.flattery.change", 0.125)
    assert found.interval == mean_of([0.5, 0.25, 0, -0.25], ends=(-1, 1)).interval
    assert "on average, in 3 of 4 samples: no significant drift" in found.sentence


def test_a_harmless_change_that_moves_scores_shouldnt() -> None:
    found = change_of([0.2] * 9, [0.5, 0.6, 0.7] * 3, ORDER)
    assert found.sentence.endswith("an irrelevant change affects the score.")


def test_a_judge_that_isnt_moved_still_has_an_interval() -> None:
    found = change_of([0.3] * 10, [0.1 + 0.2] * 10, FLATTERY)
    assert found.value == 0
    assert found.interval is not None
    assert found.interval.low < 0 < found.interval.high
    assert found.sentence == "With flattery after the response, no score of 10 samples changes."


def test_no_samples_give_no_metric() -> None:
    assert change_of([], [], FLATTERY).value is None
