"""Whether two runs differ by more than chance."""

import numpy as np
import pytest

from jurybox.scoring.sample_result import SampleResult
from jurybox.statistics.metric_differences import (
    DifferenceTests,
    MetricDifference,
    comparable_scores,
)
from jurybox.wiring import load_rubric


def result(clarity: float | None = None, tone: float | None = None, **more: object) -> SampleResult:
    return SampleResult(metrics={"clarity": clarity, "tone": tone}, judged=True, **more)


def differences(
    pairs: list[tuple[SampleResult, SampleResult]], *, clusters: list[str] | None = None
) -> dict[str, MetricDifference]:
    testing = DifferenceTests(("clarity", "tone", "judge_score"))
    for place, (one, other) in enumerate(pairs):
        testing.add(one, other, place if clusters is None else clusters[place])
    found = testing.tested(clustered=clusters is not None)
    return {each.metric: each for each in found}


def test_what_no_sample_shows_takes_nothing_from_the_other_tests() -> None:
    found = differences([(result(3), result(4))] * 3)
    assert set(found) == {"clarity"}


def test_who_wins_two_responses_is_tested_and_is_no_regression_either_way() -> None:
    found = differences([(result(winner="B"), result(winner="A"))] * 40)
    wins = found["win_rate"]
    assert (wins.comparison.mean_a, wins.comparison.mean_b) == (0.0, 1.0)
    assert wins.wanted == "neither"
    assert not wins.regression


def test_samples_with_a_metric_on_one_side_are_counted_and_not_compared() -> None:
    pairs = [(result(4), result(4)), (result(4), result(None)), (result(None), result(2))]
    found = differences(pairs)["clarity"]
    assert (found.comparison.n, found.only_in_a, found.only_in_b) == (1, 1, 1)


def test_more_criteria_make_each_harder_to_pass() -> None:
    falling = [(4.0, 3.0)] * 6 + [(4.0, 4.0)] * 20
    alone = [(result(a), result(b)) for a, b in falling]
    beside = [(result(a, 2), result(b, 2)) for a, b in falling]
    one, other = differences(alone)["clarity"].comparison, differences(beside)["clarity"].comparison
    assert one.p_value == other.p_value
    assert other.p_adjusted == pytest.approx(2 * one.p_adjusted)


def test_two_runs_of_one_system_are_told_apart_no_more_often_than_the_level_says() -> None:
    """The whole comparison keeps its level, with three metrics that hang together."""
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(150):
        base = rng.integers(1, 6, 50)
        noisy = [np.clip(base + rng.integers(-1, 2, 50), 1, 5) for _ in range(4)]
        pairs = [
            (
                result(a, c, passed=bool(a > 2)),
                result(b, d, passed=bool(b > 2)),
            )
            for a, b, c, d in np.array(noisy).T.astype(float)
        ]
        alarms += any(
            each.comparison.verdict != "undecided" for each in differences(pairs).values()
        )
    assert 0.01 <= alarms / 150 <= 0.09


def test_only_scores_that_mean_the_same_are_held_against_each_other() -> None:
    general, quality = load_rubric("general"), load_rubric("answer-quality")
    same = comparable_scores(general, general)
    assert same == (*(each.id for each in general.criteria), "overall", "judge_score")
    assert comparable_scores(general, quality) == ("overall", "judge_score")
    assert "sample_score" in comparable_scores(quality, quality)


def test_labels_of_people_leave_the_other_tests_alone() -> None:
    found = list[tuple[MetricDifference, ...]]()
    for right in ((None, None), (0.0, 1.0)):
        testing = DifferenceTests(("clarity", "tone"))
        for place in range(20):
            testing.add(result(3, 3), result(4 if place % 3 else 2, 4), place, right)
        found.append(testing.tested(clustered=False))
    without, labeled = found
    assert labeled[:-1] == without
    assert labeled[-1].metric == "right"
    assert labeled[-1].comparison.p_adjusted == labeled[-1].comparison.p_value
