from fractions import Fraction
from statistics import quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox import parse_rubric
from jurybox.rubric.metrics import percentile
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.tally import MetricColumn, MetricTally

RUBRIC = parse_rubric("""---
id: metrics
version: 1.0.0
scale: 0-10
metrics:
  tone_low: min of tone
  tone_high: max of tone
  tone_sum: sum of tone
  tone_p90: p90 of tone
  full: share of tone == 10
  per_full: tone per tone == 10
---
# Metrics
## Criteria
### Tone
""")
finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


def scored(tone: float | None, **more: object) -> SampleResult:
    return SampleResult(metrics={"tone": tone}, **more)  # type: ignore[arg-type]


def tallied(*results: SampleResult) -> dict[str, float | None]:
    tally = MetricTally(RUBRIC)
    for result in results:
        tally.add(result)
    return tally.metrics()[0]


@given(st.lists(finite))
def test_a_sum_is_the_exact_one_rounded_once(values: list[float]) -> None:
    column = MetricColumn()
    for value in values:
        column.add(value)
    assert column.values().sum == float(sum(map(Fraction, values), Fraction()))


@given(st.lists(finite), st.randoms(use_true_random=False))
def test_metrics_dont_depend_on_the_order_of_the_samples(values: list[float], rng: object) -> None:
    shuffled = list(values)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert tallied(*map(scored, values)) == tallied(*map(scored, shuffled))


@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=2), st.integers(1, 99))
def test_percentiles_agree_with_the_standard_library(values: list[float], percent: int) -> None:
    expected = quantiles(values, n=100, method="inclusive")[percent - 1]
    assert percentile(sorted(values), percent) == pytest.approx(expected, abs=1e-6)


def test_a_sum_over_many_folds_is_exact_too() -> None:
    values = [0.1, 1e16, -1e16, 1e-9] * 1000
    column = MetricColumn(keep=True)
    for value in values:
        column.add(value)
    assert column.values().sum == float(sum(map(Fraction, values), Fraction()))
    assert column.statistic("min") == -1e16
    assert column.statistic("max") == 1e16
    assert column.statistic("p50") == percentile(sorted(values), 50)
    assert column.count == 4000


def test_every_kind_of_metric() -> None:
    metrics = tallied(scored(10), scored(4), scored(None), scored(10), scored(0))
    assert metrics["tone_mean"] == 6
    assert metrics["tone_low"] == 0
    assert metrics["tone_high"] == 10
    assert metrics["tone_sum"] == 24
    assert metrics["tone_p90"] == 10
    assert metrics["full"] == 0.5
    assert metrics["per_full"] == 12
    assert metrics["samples"] == 5
    assert metrics["lowest_criterion_mean"] == 6


def test_who_divides_by_nobody_divides_by_one() -> None:
    assert tallied(scored(3), scored(4))["per_full"] == 7
