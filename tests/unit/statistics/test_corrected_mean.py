"""The prediction-powered mean (PPI++)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.statistics.corrected import (
    CorrectedMetric,
    LabeledScores,
    corrected_mean,
    correction_sentence,
)


def judged(
    rng: np.random.Generator, n: int, more: int, rate: float, right: tuple[float, float]
) -> LabeledScores:
    """Draw people's yes and no, and a judge that is right on so much of either."""
    human = rng.random(n + more) < rate
    judge = np.where(rng.random(n + more) < np.where(human, *right), human, ~human)
    return LabeledScores(human[:n], judge[:n], judge[n:])


def scored(rng: np.random.Generator, n: int, more: int) -> LabeledScores:
    """Draw scores of people around 3, and a judge that is milder and noisy."""
    human = rng.normal(3, 1, n + more)
    judge = 0.7 * human + rng.normal(1.5, 0.6, n + more)
    return LabeledScores(human[:n], judge[:n], judge[n:])


def test_it_is_the_published_formula() -> None:
    data = scored(np.random.default_rng(1), 40, 400)
    y, f, g = data.human, data.judge, data.rest
    tuning = np.cov(y, f)[0, 1] / ((1 + 40 / 400) * np.concatenate([f, g]).var(ddof=1))
    value = y.mean() + tuning * (g.mean() - f.mean())
    own = 2.0226909200367604 * (y - tuning * f).std(ddof=1) / np.sqrt(40)  # t with 39 degrees
    others = 1.9659272959 * tuning * g.std(ddof=1) / np.sqrt(400)  # and with 399
    made = corrected_mean(data)
    assert made.tuning == pytest.approx(tuning, abs=1e-12)
    assert made.corrected.value == pytest.approx(value, abs=1e-12)
    assert made.corrected.interval.high - value == pytest.approx(np.hypot(own, others))
    assert made.bias == pytest.approx(f.mean() - y.mean())


def test_a_useless_judge_is_left_out() -> None:
    rng = np.random.default_rng(2)
    human = rng.normal(3, 1, 50)
    made = corrected_mean(LabeledScores(human, -human, rng.normal(-3, 1, 500)))
    assert made.tuning == 0
    assert made.corrected.value == pytest.approx(human.mean())
    assert made.effective_labels == pytest.approx(50)
    assert "; the judge would not make the interval narrower; " in correction_sentence(made, "")


def test_a_good_judge_is_worth_many_labels() -> None:
    made = corrected_mean(judged(np.random.default_rng(3), 100, 2000, 0.4, (0.95, 0.95)))
    assert made.effective_labels > 200
    assert f"as precise as {made.effective_labels:,.0f} labels" in correction_sentence(made, "")
    width = made.corrected.interval.high - made.corrected.interval.low
    assert width < made.human.interval.high - made.human.interval.low


def test_as_many_more_labels_as_it_says_do_halve_the_interval() -> None:
    rng = np.random.default_rng(4)
    whole = scored(rng, 2000, 0)
    y, f = whole.human, whole.judge
    first = corrected_mean(LabeledScores(y[:50], f[:50], f[50:]))
    n = 50 + first.labels_to_halve
    then = corrected_mean(LabeledScores(y[:n], f[:n], f[n:]))
    widths = [each.corrected.interval.high - each.corrected.interval.low for each in (first, then)]
    assert widths[1] / widths[0] == pytest.approx(0.5, abs=0.06)


def test_a_judge_that_was_right_on_every_label_is_not_taken_for_infallible() -> None:
    human = np.arange(20) % 2
    made = corrected_mean(LabeledScores(human, human, np.tile([0, 1], 5000)))
    # The judge's own interval is 0.02 wide; twenty labels can't promise that.
    assert made.corrected.interval.high - made.corrected.interval.low > 0.19


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (LabeledScores([1, 0, 1], [1, 0, 0], [1] * 50), "3 labels are too few"),
        (LabeledScores([], [], [1, 0]), "0 labels are too few"),
        (LabeledScores([1, 0] * 10, [1, 0] * 10, []), "every sample has a label"),
        (LabeledScores([3] * 20, [3] * 20, [3] * 50), "no spread"),
        (
            LabeledScores(
                [1, 0] * 10, [1, 0] * 10, [1] * 9, clusters=[1] * 20, rest_clusters=range(9)
            ),
            "from 1 clusters",
        ),
    ],
)
def test_what_can_not_be_corrected_is_said_in_words(data: LabeledScores, word: str) -> None:
    made = corrected_mean(data)
    assert made.corrected.interval is None
    assert word in made.reason
    assert word in correction_sentence(made, "")


def test_copies_in_clusters_add_no_knowledge() -> None:
    data = scored(np.random.default_rng(6), 40, 300)
    copied = LabeledScores(
        np.repeat(data.human, 5),
        np.repeat(data.judge, 5),
        np.repeat(data.rest, 5),
        clusters=[i // 5 for i in range(200)],
        rest_clusters=[1000 + i // 5 for i in range(1500)],
    )
    one, other = corrected_mean(data), corrected_mean(copied)
    assert other.corrected.value == pytest.approx(one.corrected.value, abs=5e-3)
    widths = [each.corrected.interval.high - each.corrected.interval.low for each in (one, other)]
    assert widths[1] == pytest.approx(widths[0], rel=0.03)
    assert other.corrected.interval.method.endswith("clustered")


@given(st.integers(0, 1000), st.floats(-5, 5), st.floats(0.1, 10))
def test_another_unit_changes_the_metrics_and_nothing_else(
    seed: int, shift: float, factor: float
) -> None:
    data = scored(np.random.default_rng(seed), 20, 60)
    moved = LabeledScores(*(factor * part + shift for part in (data.human, data.judge, data.rest)))
    one, other = corrected_mean(data), corrected_mean(moved)
    assert other.tuning == pytest.approx(one.tuning)
    assert other.corrected.value == pytest.approx(factor * one.corrected.value + shift)
    assert other.effective_labels == pytest.approx(one.effective_labels)
    assert other.labels_to_halve == one.labels_to_halve


def test_the_judges_own_interval_misses_the_rate_that_the_corrected_one_covers() -> None:
    rng = np.random.default_rng(100)
    covered, alone = 0, 0
    for _ in range(200):
        made = corrected_mean(judged(rng, 60, 1000, 0.24, (0.6, 0.9)))
        covered += made.corrected.interval.low <= 0.24 <= made.corrected.interval.high
        alone += made.judge.interval.low <= 0.24 <= made.judge.interval.high
    assert covered / 200 >= 0.92
    assert alone / 200 < 0.75


@pytest.mark.parametrize(("rate", "n"), [(0.02, 100), (0.1, 20), (0.3, 50)])
def test_small_rates_are_covered_and_no_interval_is_wider_than_that_of_the_labels(
    rate: float, n: int
) -> None:
    """At 0.02 with 100 labels and at 0.1 with 20, Student's interval covered 87% and 88%."""
    rng = np.random.default_rng(50 + n)
    covered = 0
    for _ in range(200):
        made = corrected_mean(judged(rng, n, 1000, rate, (0.8, 0.85)))
        interval, alone = made.corrected.interval, made.human.interval
        covered += interval.low <= rate <= interval.high
        assert interval.high - interval.low <= alone.high - alone.low
        assert interval.low <= made.corrected.value <= interval.high
    assert covered / 200 >= 0.925


def test_a_good_judge_of_scores_never_widens_the_interval() -> None:
    rng = np.random.default_rng(14)
    for _ in range(200):
        people = rng.integers(1, 6, 530).astype(float)
        judge = np.where(rng.random(530) < 0.15, np.clip(people + 1, 1, 5), people)
        made = corrected_mean(LabeledScores(people[:20], judge[:20], judge[20:]))
        interval, alone = made.corrected.interval, made.human.interval
        assert interval.high - interval.low <= alone.high - alone.low


@pytest.mark.parametrize(("points", "n", "wrong"), [((1, 5), 10, 0.1), ((0, 2), 20, 0.1)])
def test_errors_that_few_labels_show_are_not_forgotten(
    points: tuple[int, int], n: int, wrong: float
) -> None:
    """A judge that is two points off on a few percent is often right on every label."""
    rng = np.random.default_rng(11)
    low, high = points
    covered = 0
    for _ in range(200):
        people = rng.integers(low, high + 1, 1500).astype(float)
        off = rng.random(1500) < wrong
        judge = np.where(off, np.clip(people + 2, low, high), people)
        data = LabeledScores(people[:n], judge[:n], judge[n:], ends=points)
        interval = corrected_mean(data).corrected.interval
        assert interval is not None
        truth = (low + high) / 2
        covered += interval.low <= truth <= interval.high
    assert covered / 200 >= 0.93


def test_labels_are_never_worth_less_for_being_corrected() -> None:
    rng = np.random.default_rng(12)
    people = rng.integers(0, 2, 12).astype(float)
    made = corrected_mean(LabeledScores(people, people, rng.integers(0, 2, 500).astype(float)))
    assert made.effective_labels is not None
    assert made.effective_labels > 12


@pytest.mark.parametrize(("metric", "shown"), [("response_rate", "3.500"), ("pass_rate", "350.0%")])
def test_only_rates_are_shown_in_percent(metric: str, shown: str) -> None:
    people, judge = [3.0, 4.0] * 5, [4.0, 5.0] * 5
    made = corrected_mean(LabeledScores(people, judge, judge, ends=(1, 5)))
    each = CorrectedMetric(metric=metric, mean=made)
    assert f"it is {shown} (" in correction_sentence(made, each.formatted_as)
