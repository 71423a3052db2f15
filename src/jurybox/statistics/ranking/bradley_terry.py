"""The ranking of models from verdicts on pairs."""

from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.estimate import Interval
from jurybox.statistics.ranking.pair_counts import (
    PairVerdict,
    Tally,
    cycles,
    parts,
    reachable,
    tally,
)
from jurybox.statistics.ranking.scales import Scales, cautions, scale, unnamed_items


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


class StrengthDifference(msgspec.Struct, frozen=True, kw_only=True):
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
    differences: tuple[StrengthDifference, ...]
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


Links = NDArray[np.bool_]

_SAME = 1e-9


def rank(verdicts: Sequence[PairVerdict], *, level: float = 0.95) -> Ranking:
    """Rank models by Davidson's extension of the Bradley-Terry model.

    Strengths are logarithms with the mean 0. Nothing is added to the data: a model that won (or
    lost) every verdict has no finite strength, and gets none. Where items repeat, intervals are
    clustered by item; a verdict that names none then counts as an item of its own.

    Raises:
        ValueError: there are no verdicts, or a model is compared with itself.

    """
    if not verdicts:
        raise ValueError("there are no verdicts")
    counted = tally(verdicts)
    unnamed = sum(row.item is None for row in verdicts)
    items = len({row.item for row in verdicts if row.item is not None}) + unnamed
    clustered = items < len(verdicts)
    scales = scale(counted, verdicts, level, clustered=clustered)
    groups = parts(counted.met > 0)
    found, complete = cycles(counted)
    once = tally(_once(verdicts)) if clustered else counted
    models = _models(counted, once, scales, groups, level)
    return Ranking(
        n=counted.n,
        items=items if clustered else None,
        level=level,
        models=models,
        differences=_differences(counted, scales),
        cycles=found,
        ties=_tie_parameter(counted, scales),
        warnings=(
            *(unnamed_items(unnamed) if clustered else ()),
            *cautions(counted, scales, groups, found, complete=complete),
        ),
        tally=counted,
    )


def _once(verdicts: Sequence[PairVerdict]) -> tuple[PairVerdict, ...]:
    """Return each item's verdict on a pair once.

    Two judges of one answer are not two answers, and neither are the two orders of one pair.
    """
    found: dict[Hashable, PairVerdict] = {}
    for number, row in enumerate(verdicts):
        won = {"a": row.a, "b": row.b, "tie": None}[row.winner]
        own = number if row.item is None else None
        found.setdefault((own, row.item, frozenset((row.a, row.b)), won), row)
    return tuple(found.values())


def _models(
    counted: Tally,
    once: Tally,
    scales: Scales,
    groups: tuple[tuple[int, ...], ...],
    level: float,
) -> tuple[RankedModel, ...]:
    above = _above(counted, scales)
    told = _told(once, scales, level)
    group_of = {model: number for number, group in enumerate(groups, 1) for model in group}
    size_of = {model: len(group) for group in groups for model in group}
    scale_of = {model: number for number, part in enumerate(scales.parts, 1) for model in part}
    made: list[RankedModel] = []
    for i, name in enumerate(counted.names):
        known = not np.isnan(scales.strengths[i])
        wins, losses = int(counted.wins[i].sum()), int(counted.wins[:, i].sum())
        ties = int(counted.ties[i].sum())
        made.append(
            RankedModel(
                name=name,
                strength=float(scales.strengths[i]) if known else None,
                interval=scales.interval(i),
                reason=scales.reasons[i],
                rank=1 + int(above[:, i].sum()),
                rank_interval=(1 + int(told[:, i].sum()), size_of[i] - int(told[i].sum())),
                group=group_of[i],
                scale=scale_of[i] if known else None,
                wins=wins,
                losses=losses,
                ties=ties,
                win_rate=(wins + ties / 2) / (wins + losses + ties),
            )
        )
    return tuple(sorted(made, key=lambda each: (each.group, each.rank, each.name)))


def _above(counted: Tally, scales: Scales) -> Links:
    """Return which model is above which by what was seen, sure or not."""
    reach = reachable((counted.wins > 0) | (counted.ties > 0))
    one_way = reach & ~reach.T
    gap = scales.strengths[:, None] - scales.strengths[None, :]
    # A comparison with NaN is false: models without a strength are above by wins alone.
    above = one_way | (_one_scale(scales) & (gap > _SAME))
    if scales.fitted is None:
        # Then wins alone never go round, and ties, which leave the order open, are set aside.
        won = reachable(counted.wins > 0)
        above |= won & ~won.T
    return above


def _told(counted: Tally, scales: Scales, level: float) -> Links:
    """Return which model is surely above which.

    On one scale, where the interval of their difference excludes 0. Between scales no difference
    is finite; there, n wins and no loss tell two models apart where a fair coin would show one
    side only with probability ``2^(1 - n) <= 1 - level``.
    """
    together = _one_scale(scales)
    told = (counted.wins.T == 0) & ~together
    told &= 2.0 ** (1 - np.minimum(counted.wins, 1000)) <= round(1 - level, 12)
    for i, j in zip(*np.nonzero(together), strict=True):
        interval = scales.between(int(i), int(j)) if i != j else None
        told[i, j] = interval is not None and interval.low > 0
    return told


def _one_scale(scales: Scales) -> Links:
    same = np.zeros((len(scales.strengths),) * 2, dtype=np.bool_)
    for part in scales.parts:
        same[np.ix_(part, part)] = True
    return same & ~np.isnan(scales.strengths)[:, None]


def _differences(counted: Tally, scales: Scales) -> tuple[StrengthDifference, ...]:
    made: list[StrengthDifference] = []
    together = _one_scale(scales)
    order: list[int] = np.argsort(-scales.strengths, kind="stable").tolist()
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            if together[i, j]:
                interval: Interval | None = scales.between(i, j)
                made.append(
                    StrengthDifference(
                        a=counted.names[i],
                        b=counted.names[j],
                        difference=float(scales.strengths[i] - scales.strengths[j]),
                        interval=interval,
                        told_apart=interval is not None and interval.low > 0,
                    )
                )
    return tuple(made)


def _tie_parameter(counted: Tally, scales: Scales) -> TieParameter:
    ties = int(counted.ties.sum()) // 2
    if not ties:
        return TieParameter(parameter=0.0, ties=0)
    if scales.fitted is None or scales.fitted.log_tie is None:
        return TieParameter(parameter=None, ties=ties)
    log = scales.fitted.log_tie
    interval = None
    if scales.spread is not None:
        logs = scales.spread.interval(log, float(scales.spread.covariance[-1, -1]))
        interval = Interval(
            low=float(np.exp(logs.low)),
            high=float(np.exp(logs.high)),
            level=logs.level,
            method=logs.method,
        )
    return TieParameter(parameter=float(np.exp(log)), interval=interval, ties=ties)
