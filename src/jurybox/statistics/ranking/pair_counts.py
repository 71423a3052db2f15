"""Verdicts on pairs, counted by pair of models: who met and beat whom."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Outcome = Literal["a", "b", "tie"]


class PairVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two models' answers was preferred; ``item`` says to what they answered."""

    a: str
    b: str
    winner: Outcome
    item: Hashable = None


Counts = NDArray[np.int64]


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """How often each model won against each other one, and tied.

    Attributes:
        names: the models, sorted.
        wins: ``wins[i, j]`` is how often model i won against model j.
        ties: ``ties[i, j]`` is how often they tied; the same both ways.

    """

    names: tuple[str, ...]
    wins: Counts
    ties: Counts

    @property
    def n(self) -> int:
        """How many verdicts there are."""
        return int(self.wins.sum()) + int(self.ties.sum()) // 2

    @property
    def met(self) -> Counts:
        """How often each model met each other one."""
        return self.wins + self.wins.T + self.ties

    def rate(self, i: int, j: int) -> float | None:
        """Return how often model i won against model j, a tie as half a win; None if never met."""
        met = int(self.met[i, j])
        return (int(self.wins[i, j]) + int(self.ties[i, j]) / 2) / met if met else None


def tally(verdicts: Iterable[PairVerdict]) -> Tally:
    """Count verdicts; models are in the order of their names, whatever the order of the rows.

    Raises:
        ValueError: a model is compared with itself.

    """
    rows = verdicts if isinstance(verdicts, Sequence) else tuple(verdicts)
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
    return Tally(names=names, wins=wins, ties=ties)


Links = NDArray[np.bool_]

MOST_CYCLES: Final = 100
_MOST_STEPS: Final = 200_000


def reachable(links: Links) -> Links:
    """Return which node reaches which, itself included (Warshall's algorithm)."""
    reach = links | np.eye(len(links), dtype=np.bool_)
    for middle in range(len(reach)):
        reach |= reach[:, middle, None] & reach[None, middle, :]
    return reach


def parts(links: Links) -> tuple[tuple[int, ...], ...]:
    """Return the sets of nodes that reach each other, larger ones first."""
    reach = reachable(links)
    both = reach & reach.T
    found = dict.fromkeys(tuple(np.flatnonzero(row).tolist()) for row in both)
    return tuple(sorted(found, key=lambda part: (-len(part), part)))


def finite(tally: Tally) -> bool:
    """Tell whether the likelihood has its maximum at finite strengths and a finite tie parameter.

    Asked of models that all reach each other by wins and ties. Without ties they then always have
    finite strengths (Ford 1957). With ties, strengths and the tie parameter can still grow
    together for ever: if some potential ``d`` has ``d_i - d_j >= 1`` wherever i ever won against
    j, and ``|d_i - d_j| <= 1`` wherever they ever tied, going along it never lowers the
    likelihood. Such constraints on differences can be met unless there is a negative circle
    (Bellman and Ford).
    """
    if not tally.ties.any():
        return True
    length = np.full(tally.wins.shape, np.inf)
    length[tally.ties > 0] = 1.0
    # d_j - d_i <= -1 where i won: a path from i to j of length -1, shorter than any tie's.
    length[tally.wins > 0] = -1.0
    distance = np.zeros(len(length))
    for _ in range(len(length)):
        shorter = np.minimum(distance, (distance[:, None] + length).min(axis=0))
        if np.array_equal(shorter, distance):
            return False
        distance = shorter
    return True


def majorities(tally: Tally) -> Links:
    """Return who won against whom more often than not."""
    return tally.wins > tally.wins.T


def cycles(tally: Tally) -> tuple[tuple[tuple[str, ...], ...], bool]:
    """Return the circles of majorities, and whether these are all.

    A circle is listed if no shorter one lies within the same models: no majority exists between
    two of them that aren't neighbours in it. Each begins with the first of its names, and there
    are at most 100.
    """
    found: list[tuple[str, ...]] = []
    for cycle in _chordless(majorities(tally)):
        if cycle is None or len(found) == MOST_CYCLES:
            return tuple(found), False
        found.append(tuple(tally.names[i] for i in cycle))
    return tuple(sorted(found, key=lambda names: (len(names), names))), True


def _chordless(beats: Links) -> Iterator[tuple[int, ...] | None]:
    """Yield circles without chords; None where the search was given up."""
    either = beats | beats.T
    steps = 0
    stack: list[tuple[int, ...]] = [(start,) for start in reversed(range(len(beats)))]
    while stack:
        path = stack.pop()
        steps += 1
        if steps > _MOST_STEPS:
            yield None
            return
        first, last = path[0], path[-1]
        for after in np.flatnonzero(beats[last]).tolist():
            # The first is the smallest, so that each circle is found once.
            if after <= first or after in path or either[after, list(path[1:-1])].any():
                continue
            if last == first or not either[after, first]:
                stack.append((*path, after))
            elif beats[after, first]:
                yield (*path, after)
