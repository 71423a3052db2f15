"""Strengths for all models that have finite ones, with how sure they are."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.estimate import Interval
from jurybox.statistics.ranking.davidson import Fit, Outcomes, Spread, by_information, by_items, fit
from jurybox.statistics.ranking.pair_counts import MOST_CYCLES, PairVerdict, Tally, finite, parts

Values = NDArray[np.float64]

UNBOUNDED: Final = "verdicts against others went all one way, which sets its strength no bound"
RUNAWAY: Final = "too few wins against the order: strengths and ties together have no bound"
FEW_ITEMS: Final = "too few items for an interval that takes repeated ones into account"


class Scales(msgspec.Struct, frozen=True, kw_only=True):
    """Strengths by model.

    Attributes:
        parts: models that reach each other by wins and ties, and so share a scale.
        strengths: centred at 0 on every scale; NaN (only within this room) where there is none.
        reasons: for each model why it has no strength or no interval.
        fitted: the fit, where there is one.
        spread: how sure it is, where that can be told.
        covariance: of the centred strengths, where there is a spread.

    """

    parts: tuple[tuple[int, ...], ...]
    strengths: Values
    reasons: tuple[str | None, ...]
    fitted: Fit | None
    spread: Spread | None
    covariance: Values

    def interval(self, model: int) -> Interval | None:
        """Return where a model's strength lies."""
        if self.spread is None or np.isnan(self.strengths[model]):
            return None
        variance = float(self.covariance[model, model])
        return self.spread.interval(float(self.strengths[model]), variance)

    def between(self, one: int, other: int) -> Interval | None:
        """Return where the difference of two strengths on one scale lies."""
        if self.spread is None:
            return None
        difference = float(self.strengths[one] - self.strengths[other])
        among = self.covariance
        variance = float(among[one, one] + among[other, other] - 2 * among[one, other])
        return self.spread.interval(difference, variance)


def scale(
    tally: Tally, verdicts: Sequence[PairVerdict], level: float, *, clustered: bool
) -> Scales:
    """Fit all scales at once; they share the tie parameter."""
    count = len(tally.names)
    found = parts((tally.wins > 0) | (tally.ties > 0))
    within = np.zeros((count, count), dtype=np.bool_)
    for part in found:
        within[np.ix_(part, part)] = True
    inner = Tally(
        names=tally.names,
        wins=np.where(within, tally.wins, 0),
        ties=np.where(within, tally.ties, 0),
    )
    several = [part for part in found if len(part) > 1]
    linked = {model for part in several for model in part}
    reasons: list[str | None] = [None if i in linked else UNBOUNDED for i in range(count)]
    fitted, spread = None, None
    if several and finite(inner):
        free = np.array(sorted(model for part in several for model in part[1:]), dtype=np.intp)
        fitted = fit(_outcomes(inner), free, count)
        numbers = {name: i for i, name in enumerate(tally.names)}
        rows = [row for row in verdicts if within[numbers[row.a], numbers[row.b]]]
        if clustered:
            spread = by_items(fitted, free, rows, numbers, level)
        else:
            spread = by_information(fitted, free, level)
    missing = RUNAWAY if fitted is None else FEW_ITEMS if spread is None else None
    weights = _centring(several, count, len(fitted.information) if fitted else count)
    strengths = np.full(count, np.nan)
    for model in linked:
        reasons[model] = missing
        if fitted is not None:
            strengths[model] = float(weights[model, :count] @ fitted.strengths)
    return Scales(
        parts=found,
        strengths=strengths,
        reasons=tuple(reasons),
        fitted=fitted,
        spread=spread,
        covariance=weights @ spread.covariance @ weights.T if spread else np.zeros((0, 0)),
    )


def _centring(several: Sequence[tuple[int, ...]], count: int, size: int) -> Values:
    """Return for each model the weights that take the mean of its scale off its strength."""
    weights = np.zeros((count, size))
    for part in several:
        weights[np.ix_(part, part)] = -1 / len(part)
        for model in part:
            weights[model, model] += 1
    return weights


def _outcomes(tally: Tally) -> Outcomes:
    i, j = np.nonzero(np.triu(tally.met))
    return Outcomes(
        i=i,
        j=j,
        i_won=tally.wins[i, j].astype(np.float64),
        j_won=tally.wins[j, i].astype(np.float64),
        tied=tally.ties[i, j].astype(np.float64),
    )


_SHOWN = 5
_MOST = 20


def cautions(
    counted: Tally,
    scales: Scales,
    groups: Sequence[Sequence[int]],
    found: Sequence[Sequence[str]],
    *,
    complete: bool,
) -> tuple[str, ...]:
    """Return all warnings, the gravest first."""
    return (
        *_unlinked(counted, groups),
        *_one_sided(counted, scales),
        *_unsure(counted, scales),
        *_circles(found, complete=complete),
    )


def unnamed_items(count: int) -> Iterator[str]:
    """Say how many verdicts don't name their item though others do, and repeat."""
    if count:
        rows = "1 row names" if count == 1 else f"{count:,} rows name"
        yield f"{rows} no item: each counts as an item of its own beside those that repeat"


def _unlinked(counted: Tally, groups: Sequence[Sequence[int]]) -> Iterator[str]:
    if len(groups) > 1:
        sets = " and ".join(_names(counted, group) for group in groups[:_SHOWN])
        more = f" and {len(groups) - _SHOWN} more groups" if len(groups) > _SHOWN else ""
        yield f"no verdict links {sets}{more}: ranks and strengths hold within each group only"


def _one_sided(counted: Tally, scales: Scales) -> Iterator[str]:
    """Say between whom all verdicts went one way, so that no distance is finite."""
    said = 0
    for part in scales.parts:
        rest = [i for i in range(len(counted.names)) if i not in part]
        beaten = [i for i in rest if counted.wins[np.ix_(part, [i])].any()]
        lost_to = [i for i in rest if counted.wins[np.ix_([i], part)].any()]
        if len(part) > 1 and not beaten:
            continue
        said += 1
        if said > _MOST:
            yield "more models have no finite strength; each says so itself"
            return
        if len(part) == 1:
            yield _alone(counted, part[0], beaten, lost_to)
        else:
            yield (
                f"{_names(counted, part)} won every verdict against {_names(counted, beaten)}:"
                " the verdicts set no bound to how much stronger they are"
            )


def _alone(counted: Tally, model: int, beaten: Sequence[int], lost_to: Sequence[int]) -> str:
    name = f"`{counted.names[model]}`"
    if not lost_to:
        return f"{name} won every verdict: its strength has no upper bound, so none is given"
    if not beaten:
        return f"{name} lost every verdict: its strength has no lower bound, so none is given"
    return (
        f"{name} lost every verdict against {_names(counted, lost_to)} and won every one against"
        f" {_names(counted, beaten)}: no finite strength can be given"
    )


def _unsure(counted: Tally, scales: Scales) -> Iterator[str]:
    if not counted.wins.any():
        yield "every verdict is a tie: no order can be told"
    elif RUNAWAY in scales.reasons:
        yield (
            "no finite strengths fit: no model ever won against the order that wins and ties"
            " suggest, so none is given"
        )
    if FEW_ITEMS in scales.reasons:
        yield "there are too few items for intervals that take repeated items into account"


def _circles(found: Sequence[Sequence[str]], *, complete: bool) -> Iterator[str]:
    if found:
        count = "1 circle" if len(found) == 1 else f"{len(found)} circles"
        yield f"majorities go round in {count}: no single order agrees with all of them"
    if not complete:
        yield f"there may be more circles; at most {MOST_CYCLES} are listed"


def _names(counted: Tally, models: Sequence[int]) -> str:
    shown = ", ".join(f"`{counted.names[i]}`" for i in models[:_SHOWN])
    more = f" and {len(models) - _SHOWN} more" if len(models) > _SHOWN else ""
    return shown + more
