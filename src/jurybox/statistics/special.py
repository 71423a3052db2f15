"""The regularised incomplete beta function, and the place where it reaches a value.

Of the two parts that a place divides a distribution into, one is computed, and it is never a large
one: a small part that is what another leaves of 1 has lost as many digits as it is small. The
density before each series is made of deviances, because differences of ``lgamma`` lose digits
where parameters are large. There, near the middle, a value takes a few hundred terms.

References: C. Loader (2000), "Fast and accurate computation of binomial probabilities"; A. R.
DiDonato and A. H. Morris (1992), "Algorithm 708: significant digit computation of the incomplete
beta function ratios", ACM Transactions on Mathematical Software 18, 360-373; W. J. Lentz (1976),
"Generating Bessel functions in Mie scattering calculations using continued fractions", Applied
Optics 15, 668-671, as modified by I. J. Thompson and A. R. Barnett (1986), Journal of Computational
Physics 64, 490-509.
"""

import math
import sys
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, NamedTuple

_EPSILON: Final = sys.float_info.epsilon
_TINY: Final = 1e-290
_HALF_LOG_TAU: Final = math.log(math.tau) / 2
# From here on, eight terms of Stirling's series are exact to the last digit.
_STIRLING: Final = 12.0
_STIRLING_TERMS: Final = (
    *(1 / 12, -1 / 360, 1 / 1260, -1 / 1680),
    *(1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400),
)
# Farther out than exp(-600) a part is a power of the place, and the place would underflow.
_FAR: Final = 600.0
_LEAST: Final = 1e-261
# Up to this relative distance a deviance is summed, since its parts would cancel.
_NEAR: Final = 0.6
# Below this first factor the series is done sooner than the fraction.
_SHORT: Final = 0.3
# Halley's method takes a few steps; the limit only keeps a slip from becoming a hang.
_STEPS: Final = 200
_SHORT_STEP: Final = 0.5
_LAST_STEP: Final = 1e-6


class Parts(NamedTuple):
    """The two parts at a place.

    Of the ``direct`` one, ``ratio`` is what it is of the density there on the scale that is
    searched, which is given by its logarithm, so that both can be told where they'd be zero.
    """

    direct: float
    lower: bool  # whether the direct one is that below the place
    ratio: float
    log_density: float
    slope: float  # of the density's logarithm

    @property
    def below(self) -> float:
        """The probability of less than the place."""
        return self.direct if self.lower else 1 - self.direct

    @property
    def above(self) -> float:
        """The probability of more than the place."""
        return 1 - self.direct if self.lower else self.direct


def incomplete_beta(a: float, b: float, x: float, y: float) -> Parts:
    """Return ``I_x(a, b)`` and ``1 - I_x(a, b)``; the density is ``x^a y^b / B(a, b)``.

    ``y`` is ``1 - x``, and asked for because a caller can know it better than a difference would.
    Below the mean, with ``n = a + b``, the ratio is ``1/a`` of the sum of ``(n)_i / (a + 1)_i x^i``
    (all terms are positive), or the continued fraction of DiDonato and Morris.
    """
    if x <= 0 or y <= 0:
        return Parts(0.0, x <= 0, 0.0, -math.inf, 0.0)
    if x < _LEAST or y < _LEAST:
        return beta_parts(a, b, math.log(x) - math.log(y))
    if a * y < b * x:
        turned = incomplete_beta(b, a, y, x)
        return turned._replace(lower=False, slope=-turned.slope)
    n = a + b
    # How far x is below the mean, times n; of two ways, the one that cancels less.
    short = a - n * x if x < y else n * y - b
    log_density = (
        (math.log(a) + math.log(b) - math.log(n)) / 2
        - _HALF_LOG_TAU
        + (_stirling_rest(n) - _stirling_rest(a) - _stirling_rest(b))
        - _deviance(a, n * x, -short)
        - _deviance(b, n * y, short)
    )
    if n * x < _SHORT * (a + 1):
        ratio = _sum((n + i) / (a + 1 + i) * x for i in count()) / a
    else:
        ratio = _beta_fraction(a, b, x, short)
    return Parts(math.exp(log_density) * ratio, True, ratio, log_density, short)  # noqa: FBT003


def beta_parts(a: float, b: float, log_odds: float) -> Parts:
    """Return what `incomplete_beta` does at ``x = 1 / (1 + exp(-log_odds))``, however far out."""
    near = max(-_FAR, min(_FAR, log_odds))
    here = incomplete_beta(a, b, 1 / (1 + math.exp(-near)), 1 / (1 + math.exp(near)))
    return _beyond(here, (log_odds - near) * (a if near < 0 else -b))


def beta_log_odds(p: float, a: float, b: float, start: float | None = None) -> float:
    """Return ``log(x / (1 - x))`` of the ``x`` with ``I_x(a, b) = p``.

    The odds tell both x and 1 - x to the last digit, wherever they are. A good ``start`` spares
    steps.
    """
    start = math.log(a / b) if start is None else start
    return _reached(p, start, lambda place: beta_parts(a, b, place))


def _beyond(parts: Parts, log_factor: float) -> Parts:
    """Return the parts where the direct one and the density are so many times as large."""
    if not log_factor:
        return parts
    log_density = parts.log_density + log_factor
    return parts._replace(direct=math.exp(log_density) * parts.ratio, log_density=log_density)


def _reached(p: float, start: float, parts: Callable[[float], Parts]) -> float:
    """Return the place with ``p`` below it, by Halley's method on the smaller part's logarithm.

    On the scale that is searched (log odds of a beta variable) the density is log-concave, and so
    is either part. A concave curve lies below its tangents: after a step
    of Newton's every place is on the same side of the one that is sought, and each step leads
    nearer to it. Halley's correction is applied to steps that are short enough for it.
    """
    if not 0 < p < 1:
        return -math.inf if p <= 0 else math.inf
    lower = p <= 1 - p
    sign, aim = (1, math.log(p)) if lower else (-1, math.log1p(-p))
    place = start
    for _ in range(_STEPS):
        here = parts(place)
        if here.lower is lower:
            log_part, ratio = here.log_density + math.log(here.ratio), here.ratio
        else:
            log_part = math.log1p(-here.direct)
            ratio = math.exp(log_part - here.log_density)
        step = (aim - log_part) * ratio
        bend = step * (sign * here.slope - 1 / ratio) / 2
        short = abs(bend) < _SHORT_STEP
        place += sign * (step / (1 + bend) if short else step)
        # The next step would be of this one's cube.
        if short and abs(step) <= _LAST_STEP * min(1, ratio):
            break
    return place


def _stirling_rest(a: float) -> float:
    """Return what Stirling's formula lacks: ``log Gamma(a + 1) - log(sqrt(tau a) (a / e)^a)``."""
    if a < _STIRLING:
        return math.lgamma(a + 1) - (a + 0.5) * math.log(a) + a - _HALF_LOG_TAU
    square, rest = 1 / (a * a), 0.0
    for term in reversed(_STIRLING_TERMS):
        rest = rest * square + term
    return rest / a


def _deviance(a: float, m: float, more: float) -> float:
    """Return ``a log(a / m) + m - a``, where ``more`` is ``m - a``; never below zero."""
    z = more / a
    if abs(z) > _NEAR:
        return more - a * math.log(m / a)
    # z - log(1 + z) with log(1 + z) = 2 artanh(r), whose first term takes z away by hand.
    r = z / (2 + z)
    square, total, power = r * r, 0.0, 1.0
    for odd in count(3, 2):
        total += power / odd
        power *= square
        if power < _EPSILON / 4:
            break
    return a * r * (z - 2 * square * total)


def _sum(factors: Iterable[float]) -> float:
    """Return 1 and the products of the first one, two, three ... factors, all positive, summed."""
    total = term = 1.0
    for factor in factors:
        term *= factor
        total += term
        # The rest is at most a geometric series of this factor or a smaller one.
        if factor < 1 and term <= total * (1 - factor) * _EPSILON / 4:
            break
    return total


def _beta_fraction(a: float, b: float, x: float, short: float) -> float:
    """Return ``I_x(a, b) B(a, b) / (x^a y^b)``, where ``short`` is ``a - (a + b) x``."""
    n, squared, value = a + b, x * x, a / (a + 1) * (short + 1)
    above, below = value, 0.0
    for i in count(1):
        odd = a + 2 * i - 1
        rest = i * (b - i)
        # Quotients of the large ones come first: their products could overflow.
        p = (a + i - 1) / odd * ((n + i - 1) / odd) * rest * squared
        q = i + rest * x / odd + (a + i) / (odd + 2) * (short + 1 + i * (2 - x))
        below = 1 / ((q + p * below) or _TINY)
        above = (q + p / above) or _TINY
        factor = above * below
        value *= factor
        if abs(factor - 1) < _EPSILON:
            break
    return 1 / value
