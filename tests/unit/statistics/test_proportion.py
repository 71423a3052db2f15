"""Shares and their intervals."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from jurybox.statistics.proportion import proportion, wilson


@pytest.mark.parametrize(("k", "n"), [(0, 10), (1, 10), (7, 10), (10, 10), (81, 263), (15, 148)])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_wilson_is_that_of_statsmodels(k: int, n: int, level: float) -> None:
    mine = wilson(k, n, level)
    other = proportion_confint(k, n, alpha=1 - level, method="wilson")
    assert (mine.low, mine.high) == pytest.approx(other, abs=1e-9)


def test_wilson_is_that_of_a_published_table() -> None:
    # R. G. Newcombe (1998), Statistics in Medicine 17, table I, method 3: 81/263, 15/148, 0/20.
    for k, n, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605)]:
        made = wilson(k, n)
        assert (round(made.low, 4), round(made.high, 4)) == (low, high)
    none = wilson(0, 20)
    assert (none.low, round(none.high, 4)) == (0, 0.1611)


def test_no_share_is_refused() -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(3, 2)


def test_no_rows_have_no_share_and_a_reason() -> None:
    made = proportion([])
    assert (made.value, made.interval, made.reason) == (None, None, "there are no rows")


def test_clusters_of_copies_count_as_one_row_each() -> None:
    outcomes = [True, False, True, True, False, True, False, True, True, True]
    copied = proportion(
        [each for each in outcomes for _ in range(5)],
        clusters=[i for i in range(10) for _ in range(5)],
    )
    single = proportion(outcomes, clusters=list(range(10)))
    assert copied.clusters == 10
    assert copied.effective_n == pytest.approx(single.effective_n)
    assert copied.interval is not None
    assert single.interval is not None
    assert (copied.interval.low, copied.interval.high) == pytest.approx(
        (single.interval.low, single.interval.high)
    )


def test_equal_outcomes_in_clusters_count_each_cluster_once() -> None:
    made = proportion([True] * 20, clusters=[i // 5 for i in range(20)])
    assert made.effective_n == 4
    assert made.interval is not None
    assert made.interval.high == 1
    assert made.interval.low < 0.5


def test_one_cluster_has_a_share_without_an_interval() -> None:
    made = proportion([True, False], clusters=["a", "a"])
    assert made.value == 0.5
    assert made.interval is None
    assert made.reason is not None


@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_clustered_intervals_cover_as_often_as_they_say(p: float) -> None:
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
