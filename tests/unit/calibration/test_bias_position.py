"""Position: known judges, symmetry, and intervals that cover what they should."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.calibration.bias_metrics import position
from jurybox.calibration.bias_results import BiasMetric
from jurybox.calibration.observations import Observations, ObservedVote

Votes = tuple[list[str], list[str], list[int]]

votes = st.lists(
    st.tuples(
        st.sampled_from(["A", "B", "tie"]), st.sampled_from(["A", "B", "tie"]), st.integers(0, 30)
    ),
    min_size=1,
    max_size=80,
)


def _both(
    straight: Sequence[str], swapped: Sequence[str], samples: Sequence[int]
) -> list[BiasMetric]:
    rows = zip(straight, swapped, samples, strict=True)
    votes = [ObservedVote(sample=str(s), straight=one, swapped=two) for one, two, s in rows]
    return list(position(Observations(voted=votes)))


def first_place_win_rate(*votes: Sequence[Any]) -> BiasMetric:
    return _both(*votes)[0]


def swap_consistency(*votes: Sequence[Any]) -> BiasMetric:
    return _both(*votes)[1]


def _apart(drawn: list[tuple[str, str, int]]) -> Votes:
    straight, swapped, samples = zip(*drawn, strict=True)
    return list(straight), list(swapped), list(samples)


def _mirrored(sides: list[str]) -> list[str]:
    return [{"A": "B", "B": "A"}.get(side, side) for side in sides]


def _judged(
    rng: np.random.Generator, flip: float, to_first: float, shape: tuple[int, int]
) -> Votes:
    """Votes of a judge that is inconsistent in ``flip`` of them, then mostly for one place."""
    samples, repeats = shape
    whose = np.repeat(np.arange(samples), repeats)
    tendency = np.repeat(rng.beta(5 * flip, 5 * (1 - flip), samples), repeats)
    flipped = rng.random(len(whose)) < tendency
    first = rng.random(len(whose)) < to_first
    winner = np.where(rng.random(len(whose)) < 0.5, "A", "B")
    straight = np.where(flipped, np.where(first, "A", "B"), winner)
    swapped = np.where(flipped, np.where(first, "B", "A"), winner)
    return straight.tolist(), swapped.tolist(), whose.tolist()


def test_several_votes_of_one_sample_widen_the_interval() -> None:
    straight, swapped, _ = _judged(np.random.default_rng(2), 0.4, 0.8, (120, 1))
    alone = first_place_win_rate(straight, swapped, range(120))
    copied = first_place_win_rate(straight * 4, swapped * 4, [*range(120)] * 4)
    assert copied.value == alone.value
    assert alone.interval is not None
    assert copied.interval is not None
    width = copied.interval.high - copied.interval.low
    assert width == pytest.approx(alone.interval.high - alone.interval.low, rel=0.05)


@given(drawn=votes)
def test_naming_the_responses_the_other_way_round_changes_nothing(
    drawn: list[tuple[str, str, int]],
) -> None:
    straight, swapped, samples = _apart(drawn)
    # B is now called A, so that what was the swapped order is the straight one.
    other = (_mirrored(swapped), _mirrored(straight), samples)
    one, two = (first_place_win_rate(*each) for each in ((straight, swapped, samples), other))
    assert one.value == two.value
    assert one.interval == two.interval
    assert swap_consistency(straight, swapped, samples).value == swap_consistency(*other).value


@given(drawn=votes)
def test_the_metric_lies_in_its_interval_and_the_interval_between_0_and_1(
    drawn: list[tuple[str, str, int]],
) -> None:
    found = first_place_win_rate(*_apart(drawn))
    if found.value is not None:
        assert found.interval is not None
        assert 0 <= found.interval.low <= found.value <= found.interval.high <= 1


@pytest.mark.parametrize(
    ("flip", "to_first", "shape"), [(0.1, 0.9, (100, 3)), (0.4, 1.0, (60, 3)), (0.3, 0.7, (80, 1))]
)
def test_intervals_cover_the_true_rate_as_often_as_they_say(
    flip: float, to_first: float, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(11)
    true = 0.5 + flip * (2 * to_first - 1) / 2
    covered = 0
    for _ in range(400):
        found = first_place_win_rate(*_judged(rng, flip, to_first, shape))
        assert found.interval is not None
        covered += found.interval.low <= true <= found.interval.high
    assert 365 <= covered <= 396
