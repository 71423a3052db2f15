"""Two raters: against scikit-learn and scipy, published tables, and where nothing is defined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement import agree
from jurybox.statistics.pair_coefficients import MOST_CELLS
from lazily import Lazily

stats = Lazily("scipy.stats")
metrics = Lazily("sklearn.metrics")

FIVE = Scale.parse("1-5")
scores = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=40)


def value(name: str, a: list[float], b: list[float], scale: Scale = FIVE) -> float | None:
    return agree(a, b, scale)[name].value


def expanded(table: list[list[int]], start: int = 1) -> tuple[list[float], list[float]]:
    a: list[float] = []
    b: list[float] = []
    for i, row in enumerate(table):
        for j, count in enumerate(row):
            a += [i + start] * count
            b += [j + start] * count
    return a, b


@pytest.mark.parametrize("seed", range(8))
def test_kappas_are_those_of_scikit_learn_over_the_whole_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.choice([1, 2, 5], 60)
    b = rng.choice([1, 2, 4, 5], 60)
    made = agree(a.tolist(), b.tolist(), FIVE)
    for name, weights in (("kappa", None), ("kappa_linear", "linear")):
        other = metrics.cohen_kappa_score(a, b, labels=[1, 2, 3, 4, 5], weights=weights)
        assert made[name].value == pytest.approx(other, abs=1e-9)
    other = metrics.cohen_kappa_score(a, b, labels=[1, 2, 3, 4, 5], weights="quadratic")
    assert made["kappa_quadratic"].value == pytest.approx(other, abs=1e-9)
    assert made["exact"].value == pytest.approx(np.mean(a == b), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["whole", "continuous"])
def test_correlations_are_those_of_scipy(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 6, 70).astype(float) if kind == "whole" else rng.uniform(1, 5, 170)
    b = np.clip(a + rng.normal(size=len(a)), 1, 5)
    b = np.round(b) if kind == "whole" else b
    scale = FIVE if kind == "whole" else Scale.parse("1.0-5.0")
    made = agree(a.tolist(), b.tolist(), scale)
    assert made["pearson"].value == pytest.approx(stats.pearsonr(a, b)[0], abs=1e-9)
    assert made["spearman"].value == pytest.approx(stats.spearmanr(a, b)[0], abs=1e-9)
    assert made["kendall"].value == pytest.approx(stats.kendalltau(a, b)[0], abs=1e-9)


def test_a_weighted_kappa_needs_the_whole_scale_not_just_the_scores_seen() -> None:
    # Nobody gave a 2 or a 3; as places among the scores seen, 1 and 4 would be neighbors.
    a = [1, 1, 4, 4, 5, 5, 5, 1]
    b = [1, 4, 4, 5, 5, 5, 4, 1]
    seen = metrics.cohen_kappa_score(a, b, weights="quadratic")
    declared = metrics.cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5])
    assert value("kappa_quadratic", a, b) == pytest.approx(declared, abs=1e-9)
    assert abs(declared - seen) > 0.03


def test_the_example_of_fleiss_cohen_and_everitt() -> None:
    # J. L. Fleiss, J. Cohen and B. S. Everitt (1969), table 1: two raters, 200 items.
    a, b = expanded([[106, 10, 4], [22, 28, 10], [2, 12, 6]])
    assert value("kappa", a, b, Scale.parse("1-3")) == pytest.approx(0.429, abs=5e-4)


def test_gwets_example_of_high_prevalence() -> None:
    # K. L. Gwet (2008): 118 agreements on +, 5 and 2 disagreements, 0 agreements on -.
    a, b = expanded([[118, 5], [2, 0]])
    made = agree(a, b, Scale.parse("1-2"))
    assert made["exact"].value == pytest.approx(0.944)
    assert made["kappa"].value == pytest.approx(-0.0234, abs=5e-5)


@pytest.mark.parametrize("n", [12, 200])
def test_the_order_of_the_items_changes_nothing(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(1, 6, (2, n)).astype(float)
    mixed = rng.permutation(n)
    one = agree(a.tolist(), b.tolist(), FIVE)
    assert agree(a[mixed].tolist(), b[mixed].tolist(), FIVE) == one


@given(scores, st.permutations([1, 2, 3, 4, 5]))
def test_labels_can_be_exchanged_where_order_does_not_count(
    rows: list[tuple[int, int]], named: list[int]
) -> None:
    a, b = ([float(row[i]) for row in rows] for i in (0, 1))
    x, y = ([float(named[row[i] - 1]) for row in rows] for i in (0, 1))
    for name in ("exact", "kappa"):
        assert value(name, a, b) == pytest.approx(value(name, x, y), abs=1e-9)


def test_every_score_the_same_leaves_kappa_undefined_with_a_reason_and_a_note() -> None:
    made = agree([3.0] * 9, [3.0] * 9, FIVE)
    assert made["exact"].value == 1
    assert made["exact"].interval is not None
    assert made["exact"].interval.low < 0.75
    assert made["kappa"].value is None
    assert (
        made["kappa"].reason
        == "every score is the same, so agreement can't be distinguished from chance"
    )
    assert "both raters always gave the same score" in (made["pearson"].reason or "")
    assert made.note is not None
    assert "every score is 3" in made.note


def test_a_continuous_scale_has_weighted_kappas_and_no_plain_one() -> None:
    a, b = [0.1, 0.5, 0.9, 0.3], [0.2, 0.5, 0.7, 0.3]
    made = agree(a, b, Scale.parse("0.0-1.0"))
    x, y = np.array(a), np.array(b)
    lin = 2 * np.cov(x, y, ddof=0)[0, 1] / (x.var() + y.var() + (x.mean() - y.mean()) ** 2)
    assert made["kappa_quadratic"].value == pytest.approx(lin, abs=1e-12)
    assert made["kappa"].value is None
    assert "continuous" in (made["kappa"].reason or "")


def test_fewer_than_ten_items_or_clusters_get_no_interval() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(1, 6, (2, 40)).tolist()
    few = agree(a[:9], b[:9], FIVE)
    assert few["exact"].interval is not None
    for name in ("kappa", "kappa_quadratic", "spearman"):
        assert few[name].value is not None
        assert few[name].interval is None
        assert (few[name].reason or "").startswith("9 items are too few")
    clusters = [i % 9 for i in range(40)]
    grouped = agree(a, b, FIVE, clusters=clusters)
    assert grouped["exact"].interval is None
    assert (grouped["kappa"].reason or "").startswith("9 clusters are too few")
    enough = agree(a[:10], b[:10], FIVE)
    assert enough["kappa_quadratic"].interval is not None


def test_the_interval_of_a_correlation_is_that_of_leaving_each_item_out() -> None:
    """By hand: the jackknife's error, on Fisher's scale."""
    rng = np.random.default_rng(8)
    a = rng.normal(size=60)
    b = a + rng.normal(size=60)
    made = agree(a.tolist(), b.tolist(), Scale.parse("-9.0..9.0"))["pearson"]
    r = np.corrcoef(a, b)[0, 1]
    without = np.array([np.corrcoef(np.delete(a, i), np.delete(b, i))[0, 1] for i in range(60)])
    apart = without - without.mean()
    error = np.sqrt(59 / 60 * np.sum(apart**2))
    kurtosis = np.mean(apart**4) / np.mean(apart**2) ** 2
    half = stats.t.ppf(0.975, min(59, 2 * 60 / (kurtosis - 1))) * error / (1 - r**2)
    assert made.interval is not None
    assert made.interval.low == pytest.approx(np.tanh(np.arctanh(r) - half), abs=1e-9)
    assert made.interval.high == pytest.approx(np.tanh(np.arctanh(r) + half), abs=1e-9)
    assert made.interval.method == "jackknife, 60 items"


def test_thousands_of_different_scores_are_left_out_in_groups() -> None:
    rng = np.random.default_rng(1)
    a = rng.uniform(0, 1, MOST_CELLS + 1)
    b = (a + rng.uniform(0, 1, MOST_CELLS + 1)) / 2
    made = agree(a.tolist(), b.tolist(), Scale.parse("0.0-1.0"))
    assert made["kendall"].value is None
    assert "see Spearman" in (made["kendall"].reason or "")
    around = made["pearson"].interval
    assert around is not None
    assert around.method == "jackknife, 200 groups of 4,001 items"
    # Fisher's interval of a normal pair is as wide, but for the uniform distribution.
    half = 1.96 / np.sqrt(MOST_CELLS - 2)
    r = np.corrcoef(a, b)[0, 1]
    width = np.tanh(np.arctanh(r) + half) - np.tanh(np.arctanh(r) - half)
    assert around.high - around.low == pytest.approx(width, rel=0.3)
