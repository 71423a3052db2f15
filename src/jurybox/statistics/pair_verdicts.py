"""Verdicts on pairs of models, counted: which model met and beat which."""

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

WinningSide = Literal["a", "b", "tie"]
Links = NDArray[np.bool_]


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two models' answers was preferred; ``item`` identifies the question."""

    a: str
    b: str
    winner: WinningSide
    item: Hashable = None


class WinCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How often each model won against each other one, and tied.

    ``wins[i, j]`` is how often model i won against model j; ``ties`` is the same both ways.
    """

    names: tuple[str, ...]
    wins: NDArray[np.int64]
    ties: NDArray[np.int64]

    @property
    def n(self) -> int:
        """How many verdicts there are."""
        return int(self.wins.sum()) + int(self.ties.sum()) // 2

    @property
    def met(self) -> NDArray[np.int64]:
        """How often each model met each other one."""
        return self.wins + self.wins.T + self.ties

    @property
    def linked(self) -> Links:
        """Which model won against or tied with which."""
        return (self.wins > 0) | (self.ties > 0)

    def rate(self, i: int, j: int) -> float | None:
        """Return how often model i won against model j, a tie as half a win; None if never met."""
        met = int(self.met[i, j])
        return (int(self.wins[i, j]) + int(self.ties[i, j]) / 2) / met if met else None


def count_wins(verdicts: Iterable[PairVerdict]) -> WinCounts:
    """Count verdicts; models are in the order of their names.

    Raises:
        ValueError: a model is compared with itself.

    """
    rows = tuple(verdicts)
    names = tuple(sorted({name for row in rows for name in (row.a, row.b)}))
    number = {name: i for i, name in enumerate(names)}
    wins = np.zeros((len(names), len(names)), dtype=np.int64)
    ties = np.zeros_like(wins)
    for row in rows:
        a, b = number[row.a], number[row.b]
        if a == b:
            raise ValueError(f"`{row.a}` is compared with itself")
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
    """Return which node reaches which, itself included (Warshall's algorithm)."""
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

    Asked of models that all reach each other by wins and ties. Without ties they then always have
    finite strengths (Ford 1957). With ties, strengths and the tie parameter can still grow
    together without bound: if some potential ``d`` has ``d_i - d_j >= 1`` wherever i ever won
    against j, and ``|d_i - d_j| <= 1`` wherever they ever tied, following it never lowers the
    likelihood. Such constraints on differences can be met unless there is a negative cycle
    (Bellman and Ford).
    """
    if not counts.ties.any():
        return True
    length = np.full(counts.wins.shape, np.inf)
    length[counts.ties > 0] = 1.0
    # d_j - d_i <= -1 where i won: a path from i to j of length -1, shorter than any tie's.
    length[counts.wins > 0] = -1.0
    distance = np.zeros(len(length))
    for _ in range(len(length)):
        shorter = np.minimum(distance, (distance[:, None] + length).min(axis=0))
        if np.array_equal(shorter, distance):
            return False
        distance = shorter
    return True


def majority_cycles(counts: WinCounts) -> tuple[tuple[str, ...], ...]:
    """Return a shortest cycle of majorities for each set of models that has any.

    Each begins with the first of its models' names: A beats B beats C beats A.
    """
    beats = counts.wins > counts.wins.T
    found = [
        min((_shortest_cycle(beats, start) for start in part), key=len)
        for part in components(beats)
        if len(part) > 1
    ]
    return tuple(sorted(tuple(counts.names[i] for i in cycle) for cycle in found))


def _shortest_cycle(beats: Links, start: int) -> tuple[int, ...]:
    """Return the first shortest path from a node back to itself; there is one."""
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
