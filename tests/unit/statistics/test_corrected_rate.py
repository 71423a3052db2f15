"""The rate after Rogan and Gladen, with the interval of Lang and Reiczigel."""

import numpy as np
import pytest

from jurybox.statistics.corrected import LabeledScores, corrected_rate


def counted(yes: tuple[int, int], no: tuple[int, int], rest: tuple[int, int]) -> LabeledScores:
    """Return data with so many right of all, among people's yes and no; and yes in the rest."""
    human = [1] * yes[1] + [0] * no[1]
    judge = [1] * yes[0] + [0] * (yes[1] - yes[0]) + [0] * no[0] + [1] * (no[1] - no[0])
    return LabeledScores(human, judge, [1] * rest[0] + [0] * (rest[1] - rest[0]))


def test_the_formula_by_hand() -> None:
    """(0.3 + 0.9 - 1) / (0.8 + 0.9 - 1)."""
    made = corrected_rate(counted((40, 50), (90, 100), (300, 1000)))
    assert made.sensitivity.value == pytest.approx(0.8)
    assert made.specificity.value == pytest.approx(0.9)
    assert made.corrected.value == pytest.approx(0.2 / 0.7)


def test_the_interval_by_hand() -> None:
    z = 1.959963984540054
    p, n = (300 + z**2 / 2) / (1000 + z**2), 1000 + z**2
    s, c = 41 / 52, 91 / 102
    rate = (p + c - 1) / (s + c - 1)
    of_s, of_c = s * (1 - s) / 52, c * (1 - c) / 102
    shift = 2 * z**2 * (rate * of_s - (1 - rate) * of_c)
    error = np.sqrt(p * (1 - p) / n + rate**2 * of_s + (1 - rate) ** 2 * of_c) / (s + c - 1)
    interval = corrected_rate(counted((40, 50), (90, 100), (300, 1000))).corrected.interval
    assert interval.low == pytest.approx(rate + shift - z * error, abs=1e-12)
    assert interval.high == pytest.approx(rate + shift + z * error, abs=1e-12)


def test_a_value_outside_of_the_scale_is_brought_back_and_shown() -> None:
    made = corrected_rate(counted((40, 50), (80, 100), (100, 1000)))
    assert made.corrected.value == 0
    assert made.unclipped == pytest.approx(-0.1 / 0.6)
    assert made.corrected.interval.low == 0


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (counted((25, 50), (50, 100), (300, 1000)), "might as well guess"),
        (counted((0, 0), (90, 100), (300, 1000)), "no label is yes"),
        (counted((20, 20), (0, 0), (300, 1000)), "no label is no"),
        (counted((2, 3), (2, 3), (3, 10)), "too few"),
        (counted((20, 25), (20, 25), (0, 0)), "every sample has a label"),
    ],
)
def test_what_can_not_be_corrected_is_said_in_words(data: LabeledScores, word: str) -> None:
    made = corrected_rate(data)
    assert made.corrected.value is None
    assert made.corrected.interval is None
    assert word in made.reason


def test_intervals_cover_at_their_level() -> None:
    rng = np.random.default_rng(9)
    covered = 0
    for _ in range(1500):
        human = rng.random(1200) < 0.35
        judge = np.where(rng.random(1200) < np.where(human, 0.8, 0.85), human, ~human)
        interval = corrected_rate(
            LabeledScores(human[:200], judge[:200], judge[200:])
        ).corrected.interval
        covered += interval.low <= 0.35 <= interval.high
    assert 0.93 <= covered / 1500 <= 0.97
