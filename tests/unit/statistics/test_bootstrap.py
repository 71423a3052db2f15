"""The bootstrap: against scipy to the digit, and what it does where nothing can be said."""

import numpy as np
import pytest
from scipy import stats

from jurybox.statistics.bootstrap import Resampling, acceleration, bca, bootstrap


def _skewed(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=n)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_interval_is_the_one_that_scipy_makes_of_the_same_draws(seed: int) -> None:
    x = _skewed(40)
    mine = bootstrap(
        lambda rows: float(x[rows].mean()), len(x), resampling=Resampling(resamples=999, seed=seed)
    )
    other = stats.bootstrap((x,), np.mean, n_resamples=999, rng=np.random.default_rng(seed))
    assert mine is not None
    assert (mine.low, mine.high) == pytest.approx(tuple(other.confidence_interval), abs=1e-9)
    assert mine.method == "BCa bootstrap, 999 resamples"


def test_a_seed_gives_the_same_interval_again_and_another_seed_another_one() -> None:
    x = _skewed(30)

    def interval(seed: int) -> object:
        return bootstrap(
            lambda rows: float(x[rows].mean()), len(x), resampling=Resampling(seed=seed)
        )

    assert interval(3) == interval(3)
    assert interval(3) != interval(4)


def test_whole_clusters_are_drawn_so_rows_that_repeat_each_other_add_nothing() -> None:
    x = _skewed(25)
    repeated = np.repeat(x, 8)
    single = bootstrap(lambda rows: float(x[rows].mean()), len(x))
    clustered = bootstrap(
        lambda rows: float(repeated[rows].mean()),
        len(repeated),
        clusters=[str(i) for i in np.repeat(np.arange(25), 8)],
    )
    naive = bootstrap(lambda rows: float(repeated[rows].mean()), len(repeated))
    assert single is not None
    assert clustered is not None
    assert naive is not None
    assert (clustered.low, clustered.high) == pytest.approx((single.low, single.high), abs=1e-9)
    assert naive.high - naive.low < 0.5 * (clustered.high - clustered.low)
    assert clustered.method == "BCa bootstrap, 2,000 resamples of whole clusters"


def test_a_figure_that_never_varies_has_no_interval_instead_of_a_certain_one() -> None:
    assert bootstrap(lambda rows: float(np.ones(20)[rows].mean()), 20) is None


@pytest.mark.parametrize("n", [0, 1])
def test_less_than_two_rows_have_no_interval(n: int) -> None:
    assert bootstrap(lambda rows: float(rows.sum()), n) is None


def test_one_cluster_has_no_interval() -> None:
    assert bootstrap(lambda rows: float(rows.sum()), 5, clusters=["a"] * 5) is None


def test_an_undefined_figure_has_no_interval() -> None:
    assert bootstrap(lambda _: None, 5) is None


def test_a_few_undefined_draws_are_left_out_and_counted() -> None:
    drawn = np.concatenate([np.linspace(0, 1, 96), np.full(4, np.nan)])
    made = bca(0.5, drawn, np.linspace(0.4, 0.6, 20))
    assert made is not None
    assert made.method.endswith("100 resamples, 4 of them undefined")


def test_too_many_undefined_draws_leave_no_interval() -> None:
    drawn = np.concatenate([np.linspace(0, 1, 94), np.full(6, np.nan)])
    assert bca(0.5, drawn, np.linspace(0.4, 0.6, 20)) is None


def test_weights_stand_for_equal_rows() -> None:
    figures = np.array([0.1, 0.2, 0.7])
    once = acceleration(np.repeat(figures, [3, 5, 1]))
    assert acceleration(figures, np.array([3.0, 5.0, 1.0])) == pytest.approx(once, abs=1e-15)


def test_groups_of_rows_give_nearly_the_interval_of_single_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = _skewed(600)
    exact = bootstrap(lambda rows: float(x[rows].mean()), len(x))
    monkeypatch.setattr("jurybox.statistics.bootstrap._JACKKNIFED", 100)
    grouped = bootstrap(lambda rows: float(x[rows].mean()), len(x))
    assert exact is not None
    assert grouped is not None
    width = exact.high - exact.low
    assert abs(exact.low - grouped.low) < 0.02 * width
    assert abs(exact.high - grouped.high) < 0.02 * width


def test_all_draws_on_one_side_still_give_finite_ends() -> None:
    made = bca(2.0, np.linspace(0, 1, 500), np.linspace(0, 1, 20))
    assert made is not None
    assert 0 <= made.low <= made.high <= 1


@pytest.mark.parametrize("wrong", [{"resamples": 0}, {"level": 1.0}, {"level": 0.0}])
def test_what_gives_no_interval_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"resamples|level"):
        Resampling(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("mean", [1.0])
def test_the_interval_of_a_skewed_mean_covers_about_as_often_as_it_says(mean: float) -> None:
    hits = 0
    trials = 300
    for trial in range(trials):
        x = _skewed(80, seed=trial)
        made = bootstrap(
            lambda rows, x=x: float(x[rows].mean()),
            len(x),
            resampling=Resampling(resamples=300, seed=trial),
        )
        hits += made is not None and made.low <= mean <= made.high
    assert 0.92 <= hits / trials <= 0.98
