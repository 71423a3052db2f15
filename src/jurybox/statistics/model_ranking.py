"""Ranks models from verdicts on pairs of their answers."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from jurybox.statistics import davidson
from jurybox.statistics.estimates import Interval
from jurybox.statistics.intervals import Values

UNBOUNDED: Final = "all verdicts against other models went one way, so its strength has no bound"
RUNAWAY: Final = "no weaker model ever won against a stronger one, so no finite strengths fit"
FEW_ITEMS: Final = "too few items for an interval that takes repeated items into account"

_ROUNDING: Final = 1e-9
_MOST_NAMES: Final = 5


class RankedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model's position in a ranking.

    ``strength`` is a logarithm: 0 is the mean of all models on the same scale, and a model that is
    0.69 above another wins against it twice as often as it loses. It is ``None`` if the verdicts
    don't bound it. Models in different groups share no verdicts. Strengths on different scales
    can't be subtracted, because all verdicts between their models went one way.
    """

    name: str
    strength: float | None = None
    interval: Interval | None = None
    reason: str | None = None  # why the strength or the interval is missing
    rank: int  # within its group
    group: int
    scale: int | None = None
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
    parameter: float | None


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """All models by group and rank, with the differences of strengths on one scale.

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

    Strengths are logarithms with the mean 0. No pseudo-verdicts are added, so a model that won (or
    lost) every verdict has no strength. If items have several verdicts, intervals are clustered
    by item, and a verdict without an item is its own cluster.
    """
    counts = davidson.count_wins(verdicts)
    unnamed = sum(row.item is None for row in verdicts)
    items = len({row.item for row in verdicts if row.item is not None}) + unnamed
    clustered = items < len(verdicts)
    scales = _fit_scales(counts, verdicts, level, clustered=clustered)
    groups = davidson.components(counts.met > 0)
    cycles = davidson.majority_cycles(counts)
    parameter = None if counts.ties.any() else 0.0
    if scales.fitted is not None:
        parameter = float(np.exp(scales.fitted.log_tie))
    return Ranking(
        n=counts.n,
        items=items if clustered else None,
        level=level,
        models=_models(counts, scales, groups),
        differences=_differences(counts, scales),
        cycles=cycles,
        ties=Ties(ties=int(counts.ties.sum()) // 2, parameter=parameter),
        warnings=(
            *_unlinked(counts, groups, unnamed if clustered else 0),
            *_one_sided(counts, scales),
            *_unsure(counts, scales, cycles),
        ),
        counts=counts,
    )


class _Scales(msgspec.Struct, frozen=True, kw_only=True):
    """Strengths by model: centered on every scale, NaN if missing.

    Each of ``parts`` has models that reach each other by wins and ties, and so share a scale.
    ``weights`` subtract the mean of a model's scale from its fitted strength.
    """

    parts: tuple[tuple[int, ...], ...]
    strengths: Values
    reasons: tuple[str | None, ...]
    fitted: davidson.StrengthFit | None
    weights: Values

    def interval(self, model: int, other: int | None = None) -> Interval | None:
        """Return the interval of a strength, or of its difference from another on its scale."""
        value, weights = self.strengths[model], self.weights[model]
        if other is not None:
            value, weights = value - self.strengths[other], weights - self.weights[other]
        if self.fitted is None or np.isnan(value):
            return None
        return self.fitted.interval(float(value), weights)

    @property
    def shared(self) -> davidson.Links:
        """Which pairs of models have strengths on the same scale."""
        same = _within(self.parts, len(self.strengths))
        return same & ~np.isnan(self.strengths)[:, None]


def _within(parts: Sequence[Sequence[int]], count: int) -> davidson.Links:
    same = np.zeros((count, count), dtype=np.bool_)
    for part in parts:
        same[np.ix_(part, part)] = True
    return same


def _fit_scales(
    counts: davidson.WinCounts,
    verdicts: Sequence[davidson.PairVerdict],
    level: float,
    *,
    clustered: bool,
) -> _Scales:
    """Fit all scales at once; they share the tie parameter."""
    count = len(counts.names)
    parts = davidson.components(counts.linked)
    within = _within(parts, count)
    inner = davidson.WinCounts(
        names=counts.names,
        wins=np.where(within, counts.wins, 0),
        ties=np.where(within, counts.ties, 0),
    )
    several = [part for part in parts if len(part) > 1]
    fitted, strengths = None, np.full(count, np.nan)
    weights = np.zeros((count, count))
    for part in several:
        weights[np.ix_(part, part)] = np.eye(len(part)) - 1 / len(part)
    linked = sorted(model for part in several for model in part)
    if several and davidson.has_finite_fit(inner):
        free = np.array(sorted(model for part in several for model in part[1:]), dtype=np.intp)
        numbers = {name: i for i, name in enumerate(counts.names)}
        rows = [row for row in verdicts if within[numbers[row.a], numbers[row.b]]]
        fitted = davidson.fit_strengths(inner, free, level, rows if clustered else None)
        strengths[linked] = (weights @ fitted.strengths)[linked]
    missing = RUNAWAY if fitted is None else FEW_ITEMS if fitted.covariance is None else None
    return _Scales(
        parts=parts,
        strengths=strengths,
        reasons=tuple(missing if i in linked else UNBOUNDED for i in range(count)),
        fitted=fitted,
        weights=weights,
    )


def _models(
    counts: davidson.WinCounts, scales: _Scales, groups: tuple[tuple[int, ...], ...]
) -> tuple[RankedModel, ...]:
    above = _above(counts, scales)
    group_of = {model: number for number, group in enumerate(groups, 1) for model in group}
    scale_of = {model: number for number, part in enumerate(scales.parts, 1) for model in part}
    made: list[RankedModel] = []
    for i, name in enumerate(counts.names):
        known = not np.isnan(scales.strengths[i])
        wins, losses = int(counts.wins[i].sum()), int(counts.wins[:, i].sum())
        ties = int(counts.ties[i].sum())
        made.append(
            RankedModel(
                name=name,
                strength=float(scales.strengths[i]) if known else None,
                interval=scales.interval(i),
                reason=scales.reasons[i],
                rank=1 + int(above[:, i].sum()),
                group=group_of[i],
                scale=scale_of[i] if known else None,
                wins=wins,
                losses=losses,
                ties=ties,
                win_rate=(wins + ties / 2) / (wins + losses + ties),
            )
        )
    return tuple(sorted(made, key=lambda each: (each.group, each.rank, each.name)))


def _above(counts: davidson.WinCounts, scales: _Scales) -> davidson.Links:
    """Return which models did better than which others, significantly or not."""
    reach = davidson.reachable(counts.linked)
    gap = scales.strengths[:, None] - scales.strengths[None, :]
    # Comparisons with NaN are false, so models without a strength are ordered by wins.
    above = (reach & ~reach.T) | (scales.shared & (gap > _ROUNDING))
    if scales.fitted is None:
        # Between scales, wins never form a cycle; ties leave the order open and are ignored.
        won = davidson.reachable(counts.wins > 0)
        above |= won & ~won.T
    return above


def _differences(counts: davidson.WinCounts, scales: _Scales) -> tuple[StrengthDifference, ...]:
    made: list[StrengthDifference] = []
    shared = scales.shared
    order: list[int] = np.argsort(-scales.strengths, kind="stable").tolist()
    for place, i in enumerate(order):
        for j in order[place + 1 :]:
            if shared[i, j]:
                interval = scales.interval(i, j)
                made.append(
                    StrengthDifference(
                        a=counts.names[i],
                        b=counts.names[j],
                        difference=float(scales.strengths[i] - scales.strengths[j]),
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


def _one_sided(counts: davidson.WinCounts, scales: _Scales) -> Iterator[str]:
    """Name the models between which all verdicts went one way: their distance is infinite."""
    won, lost = (counts.wins.sum(axis=axis) > 0 for axis in (1, 0))
    alone = [part[0] for part in scales.parts if len(part) == 1]
    for which, what in (
        ([i for i in alone if won[i] and not lost[i]], "won every verdict"),
        ([i for i in alone if lost[i] and not won[i]], "lost every verdict"),
        (
            [i for i in alone if won[i] and lost[i]],
            "won every verdict against some models and lost every one against the others",
        ),
    ):
        if which:
            yield f"{_names(counts, which)} {what}: no finite strength can be given"
    for part in scales.parts:
        rest = [i for i in range(len(counts.names)) if i not in part]
        beaten = [i for i in rest if counts.wins[np.ix_(part, [i])].any()]
        if len(part) > 1 and beaten:
            yield (
                f"{_names(counts, part)} won every verdict against {_names(counts, beaten)}:"
                " the verdicts don't limit how much stronger they are"
            )


def _unsure(
    counts: davidson.WinCounts, scales: _Scales, cycles: Sequence[Sequence[str]]
) -> Iterator[str]:
    if not counts.wins.any():
        yield "every verdict is a tie: there is no order"
    elif RUNAWAY in scales.reasons:
        yield (
            "no finite strengths fit: no model ever won against the order that wins and ties"
            " suggest, so no strength is given"
        )
    if FEW_ITEMS in scales.reasons:
        yield "there are too few items for intervals that take repeated items into account"
    if cycles:
        count = "a cycle" if len(cycles) == 1 else f"{len(cycles)} cycles"
        yield f"majorities form {count}: no single order agrees with all of them"


def _names(counts: davidson.WinCounts, models: Sequence[int]) -> str:
    shown = ", ".join(f"`{counts.names[i]}`" for i in models[:_MOST_NAMES])
    more = f" and {len(models) - _MOST_NAMES} more" if len(models) > _MOST_NAMES else ""
    return shown + more
