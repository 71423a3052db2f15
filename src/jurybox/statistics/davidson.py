"""Counts verdicts on pairs of models, and fits Davidson's Bradley-Terry model with ties."""

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import Codes, Values, normal_quantile, t_quantile

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


class StrengthFit(msgspec.Struct, frozen=True, kw_only=True):
    """The strengths that make the verdicts most likely, on a log scale.

    ``log_tie`` is the logarithm of the tie parameter, ``None`` without ties; ``information`` has
    the negative second derivatives of the log-likelihood by the strengths and ``log_tie``.
    """

    strengths: Values
    log_tie: float | None
    information: Values


def fit_strengths(counts: WinCounts, free: Codes) -> StrengthFit:
    """Maximize the likelihood by Newton's method; only the strengths of ``free`` models move.

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
    at = np.zeros(count + 1)
    value, slope, bend = _likelihood(counts, at, ties=ties)
    for _ in range(_MOST_STEPS):
        step = np.zeros(count + 1)
        step[moving] = np.linalg.solve(bend[np.ix_(moving, moving)], slope[moving])
        gain = float(slope @ step)
        if gain <= _CONVERGED:
            break
        size = 1.0
        while True:
            tried = at + size * step
            after = _likelihood(counts, tried, ties=ties)
            if after[0] >= value + 1e-4 * size * gain or size < _CONVERGED:
                break
            size /= 2
        at = tried
        value, slope, bend = after
    whole = np.arange(count + ties)
    return StrengthFit(
        strengths=at[:count],
        log_tie=float(at[count]) if ties else None,
        information=bend[np.ix_(whole, whole)],
    )


def _probabilities(gap: Values, log_tie: float | None) -> tuple[Values, Values, Values]:
    """Return the probabilities that the first wins, the second wins, and both tie."""
    tie = np.full_like(gap, -np.inf) if log_tie is None else np.full_like(gap, log_tie)
    # All three are divided by sqrt(w_i w_j), and by the largest of them to avoid overflow.
    powers = np.stack([gap / 2, -gap / 2, tie])
    weights = np.exp(powers - powers.max(axis=0))
    first, second, tied = weights / weights.sum(axis=0)
    return first, second, tied


def _likelihood(counts: WinCounts, at: Values, *, ties: bool) -> tuple[float, Values, Values]:
    """Return the log-likelihood, its gradient, and its negative second derivatives."""
    count = len(at) - 1
    i, j = np.nonzero(np.triu(counts.met))
    i_won, j_won, drawn = counts.wins[i, j], counts.wins[j, i], counts.ties[i, j]
    first, second, tied = _probabilities(at[i] - at[j], float(at[count]) if ties else None)
    n = i_won + j_won + drawn
    seen = np.stack([i_won, j_won, drawn])
    with np.errstate(divide="ignore"):
        logs = np.log(np.stack([first, second, tied]))
    value = float(np.sum(seen[seen > 0] * logs[seen > 0]))
    slope = np.zeros(count + 1)
    lean = (i_won - j_won - n * (first - second)) / 2
    np.add.at(slope, i, lean)
    np.add.at(slope, j, -lean)
    slope[count] = float(np.sum(drawn - n * tied))
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


# With fewer items, the variance between items is hardly known.
_FEW: Final = 10
# Items with identical verdicts show no variance, which doesn't mean certainty.
_NIL: Final = 1e-6


class StrengthCovariance(msgspec.Struct, frozen=True, kw_only=True):
    """The covariance of the strengths and ``log_tie``, with the quantile for intervals."""

    covariance: Values
    quantile: float
    level: float
    method: str

    def interval(self, value: float, variance: float) -> Interval:
        """Return the interval of a value with this variance."""
        half = self.quantile * float(np.sqrt(max(0.0, variance)))
        return Interval(low=value - half, high=value + half, level=self.level, method=self.method)


def by_information(fitted: StrengthFit, free: Codes, level: float) -> StrengthCovariance:
    """Return the inverse of the information, for verdicts that are all independent."""
    return StrengthCovariance(
        covariance=_inverse(fitted, free),
        quantile=normal_quantile((1 + level) / 2),
        level=level,
        method="Wald, observed information",
    )


def by_items(
    fitted: StrengthFit,
    free: Codes,
    verdicts: Sequence[PairVerdict],
    numbers: dict[str, int],
    level: float,
) -> StrengthCovariance | None:
    """Return the covariance clustered by item, for items with several verdicts each.

    With the gradients ``u_g`` of the log-likelihood of each of G items and the inverse information
    ``H``, it is ``G / (G - 1) H (sum u_g u_g') H``, with Student's t with G - 1 degrees of freedom.
    With fewer than ``2 (k + 1)`` items for k free strengths, ``None`` is returned, because the
    covariance would be far too small. With fewer than ten items, and if it would be zero, ``H`` is
    added, that of independent verdicts.

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
    first, second, tied = _probabilities(fitted.strengths[i] - fitted.strengths[j], fitted.log_tie)
    lean = np.array([{"a": 0.5, "b": -0.5, "tie": 0.0}[row.winner] for row in verdicts])
    lean -= (first - second) / 2
    tie = np.array([row.winner == "tie" for row in verdicts]) - tied
    slopes = np.zeros((count, size))
    np.add.at(slopes, (of, i), lean)
    np.add.at(slopes, (of, j), -lean)
    if fitted.log_tie is not None:
        np.add.at(slopes[:, -1], of, tie)
    inverse = _inverse(fitted, free)
    covariance = count / (count - 1) * inverse @ (slopes.T @ slopes) @ inverse
    if count < _FEW or np.any(np.diag(covariance) < _NIL * np.diag(inverse)):
        covariance = covariance + inverse
    return StrengthCovariance(
        covariance=covariance,
        quantile=t_quantile((1 + level) / 2, count - 1),
        level=level,
        method=f"Wald, clustered by {count:,} items",
    )


def _inverse(fitted: StrengthFit, free: Codes) -> Values:
    """Return the inverse of the information; strengths fixed at 0 have no variance."""
    size = len(fitted.information)
    moving = free if fitted.log_tie is None else np.append(free, size - 1)
    inverse = np.zeros((size, size))
    inverse[np.ix_(moving, moving)] = np.linalg.inv(fitted.information[np.ix_(moving, moving)])
    return inverse
