"""The Bradley-Terry model with ties, after Davidson, and how sure its strengths are."""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.distributions import normal_quantile, t_quantile
from jurybox.statistics.estimate import Interval
from jurybox.statistics.ranking.pair_counts import PairVerdict

Values = NDArray[np.float64]

_MOST_STEPS: Final = 200
_CONVERGED: Final = 1e-12


class Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs of models that met: their numbers, and how often which of them won."""

    i: NDArray[np.intp]
    j: NDArray[np.intp]
    i_won: Values
    j_won: Values
    tied: Values


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The strengths that make the verdicts most likely.

    Attributes:
        strengths: on a log scale, 0 for each part's first model.
        log_tie: the logarithm of the tie parameter; ``None`` where nothing tied.
        information: minus the second derivatives of the log-likelihood, by all strengths and, if
            anything tied, the logarithm of the tie parameter.

    """

    strengths: Values
    log_tie: float | None
    information: Values


def fit(outcomes: Outcomes, free: NDArray[np.intp], count: int) -> Fit:
    """Maximise the likelihood by Newton's method.

    With ``w = exp(strength)`` and the tie parameter ``v``, ``P(i wins) = w_i / D``,
    ``P(tie) = v sqrt(w_i w_j) / D`` and ``D = w_i + w_j + v sqrt(w_i w_j)``. In the strengths and
    ``log v`` the log-likelihood is concave, so every step uphill leads to its one maximum. Without
    any tie ``v`` is 0, and this is the model of Bradley and Terry.

    Reference: R. R. Davidson (1970), "On extending the Bradley-Terry model to accommodate ties in
    paired comparison experiments", Journal of the American Statistical Association 65, 317-328;
    R. A. Bradley and M. E. Terry (1952), "Rank analysis of incomplete block designs", Biometrika
    39, 324-345.

    Args:
        outcomes: the pairs.
        free: the models whose strength is not held at 0; one of each linked part must be held.
        count: how many models there are.

    """
    ties = bool(outcomes.tied.any())
    moving = np.append(free, count) if ties else free
    at = np.zeros(count + 1)
    value, slope, bend = _likelihood(outcomes, at, ties=ties)
    for _ in range(_MOST_STEPS):
        step = np.zeros(count + 1)
        step[moving] = np.linalg.solve(bend[np.ix_(moving, moving)], slope[moving])
        gain = float(slope @ step)
        if gain <= _CONVERGED:
            break
        size = 1.0
        while True:
            tried = at + size * step
            after = _likelihood(outcomes, tried, ties=ties)
            if after[0] >= value + 1e-4 * size * gain or size < _CONVERGED:
                break
            size /= 2
        at = tried
        value, slope, bend = after
    whole = np.arange(count + ties)
    return Fit(
        strengths=at[:count],
        log_tie=float(at[count]) if ties else None,
        information=bend[np.ix_(whole, whole)],
    )


def probabilities(gap: Values, log_tie: float | None) -> tuple[Values, Values, Values]:
    """Return how likely the first wins, the second wins, both tie, for gaps of strengths."""
    tie = np.full_like(gap, -np.inf) if log_tie is None else np.full_like(gap, log_tie)
    # All three over sqrt(w_i w_j), and over the largest of them against overflow.
    powers = np.stack([gap / 2, -gap / 2, tie])
    weights = np.exp(powers - powers.max(axis=0))
    first, second, tied = weights / weights.sum(axis=0)
    return first, second, tied


def _likelihood(outcomes: Outcomes, at: Values, *, ties: bool) -> tuple[float, Values, Values]:
    """Return the log-likelihood, its slope, and minus its second derivatives."""
    count = len(at) - 1
    i, j = outcomes.i, outcomes.j
    first, second, tied = probabilities(at[i] - at[j], float(at[count]) if ties else None)
    n = outcomes.i_won + outcomes.j_won + outcomes.tied
    seen = np.stack([outcomes.i_won, outcomes.j_won, outcomes.tied])
    with np.errstate(divide="ignore"):
        logs = np.log(np.stack([first, second, tied]))
    value = float(np.sum(seen[seen > 0] * logs[seen > 0]))
    slope = np.zeros(count + 1)
    lean = (outcomes.i_won - outcomes.j_won - n * (first - second)) / 2
    np.add.at(slope, i, lean)
    np.add.at(slope, j, -lean)
    slope[count] = float(np.sum(outcomes.tied - n * tied))
    bend = np.zeros((count + 1, count + 1))
    # Variance of (i won - j won) / 2, and its covariance with a tie, from one verdict.
    own = n * (first + second - (first - second) ** 2) / 4
    cross = -n * (first - second) * tied / 2
    for one, other, part in ((i, i, own), (j, j, own), (i, j, -own), (j, i, -own)):
        np.add.at(bend, (one, other), part)
    for one, part in ((i, cross), (j, -cross)):
        np.add.at(bend[:, count], one, part)
    bend[count, :count] = bend[:count, count]
    bend[count, count] = float(np.sum(n * tied * (1 - tied)))
    return value, slope, bend


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
    verdicts: Sequence[PairVerdict],
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
