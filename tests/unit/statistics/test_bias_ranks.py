"""Rank correlation over clusters: against scipy, plain and partial."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.statistics.cluster_regression import rank_correlation
from lazily import Lazily

stats = Lazily("scipy.stats")


def _columns(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=n)
    return np.array([quality + rng.normal(size=n), quality + rng.normal(size=n), quality]).round(1)


def test_it_is_spearmans_with_shared_ranks() -> None:
    x, y, _ = _columns(1, 80)
    found = rank_correlation(x, y, range(80))
    assert found.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


def test_the_partial_one_is_the_correlation_of_what_ranks_leave_unexplained() -> None:
    ranks = [stats.rankdata(column) for column in _columns(2, 80)]
    x, y = (each - np.polyval(np.polyfit(ranks[2], each, 1), ranks[2]) for each in ranks[:2])
    found = rank_correlation(*_columns(2, 80)[:2], range(80), given=ranks[2])
    assert found.value == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


def test_copies_of_a_sample_add_nothing() -> None:
    x, y, _ = _columns(4, 40)
    alone = rank_correlation(x, y, range(40))
    copied = rank_correlation(np.tile(x, 5), np.tile(y, 5), [*range(40)] * 5)
    assert copied.value == pytest.approx(alone.value, abs=1e-9)
    assert alone.interval is not None
    assert copied.interval is not None
    assert copied.interval.low == pytest.approx(alone.interval.low, abs=1e-9)


def test_intervals_cover_the_true_correlation_as_often_as_they_say() -> None:
    rng = np.random.default_rng(5)
    # Of a normal pair with correlation 0.5: 6/pi asin(0.25).
    true = 6 / np.pi * np.arcsin(0.25)
    covered = 0
    for _ in range(400):
        x = rng.normal(size=60)
        y = 0.5 * x + np.sqrt(0.75) * rng.normal(size=60)
        found = rank_correlation(x, y, range(60)).interval
        assert found is not None
        covered += found.low <= true <= found.high
    assert 372 <= covered <= 388


def test_what_doesnt_vary_has_no_correlation() -> None:
    found = rank_correlation([1.0] * 12, range(12), range(12))
    assert found.value is None
    assert found.reason == "one of the two columns doesn't vary"
    follows = rank_correlation(range(12), range(12), range(12), given=range(12))
    assert follows.value is None


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 60)), min_size=2, max_size=40),
    factor=st.integers(1, 9),
)
def test_only_the_order_counts_and_not_which_column_comes_first(
    rows: list[tuple[int, int]], factor: int
) -> None:
    x, y = [float(a) for a, _ in rows], [float(b) for _, b in rows]
    one = rank_correlation(x, y, range(len(x))).value
    other = rank_correlation(
        [each**3 for each in y], [factor * each for each in x], range(len(x))
    ).value
    assert one == pytest.approx(other, abs=1e-9)
