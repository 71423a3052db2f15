"""Counts verdicts on pairs of models, and fits Davidson's Bradley-Terry model with ties."""

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import (
    Codes,
    Values,
    codes_of,
    normal_quantile,
    t_quantile,
)

WinningSide = Literal["a", "b", "tie"]
Links = NDArray[np.bool_]


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two models' answers ``judge`` preferred.

    The answer of ``a`` was shown first. ``item`` identifies the question.
    """

    a: str
    b: str
    winner: WinningSide
    item: Hashable = None
    judge: str | None = None


class WinCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How often each model won against, and tied with, every other model.

    ``wins[i, j]`` is how often model i won against model j; ``ties`` is symmetric.
    """

    names: tuple[str, ...]
    wins: NDArray[np.int64]
    ties: NDArray[np.int64]

    @property
    def n(self) -> int:
        """The number of verdicts."""
        return int(self.wins.sum()) + int(self.ties.sum()) // 2

    @property
    def met(self) -> NDArray[np.int64]:
        """How often each pair of models was compared."""
        return self.wins + self.wins.T + self.ties

    @property
    def linked(self) -> Links:
        """Whether the model of a row ever won against or tied with the model of a column."""
        return (self.wins > 0) | (self.ties > 0)

    def rate(self, i: int, j: int) -> float | None:
        """Return model i's win rate against j; a tie is half a win. None if they never met."""
        met = int(self.met[i, j])
        return (int(self.wins[i, j]) + int(self.ties[i, j]) / 2) / met if met else None


def count_wins(verdicts: Iterable[PairVerdict]) -> WinCounts:
    """Count verdicts; models are sorted by name."""
    rows = tuple(verdicts)
    names = tuple(sorted({name for row in rows for name in (row.a, row.b)}))
    number = {name: i for i, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)), dtype=np.int64)
    ties = np.zeros_like(wins)
    for row in rows:
        a, b = number[row.a], number[row.b]
        match row.winner:
            case "a":
                wins[a, b] += 1
            case "b":
                wins[b, a] += 1
            case "tie":
                ties[a, b] += 1
                ties[b, a] += 1
    return WinCounts(names=names, wins=wins, ties=ties)


def reachable(links: Links) -> Links:
    """Return which nodes each node reaches, including itself (Warshall's algorithm)."""
    reach = links | np.eye(len(links), dtype=np.bool_)
    for middle in range(len(reach)):
        reach |= reach[:, middle, None] & reach[None, middle, :]
    return reach


def components(links: Links) -> tuple[tuple[int, ...], ...]:
    """Return the sets of nodes that reach each other, larger ones first."""
    reach = reachable(links)
    both = reach & reach.T
    found = dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in both)
    return tuple(sorted(found, key=lambda part: (-len(part), part)))


def has_finite_fit(counts: WinCounts) -> bool:
    """Return whether the likelihood has its maximum at finite strengths and tie parameter.

    It is assumed that all models reach each other by wins and ties. Without ties, strengths are
    then always finite (Ford 1957). With ties, strengths and the tie parameter can still grow
    together without bound: if some potential ``d`` has ``d_i - d_j >= 1`` wherever i ever won
    against j, and ``|d_i - d_j| <= 1`` wherever they ever tied, moving the strengths along ``d``
    never lowers the likelihood. Such a potential exists unless there is a negative cycle (Bellman
    and Ford).
    """
    if not counts.ties.any():
        return True
    length = np.full(counts.wins.shape, np.inf)
    length[counts.ties > 0] = 1.0
    # Where i won, d_j - d_i <= -1: an edge from i to j of length -1, shorter than a tie's.
    length[counts.wins > 0] = -1.0
    distance = np.zeros(len(length))
    for _ in range(len(length)):
        shorter = np.minimum(distance, (distance[:, None] + length).min(axis=0))
        if np.array_equal(shorter, distance):
            return False
        distance = shorter
    return True


def majority_cycles(counts: WinCounts) -> tuple[tuple[str, ...], ...]:
    """Return a shortest cycle of majorities for each set of models that has cycles.

    Each cycle begins with the first of its models by name: A beats B beats C beats A.
    """
    beats = counts.wins > counts.wins.T
    found = [
        min((_shortest_cycle(beats, start) for start in part), key=len)
        for part in components(beats)
        if len(part) > 1
    ]
    return tuple(sorted(tuple(counts.names[i] for i in cycle) for cycle in found))


def _shortest_cycle(beats: Links, start: int) -> tuple[int, ...]:
    """Return the first shortest cycle through a node, which must exist."""
    paths: deque[tuple[int, ...]] = deque([(start,)])
    seen = {start}
    while paths:
        path = paths.popleft()
        for after in np.flatnonzero(beats[path[-1]]).tolist():
            if after == start:
                return path
            if after not in seen:
                seen.add(after)
                paths.append((*path, after))
    return (start,)


_MOST_STEPS: Final = 200
_CONVERGED: Final = 1e-12
# With fewer items, the variance between items is hardly known.
_FEW: Final = 10
# Items with identical verdicts show no variance, which doesn't mean certainty.
_NIL: Final = 1e-6


class StrengthFit(msgspec.Struct, frozen=True, kw_only=True):
    """The strengths that make the verdicts most likely, on a log scale.

    ``log_tie`` is the logarithm of the tie parameter, minus infinity without ties. ``covariance``
    is that of the strengths and ``log_tie``, ``None`` if there are too few items for one; a
    parameter that wasn't fitted has no variance. ``quantile`` is that for intervals.
    """

    strengths: Values
    log_tie: float
    covariance: Values | None
    quantile: float
    level: float
    method: str

    def interval(self, value: float, weights: Values) -> Interval | None:
        """Return the interval of a value, which is a weighted sum of the strengths."""
        if self.covariance is None:
            return None
        variance = float(weights @ self.covariance[:-1, :-1] @ weights)
        half = self.quantile * float(np.sqrt(max(0.0, variance)))
        return Interval(low=value - half, high=value + half, level=self.level, method=self.method)


def fit_strengths(
    counts: WinCounts, free: Codes, level: float, by_item: Sequence[PairVerdict] | None
) -> StrengthFit:
    """Maximize the likelihood by Newton's method; only the strengths of ``free`` models move.

    The covariance is the inverse of the negative second derivatives of the log-likelihood, for
    verdicts that are all independent; if they are given ``by_item``, it is clustered by item.

    With ``w = exp(strength)`` and the tie parameter ``v``, ``P(i wins) = w_i / D``,
    ``P(tie) = v sqrt(w_i w_j) / D`` and ``D = w_i + w_j + v sqrt(w_i w_j)``. The log-likelihood is
    concave in the strengths and ``log v``, so every uphill step leads to its only maximum. Without
    any tie, ``v`` is 0, and this is the model of Bradley and Terry. One model of each linked part
    must be fixed at 0.

    Reference: R. R. Davidson (1970), "On extending the Bradley-Terry model to accommodate ties in
    paired comparison experiments", Journal of the American Statistical Association 65, 317-328;
    R. A. Bradley and M. E. Terry (1952), "Rank analysis of incomplete block designs", Biometrika
    39, 324-345.
    """
    count, ties = len(counts.names), bool(counts.ties.any())
    moving = np.append(free, count) if ties else free
    square = np.ix_(moving, moving)
    i, j = np.nonzero(np.triu(counts.met))
    seen = np.stack([counts.wins[i, j], counts.wins[j, i], counts.ties[i, j]])
    n = seen.sum(axis=0)
    at = np.append(np.zeros(count), 0.0 if ties else -np.inf)
    bend = axes = np.eye(count + 1)
    halves, last = (axes[i] - axes[j]) / 2, axes[count]
    for _ in range(_MOST_STEPS):
        chances = _chances(at, i, j)
        lead, tied = chances[0] - chances[1], chances[2]
        slope = _slopes(seen, chances, i, j, np.zeros(len(i), dtype=np.intp), (1, count + 1))[0]
        # The variance of i won - j won and of a tie, and their covariance.
        own = n * (chances[0] + chances[1] - lead**2)
        cross, tie = -n * lead * tied, n * tied * (1 - tied)
        crossed = np.outer(cross @ halves, last)
        bend = (halves.T * own) @ halves + crossed + crossed.T + tie.sum() * np.outer(last, last)
        step = np.zeros(count + 1)
        step[moving] = np.linalg.solve(bend[square], slope[moving])
        gain, value, size = float(slope @ step), _likelihood(seen, chances), 1.0
        if gain <= _CONVERGED:
            break
        while size >= _CONVERGED:
            after = _likelihood(seen, _chances(at + size * step, i, j))
            if after >= value + 1e-4 * size * gain:
                break
            size /= 2
        at = at + size * step
    inverse = np.zeros_like(bend)
    inverse[square] = np.linalg.inv(bend[square])
    fitted = StrengthFit(
        strengths=at[:count],
        log_tie=float(at[count]),
        covariance=inverse,
        quantile=normal_quantile((1 + level) / 2),
        level=level,
        method="Wald, observed information",
    )
    return fitted if by_item is None else _clustered(fitted, inverse, by_item, counts.names, free)


def _chances(at: Values, i: Codes, j: Codes) -> Values:
    """Return the probabilities that the first wins, the second wins, and both tie."""
    gap = at[i] - at[j]
    # All three are divided by sqrt(w_i w_j), and by the largest of them to avoid overflow.
    powers = np.stack([gap / 2, -gap / 2, np.full_like(gap, at[-1])])
    weights = np.exp(powers - powers.max(axis=0))
    return weights / weights.sum(axis=0)


def _likelihood(seen: NDArray[np.int64], chances: Values) -> float:
    return float(np.sum(seen[seen > 0] * np.log(chances[seen > 0])))


def _slopes(
    seen: NDArray[np.int64],
    chances: Values,
    i: Codes,
    j: Codes,
    of: Codes,
    shape: tuple[int, int],
) -> Values:
    """Return the gradient of the log-likelihood, summed over the rows of each group ``of``."""
    n, slopes = seen.sum(axis=0), np.zeros(shape)
    lean = (seen[0] - seen[1] - n * (chances[0] - chances[1])) / 2
    np.add.at(slopes, (of, i), lean)
    np.add.at(slopes, (of, j), -lean)
    np.add.at(slopes[:, -1], of, seen[2] - n * chances[2])
    return slopes


def _clustered(
    fitted: StrengthFit,
    inverse: Values,
    verdicts: Sequence[PairVerdict],
    names: Sequence[str],
    free: Codes,
) -> StrengthFit:
    """Return the fit with its covariance clustered by item.

    With the gradients ``u_g`` of the log-likelihood of each of G items and the inverse information
    ``H``, it is ``G / (G - 1) H (sum u_g u_g') H``, with Student's t with G - 1 degrees of freedom.
    With fewer than ``2 (k + 1)`` items for k free strengths, there is no covariance, because it
    would be far too small. With fewer than ten items, and if it would be zero, ``H`` is
    added, that of independent verdicts.

    Reference: K.-Y. Liang and S. L. Zeger (1986), "Longitudinal data analysis using generalized
    linear models", Biometrika 73, 13-22.
    """
    keys = [("row", at) if row.item is None else row.item for at, row in enumerate(verdicts)]
    of, count = codes_of(keys, len(keys))
    if count < 2 * (len(free) + 1):
        return msgspec.structs.replace(fitted, covariance=None)
    numbers = {name: number for number, name in enumerate(names)}
    i = np.array([numbers[row.a] for row in verdicts], dtype=np.intp)
    j = np.array([numbers[row.b] for row in verdicts], dtype=np.intp)
    seen = np.array([[row.winner == side for row in verdicts] for side in ("a", "b", "tie")])
    at = np.append(fitted.strengths, fitted.log_tie)
    slopes = _slopes(seen.astype(np.int64), _chances(at, i, j), i, j, of, (count, len(at)))
    covariance = count / (count - 1) * inverse @ (slopes.T @ slopes) @ inverse
    if count < _FEW or np.any(np.diag(covariance) < _NIL * np.diag(inverse)):
        covariance = covariance + inverse
    return msgspec.structs.replace(
        fitted,
        covariance=covariance,
        quantile=t_quantile((1 + fitted.level) / 2, count - 1),
        method=f"Wald, clustered by {count:,} items",
    )
