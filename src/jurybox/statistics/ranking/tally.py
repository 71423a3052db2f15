"""Verdicts on pairs, counted by pair of models."""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.ranking.verdict import Verdict

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


def tally(verdicts: Iterable[Verdict]) -> Tally:
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
