"""What a ranking says."""

from typing import Any

import msgspec

from jurybox.statistics.ranking.tally import Tally
from jurybox.statistics.result import Interval


class RankedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model's place.

    Attributes:
        name: its name.
        strength: the logarithm of its strength; 0 is the mean of all models on the same scale, and
            0.69 above another means winning twice as often as losing. ``None`` where the verdicts
            set no bound to it.
        interval: where the strength lies.
        reason: why there is no strength or no interval.
        rank: 1 and how many models of its group are above it.
        rank_interval: the first and the last rank that it may have, counting only models that can
            be told apart from it.
        group: models of different groups were never linked by verdicts, so that their ranks say
            nothing about each other; counted from 1.
        scale: strengths of different scales can't be subtracted: all verdicts between them went
            one way; counted from 1.
        wins: how many verdicts it won.
        losses: how many it lost.
        ties: how many tied.
        win_rate: the share of its verdicts that it won, a tie as half a win.

    """

    name: str
    strength: float | None = None
    interval: Interval | None = None
    reason: str | None = None
    rank: int
    rank_interval: tuple[int, int]
    group: int
    scale: int | None = None
    wins: int
    losses: int
    ties: int
    win_rate: float


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How much stronger ``a`` is than ``b``, and whether that can be told.

    Attributes:
        a: the model with the higher strength.
        b: the other one.
        difference: of their strengths.
        interval: where the difference lies; it isn't corrected for the number of pairs.
        told_apart: whether the interval excludes 0.

    """

    a: str
    b: str
    difference: float
    interval: Interval | None
    told_apart: bool


class TieParameter(msgspec.Struct, frozen=True, kw_only=True):
    """How readily verdicts tie: equal models do with probability ``v / (2 + v)``."""

    parameter: float | None
    interval: Interval | None = None
    ties: int


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """All models, from the strongest to the weakest.

    Attributes:
        n: how many verdicts there are.
        items: on how many items, where the intervals take repeated ones into account.
        level: of all intervals.
        models: the models, by group and rank.
        differences: of all pairs whose strengths are on one scale.
        cycles: circles of majorities, such as A beats B beats C beats A.
        ties: the tie parameter.
        warnings: what keeps the ranking from being all that it seems.
        tally: the counts behind it.

    """

    n: int
    items: int | None
    level: float
    models: tuple[RankedModel, ...]
    differences: tuple[Difference, ...]
    cycles: tuple[tuple[str, ...], ...]
    ties: TieParameter
    warnings: tuple[str, ...]
    tally: Tally

    def matrix(self) -> dict[str, dict[str, float | None]]:
        """Return how often each model won against each other one, ties as half a win."""
        names = self.tally.names
        return {
            name: {other: self.tally.rate(i, j) for j, other in enumerate(names) if other != name}
            for i, name in enumerate(names)
        }

    def as_data(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        names = self.tally.names
        counts = {
            name: {
                other: {
                    "wins": int(self.tally.wins[i, j]),
                    "losses": int(self.tally.wins[j, i]),
                    "ties": int(self.tally.ties[i, j]),
                }
                for j, other in enumerate(names)
                if self.tally.met[i, j]
            }
            for i, name in enumerate(names)
        }
        return {
            "n": self.n,
            "items": self.items,
            "level": self.level,
            "models": self.models,
            "differences": self.differences,
            "matrix": self.matrix(),
            "counts": counts,
            "cycles": self.cycles,
            "ties": self.ties,
            "warnings": self.warnings,
        }
