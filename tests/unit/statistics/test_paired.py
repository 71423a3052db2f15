"""Two runs on the same samples."""

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurybox.statistics.paired_comparison import (
    MOST_FLIPPED,
    adjusted,
    compare_paired,
    holm,
    mcnemar,
    minimal_detectable,
    permutation,
    rates_interval,
)
from lazily import Lazily

stats = Lazily("scipy.stats")
contingency_tables = Lazily("statsmodels.stats.contingency_tables")
multitest = Lazily("statsmodels.stats.multitest")
power = Lazily("statsmodels.stats.power")

SCORES = st.lists(st.integers(-3, 3), min_size=1, max_size=12)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=20)
PAIRS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=40)


def has_nan(value: object) -> bool:
    """Look into all of a result; as JSON, NaN would pass for null."""
    if isinstance(value, dict):
        return any(map(has_nan, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_nan, value))
    return isinstance(value, float) and value != value  # noqa: PLR0124 - only NaN differs from itself


def test_rates_are_tested_by_mcnemar() -> None:
    """The example of Fagerland and others (2014): 21 pairs, 1 and 7 discordant."""
    a = [1] * 8 + [0] * 13
    b = [1] * 7 + [0] + [1] * 7 + [0] * 6
    made = compare_paired(a, b, binary=True)
    assert made.test == "McNemar, exact"
    assert made.p_value == pytest.approx(0.0703, abs=5e-5)
    assert made.interval is not None
    # Published for the other direction, as the Bonett-Price interval: -0.508 to -0.013.
    assert made.interval.low == pytest.approx(0.013, abs=5e-4)
    assert made.interval.high == pytest.approx(0.508, abs=1e-3)
    # The interval excludes zero and the exact test doesn't reject: nothing is claimed.
    assert made.verdict == "undecided"


@pytest.mark.parametrize(
    ("a", "b", "word"),
    [
        ([], [], "no sample has the metric in both runs"),
        ([1], [2], "one independent difference has no spread"),
        ([2, 1, 3], [2, 1, 3], "A and B are equal on 3 samples"),
    ],
)
def test_what_can_not_be_told_is_said_in_words(a: list[int], b: list[int], word: str) -> None:
    made = compare_paired(a, b)
    assert made.verdict == "undecided"
    assert made.interval is None
    assert word in made.sentence
    assert not has_nan(msgspec.to_builtins(made))


def test_every_sample_moved_by_the_same_is_a_difference() -> None:
    """A run that lost exactly one point on all of a hundred samples is a regression."""
    made = compare_paired([3] * 100, [2] * 100)
    assert made.verdict == "lower"
    assert made.interval is not None
    # Two more are imagined: one at 0 and one at +1.
    imagined = np.array([-1.0] * 100 + [0.0, 1.0])
    half = stats.t.ppf(0.975, 101) * imagined.std(ddof=1) / 102**0.5
    assert made.interval.low == pytest.approx(imagined.mean() - half)
    assert made.interval.low < -1 < made.interval.high < 0
    assert "two of them added" in made.interval.method
    assert made.detectable is None


def test_clusters_flip_and_are_drawn_as_a_whole() -> None:
    """Copying every pair ten times adds no knowledge when the copies are said to be copies."""
    rng = np.random.default_rng(5)
    d = rng.normal(0.4, 1, 25)
    alone = compare_paired(np.zeros(25), d)
    copied = compare_paired(np.zeros(250), np.repeat(d, 10), clusters=[i // 10 for i in range(250)])
    assert (copied.n, copied.clusters) == (250, 25)
    assert copied.p_value == alone.p_value
    assert copied.interval is not None
    assert alone.interval is not None
    assert copied.interval.low == pytest.approx(alone.interval.low)
    assert copied.detectable == pytest.approx(alone.detectable)
    assert "25 clusters" in copied.sentence


def test_clusters_of_rates_are_not_tested_by_mcnemar() -> None:
    a, b = [0, 1] * 20, [1, 1] * 20
    made = compare_paired(a, b, binary=True, clusters=[i // 4 for i in range(40)])
    assert made.test is not None
    assert "permutation" in made.test


def test_holm_takes_a_claim_back() -> None:
    border = compare_paired(np.zeros(30), np.tile([1.0, 1.0, -1.0, 1.0, 0.5, -0.4], 5))
    assert border.verdict == "higher"
    assert 0.0084 < border.p_value < 0.05
    same = compare_paired(np.zeros(30), np.tile([1.0, -1.0], 15))
    empty = compare_paired([], [])
    corrected = adjusted([border, same, same, same, same, same, empty])
    assert corrected[0].p_adjusted == pytest.approx(6 * border.p_value)
    assert corrected[0].verdict == "undecided"
    assert "Holm" in corrected[0].sentence
    assert corrected[-1].p_adjusted is None


@given(PAIRS)
def test_swapping_the_runs_turns_the_difference_round(pairs: list[tuple[int, int]]) -> None:
    a, b = [p[0] for p in pairs], [p[1] for p in pairs]
    one, other = compare_paired(a, b), compare_paired(b, a)
    assert one.p_value == pytest.approx(other.p_value, abs=0.02)
    assert (one.interval is None) == (other.interval is None)
    if one.difference is not None:
        assert one.difference == pytest.approx(-other.difference)
    assert {one.verdict, other.verdict} in ({"higher", "lower"}, {"undecided"})


@given(PAIRS)
def test_no_claim_stands_without_an_interval_and_nothing_is_nan(
    pairs: list[tuple[int, int]],
) -> None:
    made = compare_paired([p[0] for p in pairs], [p[1] for p in pairs])
    assert not has_nan(msgspec.to_builtins(made))
    if any(word in made.sentence for word in ("higher", "lower", "better", "worse")):
        assert made.interval is not None
        assert made.interval.low > 0 or made.interval.high < 0


@pytest.mark.parametrize("n", [10, 30, 200])
def test_the_detectable_difference_is_that_of_the_paired_t_test(n: int) -> None:
    """The simple formula stays within 2% of the one by the noncentral distribution."""
    expected = power.TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8)
    assert minimal_detectable(1 / np.sqrt(n), n - 1) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("n", "runs"), [(12, 400), (40, 150)])
def test_equal_runs_are_told_apart_as_seldom_as_the_level_says(n: int, runs: int) -> None:
    rng = np.random.default_rng(12 + n)
    made = [compare_paired(*rng.normal(size=(2, n)), seed=i) for i in range(runs)]
    rejected = sum(each.p_value <= 0.05 for each in made)
    alarms = sum(each.verdict != "undecided" for each in made)
    assert 0.01 <= alarms / runs <= rejected / runs <= 0.1


def test_equal_rates_are_told_apart_as_seldom_as_the_level_says() -> None:
    rng = np.random.default_rng(14)
    alarms = 0
    for _ in range(800):
        a, b = rng.random((2, 150)) < 0.6
        made = compare_paired(a, b, binary=True)
        alarms += made.verdict != "undecided"
    assert 0.025 <= alarms / 800 <= 0.075


def test_clustered_runs_are_told_apart_as_seldom_as_the_level_says() -> None:
    """Four near copies of each difference, taken for independent, alarm far too often."""
    rng = np.random.default_rng(15)
    clusters = [i // 4 for i in range(64)]
    alarms = {"clustered": 0, "plain": 0}
    for i in range(400):
        shift = np.repeat(rng.normal(size=16), 4) + rng.normal(0, 0.3, 64)
        made = compare_paired(np.zeros(64), shift, clusters=clusters, seed=i)
        alarms["clustered"] += made.verdict != "undecided"
        if i % 8 == 0:
            plain = compare_paired(np.zeros(64), shift, seed=i)
            alarms["plain"] += plain.verdict != "undecided"
    assert 0.02 <= alarms["clustered"] / 400 <= 0.08
    assert alarms["plain"] / 50 > 0.2


def test_the_interval_of_rates_covers_at_its_level() -> None:
    """Correlated yes and no on 50 samples; the true difference is 0.15."""
    rng = np.random.default_rng(16)
    counts = rng.multinomial(50, [0.1, 0.25, 0.65], 4000)
    covered = 0
    for only_a, only_b, _ in counts.tolist():
        interval = rates_interval(only_a, only_b, 50, 0.95)
        covered += interval.low <= 0.15 <= interval.high
    assert 0.93 <= covered / 4000 <= 0.97


def test_clusters_that_even_out_are_not_called_equal() -> None:
    pairs = [1.0, -1.0] * 6
    made = compare_paired([0.0] * 12, pairs, clusters=[place // 2 for place in range(12)])
    assert made.interval is None
    assert made.differing == 12
    assert made.reason == "clusters' differences cancel out"


def test_what_could_be_found_of_yes_or_no_is_what_mcnemar_needs() -> None:
    """Six samples that differ one way are the fewest that its exact test tells at 5%."""
    made = compare_paired([0] * 20, [0] * 18 + [1] * 2, binary=True)
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(300):
        changed = (rng.random(20) < made.detectable).astype(float)
        found += compare_paired(np.zeros(20), changed, binary=True).p_value <= 0.05
    assert 0.72 <= found / 300 <= 0.9


def test_what_could_be_found_grows_with_the_number_of_tests() -> None:
    rng = np.random.default_rng(4)
    one = compare_paired(np.zeros(100), rng.normal(0, 1, 100))
    among = adjusted([one] * 6)[0]
    strict, plain = (stats.norm.ppf(1 - 0.05 / each / 2) + stats.norm.ppf(0.8) for each in (6, 1))
    assert among.detectable == pytest.approx(one.detectable * strict / plain)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_exact_one_of_statsmodels(only_a: int, only_b: int) -> None:
    expected = contingency_tables.mcnemar([[5, only_a], [only_b, 7]], exact=True).pvalue
    assert mcnemar(only_a, only_b) == ("McNemar, exact", pytest.approx(expected, abs=1e-9))


@given(SCORES)
def test_few_units_are_permuted_in_all_ways(scores: list[int]) -> None:
    flips = itertools.product([-1, 1], repeat=len(scores))
    sums = np.array([sum(f * s for f, s in zip(flip, scores, strict=True)) for flip in flips])
    expected = np.mean(np.abs(sums) >= abs(sum(scores)))
    assert permutation(np.array(scores, dtype=float))[1] == pytest.approx(expected)


def test_decimal_fractions_that_sum_to_the_same_are_as_extreme() -> None:
    """0.1 + 0.2 is a little more than 0.3, and must not be."""
    whole = np.array([1.0, 2.0, -3.0, 3.0, 3.0])
    assert permutation(whole / 10)[1] == permutation(whole)[1]


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
    found = permutation(values, seed=3)
    assert found[1] == pytest.approx(expected, abs=0.015)
    assert found == permutation(values, seed=3)


def test_very_many_units_are_taken_for_normal() -> None:
    values = np.random.default_rng(6).normal(0.05, 1, 2 * MOST_FLIPPED)
    few, many = permutation(values[:MOST_FLIPPED]), permutation(values)
    assert "flips" in few[0]
    assert many[0] == "paired permutation, normal approximation"
    expected = 2 * stats.norm.sf(
        abs(values[:MOST_FLIPPED].sum()) / np.sqrt(np.sum(values[:MOST_FLIPPED] ** 2))
    )
    assert few[1] == pytest.approx(expected, abs=0.015)


def test_a_sampled_p_value_is_never_zero() -> None:
    assert permutation(np.ones(200))[1] == pytest.approx(1 / 10_001)


@settings(max_examples=settings.default.max_examples // 4)  # it collects garbage each time
@given(P_VALUES)
def test_holm_agrees_with_statsmodels(p_values: list[float]) -> None:
    expected = multitest.multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected, abs=1e-12)
