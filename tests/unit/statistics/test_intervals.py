"""Means and shares with their intervals."""

import numpy as np
import pytest

from jurybox.statistics.intervals import bounded_mean, mean_of, proportion, wilson
from lazily import Lazily

stats = Lazily("scipy.stats")
sm = Lazily("statsmodels.api")
theirs = Lazily("statsmodels.stats.proportion")


def test_the_interval_is_students() -> None:
    x = np.random.default_rng(2).normal(3, 2, 17)
    made = mean_of(x.tolist())
    low, high = stats.t.interval(0.95, 16, x.mean(), stats.sem(x))
    assert made.interval is not None
    assert (made.interval.low, made.interval.high) == pytest.approx((low, high), abs=1e-9)


def test_the_clustered_error_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 12, 90)
    x = rng.normal(size=90) + rng.normal(size=12)[groups]
    fit = sm.OLS(x, np.ones(90)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}
    )
    made = mean_of(x.tolist(), clusters=groups.tolist()).interval
    assert made is not None
    error = (made.high - made.low) / 2 / stats.t.ppf(0.975, len(set(groups)) - 1)
    # statsmodels multiplies with m/(m-1) (n-1)/(n-k), and k is 1 here.
    assert error == pytest.approx(float(fit.bse[0]), abs=1e-9)


@pytest.mark.parametrize("values", [[], [2.0], [3.0, 3.0, 3.0]])
def test_where_nothing_varies_there_is_a_reason_and_no_interval(values: list[float]) -> None:
    made = mean_of(values)
    assert made.interval is None
    assert made.reason is not None


def test_clustered_intervals_of_means_cover_as_often_as_they_say_and_naive_ones_do_not() -> None:
    rng = np.random.default_rng(11)
    trials, m, size = 1500, 25, 8
    clusters = np.repeat(np.arange(m), size).tolist()
    hits = naive = 0
    for _ in range(trials):
        x = (rng.normal(size=(m, 1)) + rng.normal(size=(m, size))).reshape(-1).tolist()
        made, plain = mean_of(x, clusters=clusters).interval, mean_of(x).interval
        assert made is not None
        assert plain is not None
        hits += made.low <= 0 <= made.high
        naive += plain.low <= 0 <= plain.high
    assert 0.93 <= hits / trials <= 0.97
    assert naive / trials < 0.8


def test_clusters_with_the_same_mean_show_no_spread() -> None:
    made = mean_of([0, 1] * 4, clusters=[0, 0, 1, 1, 2, 2, 3, 3])
    assert made.value == 0.5
    assert made.interval is None
    assert made.reason is not None
    assert made.reason.startswith("all clusters have the same mean")


@pytest.mark.parametrize(("k", "n"), [(0, 10), (1, 10), (7, 10), (10, 10), (81, 263), (15, 148)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilson_is_that_of_statsmodels(k: int, n: int, level: float) -> None:
    mine = wilson(k, n, level)
    other = theirs.proportion_confint(k, n, alpha=1 - level, method="wilson")
    assert (mine.low, mine.high) == pytest.approx(other, abs=1e-9)


def test_wilson_is_that_of_a_published_table() -> None:
    # R. G. Newcombe (1998), Statistics in Medicine 17, table I, method 3: 81/263, 15/148, 0/20.
    for k, n, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)]:
        made = wilson(k, n)
        assert (round(made.low, 4), round(made.high, 4)) == (low, high)
    none = wilson(0, 20)
    assert (none.low, round(none.high, 4)) == (0, 0.1611)


def test_clusters_of_copies_count_as_one_row_each() -> None:
    outcomes = [True, False, True, True, False, True, False, True, True, True]
    copied = proportion(
        [each for each in outcomes for _ in range(5)],
        clusters=[i for i in range(10) for _ in range(5)],
    )
    single = proportion(outcomes, clusters=list(range(10)))
    assert copied.interval is not None
    assert single.interval is not None
    assert (copied.interval.low, copied.interval.high) == pytest.approx(
        (single.interval.low, single.interval.high)
    )


def test_equal_outcomes_in_clusters_count_each_cluster_once() -> None:
    made = proportion([True] * 20, clusters=[i // 5 for i in range(20)])
    four = stats.t.ppf(0.975, 3) ** 2
    assert made.interval is not None
    assert (made.interval.low, made.interval.high) == pytest.approx((4 / (4 + four), 1), abs=1e-9)


def test_one_cluster_has_a_share_without_an_interval() -> None:
    made = proportion([True, False], clusters=["a", "a"])
    assert made.value == 0.5
    assert made.interval is None
    assert made.reason is not None


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_clustered_intervals_of_shares_cover_as_often_as_they_say(p: float) -> None:
    rng = np.random.default_rng(5)
    trials, m, size = 1500, 40, 6
    hits = 0
    clusters = np.repeat(np.arange(m), size).tolist()
    for _ in range(trials):
        # Beta-binomial with an intraclass correlation of 0.3.
        rate = rng.beta(p * 7 / 3, (1 - p) * 7 / 3, m)
        outcomes = rng.random((m, size)) < rate[:, None]
        made = proportion(outcomes.reshape(-1).tolist(), clusters=clusters).interval
        assert made is not None
        hits += made.low <= p <= made.high
    assert 0.93 <= hits / trials <= 0.97


@pytest.mark.parametrize(("yes", "n"), [(0, 20), (1, 20), (13, 50), (200, 200)])
def test_the_bounded_mean_of_yes_and_no_is_jeffreys_interval(yes: int, n: int) -> None:
    """With as many degrees of freedom as make Student's t normal."""
    share = yes / n
    made = bounded_mean(share, share * (1 - share), n, (0.0, 1.0), degrees=1e9)
    low, high = stats.beta.ppf([0.025, 0.975], yes + 0.5, n - yes + 0.5)
    assert made.low == pytest.approx(min(low, share), abs=1e-7)
    assert made.high == pytest.approx(max(high, share), abs=1e-7)


def test_a_bounded_mean_in_the_middle_of_many_values_is_nearly_students() -> None:
    x = np.random.default_rng(3).integers(1, 6, 400).astype(float)
    bounded, students = (mean_of(x, ends=ends).interval for ends in ((1.0, 5.0), None))
    assert bounded is not None
    assert students is not None
    assert bounded.low == pytest.approx(students.low, abs=0.002)
    assert bounded.high == pytest.approx(students.high, abs=0.002)


def test_equal_values_at_the_end_of_a_scale_leave_room_for_others() -> None:
    made = mean_of([5.0] * 20, ends=(1.0, 5.0)).interval
    assert made is not None
    assert made.high == 5
    # Of twenty values, one in ten could be lower.
    assert 4.3 < made.low < 4.6
