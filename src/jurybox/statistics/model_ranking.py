"""Ranks models from verdicts on pairs of their answers."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, Final

import msgspec
import numpy as np

from jurybox.statistics import davidson
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import Values

FEW_ITEMS: Final = "too few items for an interval that takes repeated items into account"

_ADDED: Final = 0.5
_ROUNDING: Final = 1e-9
_MOST_NAMES: Final = 5


class RankedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model's position in a ranking.

    ``strength`` is a logarithm: 0 is the mean of the group, and a model that is 0.69 above another
    wins against it twice as often as it loses. Models in different groups share no verdicts.
    """

    name: str
    strength: float
    interval: Interval | None = None
    reason: str | None = None  # why the interval is missing
    rank: int  # within its group
    group: int
    wins: int
    losses: int
    ties: int
    win_rate: float  # a tie counts as half a win


class StrengthDifference(msgspec.Struct, frozen=True, kw_only=True):
    """How much stronger ``a`` is than ``b``; significant if the interval excludes 0.

    The interval isn't corrected for the number of pairs.
    """

    a: str
    b: str
    difference: float
    interval: Interval | None
    significant: bool


class Ties(msgspec.Struct, frozen=True, kw_only=True):
    """The number of ties; equal models tie with probability ``v / (2 + v)``, ``v = parameter``."""

    ties: int
    parameter: float


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """All models by group and rank, with the differences of strengths within groups.

    ``items`` counts the items if the intervals are clustered by item.
    """

    n: int
    items: int | None
    level: float
    models: tuple[RankedModel, ...]
    differences: tuple[StrengthDifference, ...]
    cycles: tuple[tuple[str, ...], ...]  # of majorities, such as A beats B beats C beats A
    ties: Ties
    warnings: tuple[str, ...]
    counts: davidson.WinCounts

    def matrix(self) -> dict[str, dict[str, float | None]]:
        """Return how often each model won against every other model; a tie is half a win."""
        names = self.counts.names
        return {
            name: {other: self.counts.rate(i, j) for j, other in enumerate(names) if other != name}
            for i, name in enumerate(names)
        }

    def as_data(self) -> dict[str, Any]:
        """Return plain data for JSON, with the matrix in place of the counts."""
        data = {name: getattr(self, name) for name in self.__struct_fields__ if name != "counts"}
        return {**data, "matrix": self.matrix()}


def rank(verdicts: Sequence[davidson.PairVerdict], *, level: float = 0.95) -> Ranking:
    """Rank models by Davidson's extension of the Bradley-Terry model.

    Strengths are logarithms with the mean 0 in every group. If no finite strengths fit, as with a
    model that won every verdict, half a win each way is added to every pair of models that met. If
    items have several verdicts, intervals are clustered by item, and a verdict without an item is
    its own cluster.
    """
    counts = davidson.count_wins(verdicts)
    unnamed = sum(row.item is None for row in verdicts)
    items = len({row.item for row in verdicts if row.item is not None}) + unnamed
    clustered = items < len(verdicts)
    groups = davidson.components(counts.met > 0)
    free = np.array(sorted(model for group in groups for model in group[1:]), dtype=np.intp)
    warnings = [*_unlinked(counts, groups, unnamed if clustered else 0)]
    fitted = davidson.fit_strengths(counts, free)
    if fitted is None:
        fitted = davidson.fit_strengths(counts, free, added=_ADDED)
        warnings.append(
            "no finite strengths fit, because verdicts between some models all went one way: half"
            " a win each way is added to every pair of models that met"
        )
    if fitted is None:
        raise ArithmeticError("the likelihood of smoothed verdicts has a maximum")
    if clustered:
        numbers = {name: i for i, name in enumerate(counts.names)}
        spread = davidson.by_items(fitted, free, verdicts, numbers, level)
    else:
        spread = davidson.by_information(fitted, free, level)
    if spread is None:
        warnings.append(
            "there are too few items for intervals that take repeated items into account"
        )
    cycles = davidson.majority_cycles(counts)
    if cycles:
        count = "a cycle" if len(cycles) == 1 else f"{len(cycles)} cycles"
        warnings.append(f"majorities form {count}: no single order agrees with all of them")
    if not counts.wins.any():
        warnings.append("every verdict is a tie: there is no order")
    strengths = _Strengths(counts, groups, fitted, spread)
    return Ranking(
        n=counts.n,
        items=items if clustered else None,
        level=level,
        models=strengths.models(),
        differences=strengths.differences(),
        cycles=cycles,
        ties=Ties(
            ties=int(counts.ties.sum()) // 2,
            parameter=0.0 if fitted.log_tie is None else float(np.exp(fitted.log_tie)),
        ),
        warnings=tuple(warnings),
        counts=counts,
    )


class _Strengths:
    """The fitted strengths, centered in every group, with their covariance."""

    def __init__(
        self,
        counts: davidson.WinCounts,
        groups: Sequence[tuple[int, ...]],
        fitted: davidson.StrengthFit,
        spread: davidson.StrengthCovariance | None,
    ) -> None:
        self._counts = counts
        self._group_of = {
            model: number for number, group in enumerate(groups, 1) for model in group
        }
        # The weights subtract the mean of a model's group from its strength.
        weights = np.zeros((len(counts.names), len(fitted.information)))
        for group in groups:
            weights[np.ix_(group, group)] = np.eye(len(group)) - 1 / len(group)
        self._strengths = weights[:, : len(counts.names)] @ fitted.strengths
        self._spread = spread
        self._covariance = weights @ spread.covariance @ weights.T if spread else weights

    def _interval(self, weights: Values) -> Interval | None:
        """Return the interval of a weighted sum of strengths."""
        if self._spread is None:
            return None
        variance = float(weights @ self._covariance @ weights)
        return self._spread.interval(float(weights @ self._strengths), variance)

    def models(self) -> tuple[RankedModel, ...]:
        """Return all models, by group and rank."""
        counts, alone = self._counts, np.eye(len(self._strengths))
        made: list[RankedModel] = []
        for i, name in enumerate(counts.names):
            wins, losses = int(counts.wins[i].sum()), int(counts.wins[:, i].sum())
            ties, group = int(counts.ties[i].sum()), self._group_of[i]
            above = self._strengths > self._strengths[i] + _ROUNDING
            made.append(
                RankedModel(
                    name=name,
                    strength=float(self._strengths[i]),
                    interval=self._interval(alone[i]),
                    reason=None if self._spread else FEW_ITEMS,
                    rank=1 + sum(self._group_of[int(j)] == group for j in np.flatnonzero(above)),
                    group=group,
                    wins=wins,
                    losses=losses,
                    ties=ties,
                    win_rate=(wins + ties / 2) / (wins + losses + ties),
                )
            )
        return tuple(sorted(made, key=lambda each: (each.group, each.rank, each.name)))

    def differences(self) -> tuple[StrengthDifference, ...]:
        """Return the differences of all pairs of models in a group, stronger ones first."""
        made: list[StrengthDifference] = []
        names, alone = self._counts.names, np.eye(len(self._strengths))
        order: list[int] = np.argsort(-self._strengths, kind="stable").tolist()
        for i, j in combinations(order, 2):
            if self._group_of[i] == self._group_of[j]:
                interval = self._interval(alone[i] - alone[j])
                made.append(
                    StrengthDifference(
                        a=names[i],
                        b=names[j],
                        difference=float(self._strengths[i] - self._strengths[j]),
                        interval=interval,
                        significant=interval is not None and interval.low > 0,
                    )
                )
        return tuple(made)


def _unlinked(
    counts: davidson.WinCounts, groups: Sequence[Sequence[int]], unnamed: int
) -> Iterator[str]:
    if unnamed:
        rows = "1 row names" if unnamed == 1 else f"{unnamed:,} rows name"
        yield f"{rows} no item: each counts as an item of its own"
    if len(groups) > 1:
        sets = " and ".join(_names(counts, group) for group in groups[:_MOST_NAMES])
        left = len(groups) - _MOST_NAMES
        more = f" and {left} more groups" if left > 0 else ""
        yield f"no verdict links {sets}{more}: ranks and strengths apply only within each group"


def _names(counts: davidson.WinCounts, models: Sequence[int]) -> str:
    shown = ", ".join(f"`{counts.names[i]}`" for i in models[:_MOST_NAMES])
    more = f" and {len(models) - _MOST_NAMES} more" if len(models) > _MOST_NAMES else ""
    return shown + more
