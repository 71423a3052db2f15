"""The distributions: against scipy on wide grids, and against more digits where scipy has fewer."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import special

from jurybox.statistics import distributions as d
from jurybox.statistics.special import beta_parts, incomplete_beta

DEGREES = (0.1, 0.5, 1, 1.5, 2, 3, 5, 7.3, 11.5, 30, 100, 333.3, 1e3, 1e4, 1e5, 1e6)
SHAPES = (0.05, 0.5, 1, 2.5, 7, 20, 100, 1e3, 1e4, 1e6)
BELOW = (1e-100, 1e-30, 1e-12, 1e-6, 1e-3, 0.025, 0.1, 0.2, 0.3, 0.45, 0.4999999)
SHARES = (*BELOW, *(1 - each for each in BELOW if each >= 1e-6))

degrees = st.floats(0.1, 1e6)
shares = st.floats(1e-12, 1 - 1e-12)


def around(mean: float, deviation: float) -> Iterable[float]:
    return (mean + z * deviation for z in (-20, -5, -2, -1, -0.1, 0, 0.1, 1, 2, 5, 10, 25))


BINOMIAL = [
    (round(k), n, p)
    for n, p in product((1, 2, 10, 50, 1000, 10**5, 10**6), (1e-6, 0.05, 0.3, 0.5, 0.7, 0.999))
    for k in around(n * p, math.sqrt(n * p * (1 - p)))
    if 0 <= round(k) <= n
]


def t_tail(t: float, df: float) -> float:
    """Return the probability that Student's t is at least ``t``, from below zero as from above."""
    far = abs(t)
    odds = math.inf if not far else math.log(df) - 2 * math.log(far)
    parts = beta_parts(df / 2, 0.5, odds) if far else incomplete_beta(df / 2, 0.5, 1.0, 0.0)
    return parts.below / 2 if t >= 0 else 0.5 + parts.above / 2


def binomial_tail(k: int, n: int, p: float) -> float:
    if not 0 < k <= n:
        return float(k <= 0)
    return incomplete_beta(k, n - k + 1, p, 1 - p).below


# What is held against each, how far the two may differ, and the grid. What is above 1e-12 is
# scipy's error: the tests below hold the same against exact values and against their inverses.
# Values below 1e-290 are left out, since floats have fewer digits down there.
GRIDS: dict[str, tuple[Callable[..., float], float, Iterable[tuple[float, ...]]]] = {
    "normal_quantile": (special.ndtri, 1e-15, product((*SHARES, 1e-300))),
    "normal_cdf": (special.ndtr, 4e-13, product(range(-36, 9))),
    "normal_tail": (lambda x: special.ndtr(-x), 4e-13, product(range(-8, 37))),
    "t_quantile": (
        lambda p, df: special.stdtrit(df, p),
        1e-12,
        # Not near 0.5, where it loses digits, nor at 1e-30, where it gives up.
        [(p, df) for p, df in product(SHARES, DEGREES) if p >= 1e-12 and abs(p - 0.5) > 1e-6],
    ),
    "binomial_cdf": (
        lambda k, n, p: special.betaincc(k + 1, n - k, p) if k < n else 1.0,
        3e-12,
        BINOMIAL,
    ),
    "beta_quantile": (
        lambda p, a, b: special.betaincinv(a, b, p),
        5e-9,
        product(SHARES, SHAPES, SHAPES),
    ),
}


@pytest.mark.parametrize("name", GRIDS)
def test_each_is_that_of_scipy_on_a_wide_grid(name: str) -> None:
    other, tolerance, cases = GRIDS[name]
    apart = []
    for case in cases:
        mine, theirs = getattr(d, name)(*case), float(other(*case))
        if abs(theirs) > 1e-290 and not math.isclose(mine, theirs, rel_tol=tolerance):
            apart.append((case, mine, theirs))
    assert apart == []


# Computed with 40 digits.
EXACT = {
    ("binomial_cdf", 490_000, 10**6, 0.5): 2.7721816438496123017e-89,
    ("beta_quantile", 1e-300, 1_000, 20): 0.46250761797301613728,
    ("t_quantile", 1e-300, 5): -1.5683925590993378012e60,
    ("t_quantile", 1e-100, 0.5): -1.0284911563163399709e199,
}


@pytest.mark.parametrize(("asked", "value"), EXACT.items())
def test_digits_are_right_where_those_of_scipy_are_not(
    asked: tuple[str, float], value: float
) -> None:
    name, *arguments = asked
    assert getattr(d, name)(*arguments) == pytest.approx(value, rel=4e-13)


@pytest.mark.parametrize("k", [0, 1, 3_000, 4_500, 4_900, 4_999])
def test_fair_coins_are_counted_to_the_digit(k: int) -> None:
    n = 10_000
    below, count = 0, 1
    for i in range(k + 1):
        below, count = below + count, count * (n - i) // (i + 1)
    exact = Fraction(below, 2**n)
    if exact > Fraction(1, 10**300):
        assert abs(Fraction(d.binomial_cdf(k, n, 0.5)) / exact - 1) < 1e-13
        assert abs(Fraction(binomial_tail(n - k, n, 0.5)) / exact - 1) < 1e-13
    else:
        assert d.binomial_cdf(k, n, 0.5) == binomial_tail(n - k, n, 0.5) == 0
    assert binomial_tail(k + 1, n, 0.5) == pytest.approx(float(1 - exact), rel=1e-13)


@given(t=st.floats(1e-9, 1e150))
def test_one_and_two_degrees_have_closed_forms(t: float) -> None:
    assert t_tail(t, 1) == pytest.approx(math.atan2(1, t) / math.pi, rel=1e-13)
    root = math.sqrt(2 + t * t)
    assert t_tail(t, 2) == pytest.approx(1 / (root * (root + t)), rel=1e-12, abs=1e-300)


@given(p=shares, df=degrees)
def test_t_is_symmetric_and_its_quantile_goes_back(p: float, df: float) -> None:
    t = d.t_quantile(p, df)
    assert d.t_quantile(1 - p, df) == pytest.approx(-t, rel=1e-12 / min(p, 1 - p))
    assert t_tail(-t, df) == pytest.approx(p, rel=1e-12)
    assert t_tail(t, df) + t_tail(-t, df) == pytest.approx(1, abs=1e-15)


@given(p=st.floats(1e-290, 1 - 1e-12), a=st.floats(0.05, 1e6), b=st.floats(0.05, 1e6))
@example(p=0.9, a=1e3, b=1e6)
@example(p=1e-290, a=1e6, b=20)
def test_the_quantile_of_a_beta_goes_back(p: float, a: float, b: float) -> None:
    x = d.beta_quantile(p, a, b)
    if 1e-290 < x < 0.999:  # beyond, neighbouring floats are far apart
        # What the last digits of x are worth in probability is no error.
        digit = incomplete_beta(a, b, x * (1 + 2e-15), 1 - x * (1 + 2e-15)).below / p - 1
        assert incomplete_beta(a, b, x, 1 - x).below / p == pytest.approx(1, abs=1e-12 + digit)
    assert d.beta_quantile(min(1.0, p * 1.1), a, b) >= x


@given(n=st.integers(1, 10**6), share=st.floats(0, 1), p=st.floats(0, 1))
def test_what_is_below_and_above_is_the_whole(n: int, share: float, p: float) -> None:
    k = round(share * n)
    below, above = d.binomial_cdf(k - 1, n, p), binomial_tail(k, n, p)
    assert 0 <= below <= 1
    assert below + above == pytest.approx(1, abs=1e-15)
    assert d.binomial_cdf(k, n, p) >= below * (1 - 1e-12)
    assert binomial_tail(k + 1, n, p) <= above * (1 + 1e-12)
    assert binomial_tail(n - k + 1, n, 1 - p) == pytest.approx(below, abs=1e-9)


@given(x=st.floats(-37, 8))
def test_the_normal_is_symmetric_and_its_quantile_goes_back(x: float) -> None:
    assert d.normal_cdf(x) == d.normal_tail(-x)
    if x < 5:
        assert d.normal_quantile(d.normal_cdf(x)) == pytest.approx(x, rel=1e-10, abs=1e-10)


def test_the_ends_are_what_they_must_be() -> None:
    assert (d.normal_quantile(0), d.normal_quantile(1)) == (-math.inf, math.inf)
    assert (d.t_quantile(0, 3), d.t_quantile(0.5, 3), d.t_quantile(1, 3)) == (
        -math.inf,
        0,
        math.inf,
    )
    assert (d.beta_quantile(0, 2, 3), d.beta_quantile(1, 2, 3)) == (0, 1)
    assert (d.binomial_cdf(-1, 9, 0.4), d.binomial_cdf(9, 9, 0.4)) == (0, 1)
    assert (binomial_tail(0, 9, 0.4), binomial_tail(10, 9, 0.4)) == (1, 0)
    assert (d.binomial_cdf(3, 9, 0), d.binomial_cdf(3, 9, 1)) == (1, 0)
    assert (binomial_tail(3, 9, 0), binomial_tail(3, 9, 1)) == (0, 1)
