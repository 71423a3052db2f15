"""Strengths for all models that have finite ones, with how sure they are."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from jurybox.statistics.ranking.davidson import Fit, Outcomes, fit
from jurybox.statistics.ranking.graph import finite, parts
from jurybox.statistics.ranking.spread import Spread, by_information, by_items
from jurybox.statistics.ranking.tally import Tally
from jurybox.statistics.ranking.verdict import Verdict
from jurybox.statistics.result import Interval

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


def scale(tally: Tally, verdicts: Sequence[Verdict], level: float, *, clustered: bool) -> Scales:
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
