import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.rubric.scale import Scale
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import RunSpreads, RunTally
from jurybox.scoring.tally import MetricSpread

RUBRIC = Rubric(
    id="spread",
    version="1.0.0",
    title="Spread",
    scale=Scale(low=1, high=5),
    criteria=(
        Criterion(id="tone", name="Tone", scale=Scale(low=1, high=5)),
        Criterion(id="sense", name="Sense", scale=Scale(low=0.0, high=1.0, continuous=True)),
        Criterion(id="depth", name="Depth", scale=Scale(low=0, high=100)),
    ),
)
finite = st.floats(min_value=-1e9, max_value=1e9)


def scored(**metrics: float | None) -> SampleResult:
    return SampleResult(metrics=dict(metrics))


def spread_of(*results: SampleResult, repeats: int = 1) -> RunSpreads:
    tally = RunTally(RUBRIC, repeats)
    for place, result in enumerate(results):
        tally.add(result, place % repeats)
    return tally.conclude().spreads


def one(name: str, *values: float, repeats: int = 1) -> MetricSpread:
    return spread_of(*(scored(**{name: value}) for value in values), repeats=repeats).metrics[name]


def used(spread: MetricSpread) -> list[tuple[float, float, int]]:
    return [each for each in spread.bins if each[2]]


def test_a_whole_number_scale_has_a_bin_for_every_score() -> None:
    spread = one("tone", 1, 2, 2, 5)
    assert spread.bins == ((1, 1, 1), (2, 2, 2), (3, 3, 0), (4, 4, 0), (5, 5, 1))


def test_a_score_between_two_counts_for_the_nearest_and_none_is_lost_beyond_the_ends() -> None:
    assert used(one("tone", 1.4, 1.5, 0.2, 9)) == [(1, 1, 2), (2, 2, 1), (5, 5, 1)]


def test_a_long_or_continuous_scale_has_twenty_equal_bins_from_end_to_end() -> None:
    depth, sense = one("depth", 0, 99, 100), one("sense", 0.0, 0.05, 1.0)
    assert len(depth.bins) == len(sense.bins) == 20
    assert used(depth) == [(0, 5, 1), (95, 100, 2)]
    assert used(sense) == [(0.0, 0.05, 1), (0.05, 0.1, 1), (0.95, 1.0, 1)]


def test_measures_have_bins_that_grow_from_the_lowest_used_to_the_highest() -> None:
    spread = one("latency_e2e_ms", 120, 130, 260)
    assert spread.bins == (
        (100, 125, 1),
        (125, 160, 1),
        (160, 200, 0),
        (200, 250, 0),
        (250, 320, 1),
    )
    assert used(one("total_tokens", 0, 1e30)) == [(0, 0.001, 1), (6.3e12, 8e12, 1)]


@given(st.lists(st.floats(min_value=0, max_value=7e12), min_size=1))
def test_every_value_is_counted_in_the_bin_it_is_in(values: list[float]) -> None:
    for low, high, count in one("latency_e2e_ms", *values).bins:
        assert count == sum(low <= value < high for value in values)


@given(st.lists(finite, min_size=2, max_size=50))
def test_mean_and_deviation_agree_with_the_standard_library(values: list[float]) -> None:
    spread = one("latency_e2e_ms", *values)
    assert spread.mean == pytest.approx(statistics.fmean(values), rel=1e-15, abs=1e-300)
    # Of values that hardly differ, the deviation is known to a hundred-millionth of them.
    least = 1e-7 * max(map(abs, values)) + 1e-140
    assert spread.sd == pytest.approx(statistics.stdev(values), rel=1e-7, abs=least)


def test_equal_values_have_no_deviation() -> None:
    assert one("latency_e2e_ms", *[0.1] * 3000).sd == 0


def test_repeats_count_by_what_they_differ_and_not_by_their_number() -> None:
    spread = one("tone", 1, 5, 3, 5, repeats=2)
    assert (spread.n, spread.independent, spread.mean) == (4, 2, 3.5)
    assert spread.sd == pytest.approx((2 * statistics.pvariance([1, 5, 3, 5])) ** 0.5)


@given(st.lists(st.lists(finite, min_size=3, max_size=3), min_size=2, max_size=10))
def test_the_deviation_is_never_below_that_of_the_samples_means(samples: list) -> None:
    spread = one("tone", *(value for sample in samples for value in sample), repeats=3)
    means = statistics.stdev(map(statistics.fmean, samples))
    largest = max(abs(value) for sample in samples for value in sample)
    assert spread.sd >= means - 1e-7 * largest - 1e-140


def test_one_value_has_no_deviation_and_none_has_no_spread() -> None:
    assert one("tone", 4).sd is None
    assert spread_of(scored(tone=None)).metrics == {}


def test_a_value_whose_square_is_no_number_takes_only_the_deviation_away() -> None:
    spread = one("latency_e2e_ms", 1e200, 1.0)
    assert (spread.n, spread.sd) == (2, None)


@given(st.lists(finite, max_size=30), st.randoms(use_true_random=False))
def test_spreads_dont_depend_on_the_order_of_the_samples(
    values: list[float], rng: random.Random
) -> None:
    results = [
        SampleResult(metrics={"tone": value, "latency_e2e_ms": value}, judge_score=value)
        for value in values
    ]
    before = spread_of(*results)
    rng.shuffle(results)
    assert spread_of(*results) == before


def test_confidence_stability_and_votes_are_counted() -> None:
    def judged(**more: object) -> SampleResult:
        return SampleResult(metrics={}, **more)  # type: ignore[arg-type]

    told = spread_of(
        judged(confidence="high", votes_valid=3, votes_requested=3),
        judged(confidence="low", votes_valid=2, votes_requested=5, votes_skipped=1, stable=True),
        judged(confidence="low", votes_requested=1, stable=False),
    )
    assert told.confidence == {"low": 1, "moderate": 0, "high": 1}
    assert told.stable == {"stable": 1, "unstable": 1}
    assert told.votes == {"requested": 9, "valid": 5, "skipped": 1, "lost": 3}


def test_a_conclusion_has_the_spreads_and_their_means_are_the_summarys() -> None:
    tally = RunTally(RUBRIC, 1)
    for number in range(2500):
        tally.add(scored(tone=number % 5 + 1, overall=number / 2499), 0)
    conclusion = tally.conclude()
    assert conclusion.spreads is not None
    assert conclusion.spreads.metrics.keys() == {"tone", "overall"}
    for name, spread in conclusion.spreads.metrics.items():
        assert spread.mean == conclusion.summary[f"{name}_mean"]
