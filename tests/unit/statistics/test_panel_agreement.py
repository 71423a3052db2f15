"""All raters: against the krippendorff package, statsmodels and published tables."""

import numpy as np
import pytest
from numpy.typing import NDArray

from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement import PANEL_STATISTICS, PanelAgreement, Ratings, agree_all
from jurybox.statistics.panel_coefficients import RatingPatterns, WeightedRatings
from lazily import Lazily

krippendorff = Lazily("krippendorff")
inter_rater = Lazily("statsmodels.stats.inter_rater")

FIVE = Scale.parse("1-5")
X = float("nan")


def ratings(table: NDArray[np.float64]) -> Ratings:
    """Return ratings from a row for each item and a column for each rater; NaN is missing."""
    return Ratings(
        criterion=None,
        raters=tuple(map(str, range(table.shape[1]))),
        table=table[~np.isnan(table).all(axis=1)],
    )


def panel(table: NDArray[np.float64], scale: Scale = FIVE) -> PanelAgreement:
    return agree_all(ratings(table), scale)


def holed(seed: int, *, continuous: bool = False) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    truth = rng.uniform(1, 5, (40, 1))
    table = np.clip(truth + rng.normal(0, 1, (40, 4)), 1, 5)
    table = table if continuous else np.round(table)
    table[rng.random(table.shape) < 0.3] = np.nan
    return table


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval", "ratio"])
def test_alpha_is_that_of_the_krippendorff_package(
    seed: int, level: str, *, continuous: bool
) -> None:
    table = holed(seed, continuous=continuous)
    scale = Scale.parse("1.0-5.0") if continuous else FIVE
    other = krippendorff.alpha(table.T, level_of_measurement=level)
    assert panel(table, scale)[f"alpha_{level}"].value == pytest.approx(other, abs=1e-9)


def test_alpha_is_that_of_krippendorffs_own_example() -> None:
    # K. Krippendorff (2011), "Computing Krippendorff's alpha-reliability", sections C and D.
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
        [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
    ]
    made = panel(np.array(observers).T)
    published = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}
    for level, value in published.items():
        assert made[f"alpha_{level}"].value == pytest.approx(value, abs=5e-4)
    assert made.n_items == 12
    assert made.n_paired == 11


@pytest.mark.parametrize("seed", range(4))
def test_fleiss_kappa_is_that_of_statsmodels(seed: int) -> None:
    table = np.random.default_rng(seed).integers(1, 6, (30, 4))
    other = inter_rater.fleiss_kappa(inter_rater.aggregate_raters(table)[0])
    assert panel(table.astype(float))["fleiss_kappa"].value == pytest.approx(other, abs=1e-9)


def test_icc_is_that_of_shrout_and_fleiss() -> None:
    # P. E. Shrout and J. L. Fleiss (1979), tables 2 and 4.
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    made = panel(np.array(table, dtype=float), Scale.parse("1-10"))
    published = {"1_1": 0.17, "2_1": 0.29, "3_1": 0.71}
    for form, value in published.items():
        assert made[f"icc_{form}"].value == pytest.approx(value, abs=0.006)


def test_gwets_example_of_high_prevalence() -> None:
    # K. L. Gwet (2008): 118 agreements on +, 5 and 2 disagreements, 0 agreements on -.
    table = np.repeat([[1.0, 1.0], [1.0, 2.0], [2.0, 1.0]], [118, 5, 2], axis=0)
    assert panel(table, Scale.parse("1-2"))["ac1"].value == pytest.approx(0.9408, abs=5e-5)


def test_ac2_is_one_minus_weighted_disagreement_by_hand() -> None:
    a, b = [1, 2, 3, 4, 5, 5], [1, 3, 3, 2, 5, 4]
    q = 5
    w = [[1 - ((i - j) / (q - 1)) ** 2 for j in range(q)] for i in range(q)]
    seen = sum(w[x - 1][y - 1] for x, y in zip(a, b, strict=True)) / 6
    share = [(a.count(k) + b.count(k)) / 12 for k in range(1, q + 1)]
    chance = sum(map(sum, w)) / (q * (q - 1)) * sum(p * (1 - p) for p in share)
    found = panel(np.array([a, b], dtype=float).T)["ac2"].value
    assert found == pytest.approx((seen - chance) / (1 - chance), abs=1e-12)


def test_missing_ratings_are_noted_and_metrics_have_intervals() -> None:
    made = agree_all(ratings(holed(2)), FIVE)
    assert any("different numbers of ratings" in note for note in made.notes)
    for name in (each.name for each in PANEL_STATISTICS if each.group != "icc"):
        metric = made[name]
        assert metric.value is not None
        assert metric.interval is not None
        assert metric.interval.low < metric.value < metric.interval.high


def test_a_scale_with_negative_points_has_no_ratio() -> None:
    made = panel(np.array([[-1.0, 1.0], [0.0, 0.0]]), Scale.parse("-1..1"))
    assert made["alpha_ratio"].value is None
    assert "below zero" in (made["alpha_ratio"].reason or "")


def test_a_continuous_scale_has_no_fleiss_kappa() -> None:
    made = panel(holed(0, continuous=True), Scale.parse("1.0-5.0"))
    assert made["fleiss_kappa"].value is None
    assert "continuous" in (made["fleiss_kappa"].reason or "")


@pytest.mark.parametrize("continuous", [False, True])
def test_many_draws_at_once_give_what_each_gives_alone(*, continuous: bool) -> None:
    table = holed(3, continuous=continuous)
    item, rater = np.nonzero(~np.isnan(table))
    _, item = np.unique(item, return_inverse=True)
    items = int(item.max()) + 1
    patterns = RatingPatterns(item, table[item, rater], items)
    share = np.bincount(patterns.pattern_of, minlength=len(patterns.ratings)) / items
    weights = np.random.default_rng(0).multinomial(items, share, size=1000).astype(float)
    for each in PANEL_STATISTICS:
        if each.group != "icc" and not (continuous and each.categorical):
            together = each.formula(WeightedRatings(patterns, weights, 5))
            alone = [each.formula(WeightedRatings(patterns, row[None, :], 5)) for row in weights]
            assert together == pytest.approx(np.concatenate(alone), abs=1e-12)


def test_items_with_one_rating_count_for_chance_as_gwet_has_it_and_the_notes_say_so() -> None:
    # The same ratings as in K. L. Gwet's package irrCAC (cac.raw4raters), with its metrics.
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
        [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
    ]
    made = panel(np.array(observers).T)
    assert made["fleiss_kappa"].value == pytest.approx(0.76117, abs=5e-6)
    assert made["ac1"].value == pytest.approx(0.77544, abs=5e-6)
    assert any("only for how common each score is" in note for note in made.notes)


def test_one_rating_or_two_are_different_numbers_of_ratings() -> None:
    made = panel(np.array([[1.0, 1.0], [2.0, 3.0], [4.0, X]]))
    assert any("Gwet's extension" in note for note in made.notes)
    made = panel(np.array([[1.0, 1.0], [2.0, 3.0], [4.0, 4.0]]))
    assert made.notes == ()


def test_an_icc_without_a_denominator_does_not_claim_that_scores_are_the_same() -> None:
    made = panel(np.array([[1.0, 2.0], [2.0, 1.0]]))["icc_2_1"]
    assert made.value is None
    assert "differ too little" in (made.reason or "")
    same = panel(np.full((3, 2), 2.0))["icc_2_1"]
    assert "every score is the same" in (same.reason or "")


def test_alpha_says_where_only_the_paired_items_are_equal() -> None:
    alpha = panel(np.array([[2.0, 2.0], [2.0, 2.0], [5.0, X]]))["alpha_ordinal"]
    assert alpha.value is None
    assert "items with two ratings or more" in (alpha.reason or "")
