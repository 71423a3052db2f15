"""The three tests, against others' and against counting by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as their_mcnemar

from jurybox.statistics.paired_tests import (
    MOST_EXACT_DISCORDANT,
    mcnemar,
    mcnemar_p,
    permutation,
    wilcoxon,
)

COUNTS = st.integers(0, 60)
SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=12)


@given(COUNTS, COUNTS)
def test_mcnemar_exact_is_that_of_statsmodels(only_a: int, only_b: int) -> None:
    expected = their_mcnemar([[5, only_a], [only_b, 7]], exact=True).pvalue
    assert mcnemar_p(only_a, only_b, exact=True) == pytest.approx(expected, abs=1e-9)


@given(COUNTS, COUNTS)
def test_the_mid_p_takes_half_of_what_was_seen_off_either_side(only_a: int, only_b: int) -> None:
    n = only_a + only_b
    exact = 2 * stats.binom.cdf(min(only_a, only_b), n, 0.5)
    expected = exact - stats.binom.pmf(only_a, n, 0.5)
    assert mcnemar_p(only_a, only_b, exact=False) == pytest.approx(expected, abs=1e-9)


def test_mcnemar_on_the_published_example_of_fagerland() -> None:
    """Bentur and others 2009: airway hyper-responsiveness before and after stem cells, 1 and 7."""
    assert mcnemar(1, 7).p_value == pytest.approx(0.0703, abs=5e-5)
    assert mcnemar_p(1, 7, exact=False) == pytest.approx(0.0391, abs=5e-5)


def test_mcnemar_says_which_variant_it_used() -> None:
    assert mcnemar(5, MOST_EXACT_DISCORDANT - 5).test == "McNemar, exact"
    assert mcnemar(5, MOST_EXACT_DISCORDANT - 4).test == "McNemar, mid-p"


def test_no_discordant_pair_says_nothing() -> None:
    assert mcnemar(0, 0).p_value == 1


@pytest.mark.parametrize("n", [1, 2, 7, 20, 50])
def test_wilcoxon_without_ties_is_scipys_exact_one(n: int) -> None:
    values = np.random.default_rng(n).normal(0.3, 1, n)
    expected = stats.wilcoxon(values, method="exact").pvalue
    assert wilcoxon(values).p_value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [80, 300])
def test_wilcoxon_with_many_ties_and_zeros_is_scipys_normal_one(n: int) -> None:
    values = np.random.default_rng(n).integers(-2, 4, n).astype(float)
    expected = stats.wilcoxon(values, zero_method="wilcox", method="approx").pvalue
    found = wilcoxon(values)
    assert found.p_value == pytest.approx(expected, abs=1e-9)
    assert found.n == np.count_nonzero(values)
    assert "normal" in found.test


@given(SCORES)
def test_wilcoxon_with_ties_counts_all_sign_flips(scores: list[int]) -> None:
    values = np.array([each for each in scores if each], dtype=float)
    ranks = stats.rankdata(np.abs(values))
    seen = ranks[values > 0].sum()
    sums = [
        sum(rank for rank, up in zip(ranks, flips, strict=True) if up)
        for flips in itertools.product([False, True], repeat=len(ranks))
    ]
    below, above = np.mean(np.array(sums) <= seen), np.mean(np.array(sums) >= seen)
    expected = min(1.0, 2 * min(below, above))
    assert wilcoxon(np.array(scores, dtype=float)).p_value == pytest.approx(expected, abs=1e-9)


@given(SCORES)
def test_few_units_are_permuted_in_all_ways(scores: list[int]) -> None:
    flips = itertools.product([-1, 1], repeat=len(scores))
    sums = np.array([sum(f * s for f, s in zip(flip, scores, strict=True)) for flip in flips])
    expected = np.mean(np.abs(sums) >= abs(sum(scores)))
    assert permutation(np.array(scores, dtype=float)).p_value == pytest.approx(expected)


def test_decimal_fractions_that_sum_to_the_same_are_as_extreme() -> None:
    """0.1 + 0.2 is a little more than 0.3, and must not be."""
    whole = np.array([1.0, 2.0, -3.0, 3.0, 3.0])
    assert permutation(whole / 10).p_value == permutation(whole).p_value


@pytest.mark.parametrize("discrete", [True, False])
def test_many_units_are_sampled_near_scipys_value(discrete: bool) -> None:  # noqa: FBT001
    rng = np.random.default_rng(4)
    values = rng.integers(-2, 4, 40).astype(float) if discrete else rng.normal(0.3, 1, 40)
    expected = stats.permutation_test(
        (values, np.zeros(40)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        n_resamples=50_000,
        rng=np.random.default_rng(1),
        vectorized=True,
    ).pvalue
    found = permutation(values, resamples=50_000, seed=3)
    assert found.p_value == pytest.approx(expected, abs=0.01)
    assert found == permutation(values, resamples=50_000, seed=3)


def test_a_sampled_p_value_is_never_zero() -> None:
    assert permutation(np.ones(200), resamples=999).p_value == pytest.approx(1 / 1000)


def test_no_difference_says_nothing() -> None:
    assert permutation(np.zeros(5)).p_value == 1
    assert wilcoxon(np.zeros(5)).p_value == 1


@given(SCORES)
def test_swapping_the_runs_changes_no_p_value(scores: list[int]) -> None:
    values = np.array(scores, dtype=float)
    assert permutation(values).p_value == pytest.approx(permutation(-values).p_value)
    assert wilcoxon(values).p_value == pytest.approx(wilcoxon(-values).p_value)
