"""The bootstrap: against scipy to the digit, and what it does where nothing can be said."""

import numpy as np
import pytest
from scipy import stats

from jurybox.statistics.bootstrap import Resampling, acceleration, bca
from jurybox.statistics.estimates import Interval


def _skewed(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).exponential(size=n)


def _of_mean(x: np.ndarray, resampling: Resampling) -> Interval | None:
    """Return the interval of a mean, from draws of single rows."""
    rng = np.random.default_rng(resampling.seed)
    n = len(x)
    drawn = np.array([x[rng.integers(0, n, n)].mean() for _ in range(resampling.resamples)])
    return bca(float(x.mean()), drawn, (x.sum() - x) / (n - 1), resampling=resampling)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_interval_is_the_one_that_scipy_makes_of_the_same_draws(seed: int) -> None:
    x = _skewed(40)
    mine = _of_mean(x, Resampling(resamples=999, seed=seed))
    other = stats.bootstrap((x,), np.mean, n_resamples=999, rng=np.random.default_rng(seed))
    assert mine is not None
    assert (mine.low, mine.high) == pytest.approx(tuple(other.confidence_interval), abs=1e-9)
    assert mine.method == "BCa bootstrap, 999 resamples"


def test_a_figure_that_never_varies_has_no_interval_instead_of_a_certain_one() -> None:
    assert bca(1.0, np.ones(100), np.ones(20)) is None


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


def test_all_draws_on_one_side_still_give_finite_ends() -> None:
    made = bca(2.0, np.linspace(0, 1, 500), np.linspace(0, 1, 20))
    assert made is not None
    assert 0 <= made.low <= made.high <= 1


@pytest.mark.parametrize("wrong", [{"resamples": 0}, {"level": 1.0}, {"level": 0.0}])
def test_what_gives_no_interval_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"resamples|level"):
        Resampling(**wrong)  # type: ignore[arg-type]


def test_the_interval_of_a_skewed_mean_covers_about_as_often_as_it_says() -> None:
    hits = 0
    trials = 300
    for trial in range(trials):
        made = _of_mean(_skewed(80, seed=trial), Resampling(resamples=300, seed=trial))
        hits += made is not None and made.low <= 1.0 <= made.high
    assert 0.92 <= hits / trials <= 0.98
