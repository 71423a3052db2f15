"""Means and their intervals."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from jurybox.statistics.mean import mean_of


def test_the_interval_is_students() -> None:
    x = np.random.default_rng(2).normal(3, 2, 17)
    made = mean_of(x.tolist())
    low, high = stats.t.interval(0.95, 16, x.mean(), stats.sem(x))
    assert made.interval is not None
    assert (made.interval.low, made.interval.high) == pytest.approx((low, high), abs=1e-9)


def test_clusters_of_one_row_change_nothing() -> None:
    x = [1.0, 4.0, 2.5, 3.0]
    plain, clustered = mean_of(x), mean_of(x, clusters=list("abcd"))
    assert plain.error == pytest.approx(clustered.error, abs=1e-12)
    assert plain.interval is not None
    assert clustered.interval is not None
    assert plain.interval.low == pytest.approx(clustered.interval.low, abs=1e-12)


def test_the_clustered_error_is_that_of_statsmodels() -> None:
    rng = np.random.default_rng(3)
    groups = rng.integers(0, 12, 90)
    x = rng.normal(size=90) + rng.normal(size=12)[groups]
    fit = sm.OLS(x, np.ones(90)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}
    )
    # statsmodels multiplies with m/(m-1) (n-1)/(n-k), and k is 1 here.
    assert mean_of(x.tolist(), clusters=groups.tolist()).error == pytest.approx(
        float(fit.bse[0]), abs=1e-9
    )


@pytest.mark.parametrize("values", [[], [2.0], [3.0, 3.0, 3.0]])
def test_where_nothing_varies_there_is_a_reason_and_no_interval(values: list[float]) -> None:
    made = mean_of(values)
    assert made.interval is None
    assert made.reason is not None


def test_a_cluster_for_each_row_is_needed() -> None:
    with pytest.raises(ValueError, match="2 clusters are named for 3 rows"):
        mean_of([1, 2, 3], clusters=["a", "b"])


def test_clustered_intervals_cover_as_often_as_they_say_and_naive_ones_do_not() -> None:
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
