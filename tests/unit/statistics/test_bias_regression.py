"""Least squares over clusters: against statsmodels, and against leaving samples out by hand."""

import numpy as np
import pytest

from jurybox.statistics.cluster_regression import coefficient
from lazily import Lazily

stats = Lazily("scipy.stats")
sm = Lazily("statsmodels.api")


def _data(seed: int, m: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    rng = np.random.default_rng(seed)
    has = (rng.random(m * k) < 0.4).astype(float)
    length = rng.normal(100, 40, m * k)
    shared = np.repeat(rng.normal(size=m), k)
    y = 0.3 * has + 0.004 * length + shared + rng.normal(size=m * k) * (1 + has)
    return y, has, length, np.repeat(np.arange(m), k).tolist()


def test_the_coefficient_is_that_of_statsmodels() -> None:
    y, has, length, samples = _data(1, 40, 2)
    other = sm.OLS(y, np.column_stack([has, length, np.ones(len(y))])).fit()
    assert coefficient(y, [has, length], samples).value == pytest.approx(other.params[0], abs=1e-9)


def test_the_interval_is_that_of_leaving_each_cluster_out() -> None:
    y, has, length, samples = _data(2, 25, 3)
    x, whose = np.column_stack([has, length, np.ones(len(y))]), np.array(samples)
    whole = np.linalg.lstsq(x, y, rcond=None)[0][0]
    without = np.array(
        [np.linalg.lstsq(x[whose != g], y[whose != g], rcond=None)[0][0] for g in range(25)]
    )
    error = np.sqrt(24 / 25 * np.sum((without - whole) ** 2))
    half = stats.t.ppf(0.975, 24) * error
    found = coefficient(y, [has, length], samples).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((whole - half, whole + half), abs=1e-9)


def test_without_clusters_it_is_the_variance_hc3_of_statsmodels() -> None:
    y, has, length, _ = _data(3, 60, 1)
    x = np.column_stack([has, length, np.ones(len(y))])
    other = sm.OLS(y, x).fit(cov_type="HC3")
    found = coefficient(y, [has, length], range(60)).interval
    assert found is not None
    mine = (found.high - found.low) / 2 / stats.t.ppf(0.975, 59)
    # HC3 lacks the factor (m - 1)/m.
    assert mine == pytest.approx(other.bse[0] * np.sqrt(59 / 60), abs=1e-9)


@pytest.mark.parametrize(("m", "k"), [(20, 1), (40, 2)])
def test_intervals_cover_the_true_coefficient_as_often_as_they_say(m: int, k: int) -> None:
    covered = 0
    for seed in range(400):
        y, has, length, samples = _data(1000 + seed, m, k)
        found = coefficient(y, [has, length], samples).interval
        assert found is not None
        covered += found.low <= 0.3 <= found.high
    assert 365 <= covered <= 393


@pytest.mark.parametrize(
    ("y", "x", "why"),
    [
        ([1.0] * 12, list(range(12)), "all samples were judged the same"),
        (list(range(12)), [3.0] * 12, "the samples don't differ in this"),
        ([1.0, 2.0], [1.0, 5.0], "2 samples are too few"),
    ],
)
def test_what_cant_be_told_says_why(y: list[float], x: list[float], why: str) -> None:
    found = coefficient(y, [x], range(len(y)))
    assert found.value is None
    assert found.reason == why
