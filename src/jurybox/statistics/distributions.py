"""The distributions that intervals and tests need, each a typed function of plain numbers.

They are thin covers of ``scipy.special``, which is slow to import (half a second) and so is
imported only when a figure is asked for; ``scipy.stats`` would take three times as long.
"""

import importlib
from typing import Any


def _special() -> Any:  # noqa: ANN401 - scipy carries no types
    return importlib.import_module("scipy.special")


def normal_quantile(p: float) -> float:
    """Return the value that a standard normal variable is below with probability ``p``."""
    return float(_special().ndtri(p))


def normal_cdf(x: float) -> float:
    """Return the probability that a standard normal variable is at most ``x``."""
    return float(_special().ndtr(x))


def normal_tail(x: float) -> float:
    """Return the probability that a standard normal variable is at least ``x``."""
    # Not 1 - cdf: that is zero from 8.3 on.
    return float(_special().ndtr(-x))


def t_quantile(p: float, df: float) -> float:
    """Return the value that Student's t with ``df`` degrees is below with probability ``p``."""
    return float(_special().stdtrit(df, p))


def t_tail(t: float, df: float) -> float:
    """Return the probability that Student's t with ``df`` degrees is at least ``t``."""
    return float(_special().stdtr(df, -t))


def binomial_tail(k: int, n: int, p: float) -> float:
    """Return the probability of at least ``k`` successes in ``n`` trials."""
    return 1.0 if k <= 0 else float(_special().bdtrc(k - 1, n, p))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """Return the probability of at most ``k`` successes in ``n`` trials."""
    return 0.0 if k < 0 else float(_special().bdtr(k, n, p))


def chi2_tail(x: float, df: float) -> float:
    """Return the probability that chi-squared with ``df`` degrees is at least ``x``."""
    return float(_special().chdtrc(df, x))


def chi2_quantile(p: float, df: float) -> float:
    """Return the value that chi-squared with ``df`` degrees is below with probability ``p``."""
    return float(_special().chdtri(df, 1 - p))


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the value that a beta variable is below with probability ``p``."""
    return float(_special().betaincinv(a, b, p))


def f_tail(x: float, df_above: float, df_below: float) -> float:
    """Return the probability that F with these degrees (numerator first) is at least ``x``."""
    return float(_special().fdtrc(df_above, df_below, x))
