"""The distributions, against scipy on wide grids."""

import math
from collections.abc import Callable, Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.statistics import intervals as d
from lazily import Lazily

special = Lazily("scipy.special")

DEGREES = (0.5, 1, 1.5, 2, 3, 5, 7.3, 11.5, 30, 100, 333.3, 1e3, 1e4, 1e5, 1e6)
SHAPES = (0.5, 1, 2.5, 7, 20, 100, 1e3, 1e4)
BELOW = (1e-12, 1e-6, 1e-3, 0.025, 0.1, 0.2, 0.3, 0.45, 0.499)
SHARES = (*BELOW, *(1 - each for each in BELOW if each >= 1e-6))


def around(mean: float, deviation: float) -> Iterable[float]:
    return (mean + z * deviation for z in (-20, -5, -2, -1, -0.1, 0, 0.1, 1, 2, 5, 10, 25))


BINOMIAL = [
    (round(k), n, p)
    for n, p in product((1, 2, 10, 50, 1000, 10**5), (1e-6, 0.05, 0.3, 0.5, 0.7, 0.999))
    for k in around(n * p, math.sqrt(n * p * (1 - p)))
    if 0 <= round(k) <= n
]

# What each is compared with, and the grid.
GRIDS: dict[str, tuple[Callable[..., float], Iterable[tuple[float, ...]]]] = {
    "normal_quantile": (lambda p: special.ndtri(p), product(SHARES)),  # noqa: PLW0108 - later
    "normal_cdf": (lambda x: special.ndtr(x), product(range(-36, 9))),  # noqa: PLW0108 - later
    "normal_tail": (lambda x: special.ndtr(-x), product(range(-8, 37))),
    "t_quantile": (lambda p, df: special.stdtrit(df, p), product(SHARES, DEGREES)),
    "binomial_cdf": (
        lambda k, n, p: special.betaincc(k + 1, n - k, p) if k < n else 1.0,
        BINOMIAL,
    ),
    "beta_quantile": (
        lambda p, a, b: special.betaincinv(a, b, p),
        # Next to shapes that are the same, both halves can seem to be the longer one.
        (*product(SHARES, SHAPES, SHAPES), (0.025, 138.2992792752149, 138.29927927521493)),
    ),
}


@pytest.mark.parametrize("name", GRIDS)
def test_each_is_that_of_scipy_on_a_wide_grid(name: str) -> None:
    other, cases = GRIDS[name]
    apart = []
    for case in cases:
        mine, theirs = getattr(d, name)(*case), float(other(*case))
        if not math.isclose(mine, theirs, rel_tol=2e-9, abs_tol=1e-200):
            apart.append((case, mine, theirs))
    assert apart == []


def test_a_million_coins_are_counted() -> None:
    # Computed with 40 digits.
    assert d.binomial_cdf(490_000, 10**6, 0.5) == pytest.approx(2.7721816438496123e-89, rel=1e-8)


@given(p=st.floats(1e-9, 1 - 1e-9), df=st.floats(0.5, 1e6))
def test_t_is_symmetric(p: float, df: float) -> None:
    t = d.t_quantile(p, df)
    assert d.t_quantile(1 - p, df) == pytest.approx(-t, rel=1e-6, abs=1e-9)


def test_the_ends_are_what_they_must_be() -> None:
    assert (d.normal_quantile(0), d.normal_quantile(1)) == (-math.inf, math.inf)
    assert (d.t_quantile(0, 3), d.t_quantile(1, 3)) == (-math.inf, math.inf)
    assert d.t_quantile(0.5, 3) == pytest.approx(0, abs=1e-12)
    assert (d.beta_quantile(0, 2, 3), d.beta_quantile(1, 2, 3)) == (0, 1)
    assert (d.binomial_cdf(-1, 9, 0.4), d.binomial_cdf(9, 9, 0.4)) == (0, 1)
    assert (d.binomial_cdf(3, 9, 0), d.binomial_cdf(3, 9, 1)) == (1, 0)
