"""How sure fitted strengths are."""

from collections.abc import Hashable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.distributions import normal_quantile, t_quantile
from jurybox.statistics.ranking.davidson import Fit, probabilities
from jurybox.statistics.ranking.verdict import Verdict
from jurybox.statistics.result import Interval

Values = NDArray[np.float64]

_BLOCK = 10_000
# Of fewer items, how they differ is hardly known.
_FEW = 10
# Items that all have the same verdicts show no difference at all, which is no certainty.
_NIL = 1e-6


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The covariance of strengths (and the logarithm of the tie parameter), and a quantile."""

    covariance: Values
    quantile: float
    level: float
    method: str

    def interval(self, value: float, variance: float) -> Interval:
        """Return the interval of a figure with this variance."""
        half = self.quantile * float(np.sqrt(max(0.0, variance)))
        return Interval(low=value - half, high=value + half, level=self.level, method=self.method)


def by_information(fitted: Fit, free: NDArray[np.intp], level: float) -> Spread:
    """Return the spread from the curvature of the likelihood: the inverse of the information.

    It holds where all verdicts are independent.
    """
    return Spread(
        covariance=_inverse(fitted, free),
        quantile=normal_quantile((1 + level) / 2),
        level=level,
        method="Wald, observed information",
    )


def by_items(
    fitted: Fit,
    free: NDArray[np.intp],
    verdicts: Sequence[Verdict],
    numbers: dict[str, int],
    level: float,
) -> Spread | None:
    """Return the spread from how items differ, whose several verdicts are not independent.

    With the slopes ``u_g`` of the log-likelihood of each of G items and the inverse information
    ``H``, it is ``G / (G - 1) H (sum u_g u_g') H``, with Student's t on G - 1 degrees. ``None``
    where there are hardly more items than strengths, so that it would be far too small. Of fewer
    than ten items it is nowhere below ``H``, which is the spread if all verdicts are independent;
    of more items it is that only where it would be nil.

    Reference: K.-Y. Liang and S. L. Zeger (1986), "Longitudinal data analysis using generalized
    linear models", Biometrika 73, 13-22.
    """
    items: dict[Hashable, int] = {}
    keys = [("row", at) if row.item is None else row.item for at, row in enumerate(verdicts)]
    of = np.array([items.setdefault(key, len(items)) for key in keys], dtype=np.intp)
    count, size = len(items), len(fitted.information)
    if count < 2 * (len(free) + 1):
        return None
    i = np.array([numbers[row.a] for row in verdicts], dtype=np.intp)
    j = np.array([numbers[row.b] for row in verdicts], dtype=np.intp)
    first, second, tied = probabilities(fitted.strengths[i] - fitted.strengths[j], fitted.log_tie)
    lean = np.array([{"a": 0.5, "b": -0.5, "tie": 0.0}[row.winner] for row in verdicts])
    lean -= (first - second) / 2
    tie = np.array([row.winner == "tie" for row in verdicts]) - tied
    middle = np.zeros((size, size))
    order = np.argsort(of, kind="stable")
    edges = np.searchsorted(of[order], np.arange(0, count + _BLOCK, _BLOCK))
    for block in range(len(edges) - 1):
        rows = order[edges[block] : edges[block + 1]]
        at = of[rows] - block * _BLOCK
        slopes = np.zeros((min(_BLOCK, count - block * _BLOCK), size))
        np.add.at(slopes, (at, i[rows]), lean[rows])
        np.add.at(slopes, (at, j[rows]), -lean[rows])
        if fitted.log_tie is not None:
            np.add.at(slopes[:, -1], at, tie[rows])
        middle += slopes.T @ slopes
    inverse = _inverse(fitted, free)
    covariance = count / (count - 1) * inverse @ middle @ inverse
    return Spread(
        covariance=_raised(covariance, inverse, 1.0 if count < _FEW else _NIL),
        quantile=t_quantile((1 + level) / 2, count - 1),
        level=level,
        method=f"Wald, clustered by {count:,} items",
    )


def _raised(covariance: Values, floor: Values, below: float) -> Values:
    """Return the covariance, with that of ``floor`` in directions where it is a smaller share.

    With ``floor = L L'``, these are the eigenvectors of ``L^-1 covariance L^-1'`` whose eigenvalues
    are less than ``below``; so no combination of strengths has less than the larger of the two.
    """
    moving = np.flatnonzero(np.diag(floor) > 0)
    within = np.ix_(moving, moving)
    half = np.linalg.cholesky(floor[within])
    share = np.linalg.solve(half, np.linalg.solve(half, covariance[within]).T)
    values, vectors = np.linalg.eigh((share + share.T) / 2)
    if float(values.min(initial=below)) >= below:
        return covariance
    wide = half @ vectors
    raised = np.zeros_like(covariance)
    raised[within] = (wide * np.where(values < below, 1.0, values)) @ wide.T
    return raised


def _inverse(fitted: Fit, free: NDArray[np.intp]) -> Values:
    """Return the inverse of the information; strengths that are held have no spread."""
    size = len(fitted.information)
    moving = free if fitted.log_tie is None else np.append(free, size - 1)
    inverse = np.zeros((size, size))
    inverse[np.ix_(moving, moving)] = np.linalg.inv(fitted.information[np.ix_(moving, moving)])
    return inverse
