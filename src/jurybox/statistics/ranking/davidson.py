"""The Bradley-Terry model with ties, after Davidson."""

from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

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
