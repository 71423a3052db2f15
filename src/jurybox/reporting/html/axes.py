"""Between which ends a figure is drawn."""

import math
from typing import Final

import msgspec

from jurybox.rubric.figures import AGGREGATE_SCORE, LOWEST_MEAN, RATES, Share, Statistic
from jurybox.rubric.model import Rubric
from jurybox.scoring.tally import JUDGE_SCORE

UNITS: Final = {"latency_e2e_ms": "ms", "total_tokens": "tokens"}
"""What the measures of a sample are counted in."""

_STEPS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_AIR: Final = 1.15


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """From ``low`` to ``high``; ``bounded`` where no value can lie beyond."""

    low: float
    high: float
    bounded: bool

    def share(self, value: float) -> float:
        """Return how far along a value is, from 0 to 1; what lies beyond an end is at the end."""
        if self.high <= self.low:
            return 0.0
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


WHOLE: Final = Axis(low=0.0, high=1.0, bounded=True)


def axis_of(name: str, rubric: Rubric, *values: float | None) -> Axis:
    """Return the axis of a run's figure: its scale, a share's, or one that has room for values."""
    known = [value for value in values if value is not None]
    axis = _declared(name, rubric)
    if axis is None:
        return Axis(low=min(0.0, *known, 0.0), high=above(max(0.0, *known, 0.0)), bounded=False)
    # A gate may ask for what its figure can never be.
    low, high = min(axis.low, *known, axis.low), max(axis.high, *known, axis.high)
    return Axis(low=low, high=high, bounded=axis.bounded)


def _declared(name: str, rubric: Rubric) -> Axis | None:
    formula = next((each.formula for each in rubric.figures if each.name == name), None)
    if isinstance(formula, Share):
        return WHOLE
    if isinstance(formula, Statistic):
        return None if formula.by == "sum" else of_sample_figure(formula.of, rubric)
    if formula is not None:
        return None
    if name in RATES or name == AGGREGATE_SCORE:
        return WHOLE
    if name == LOWEST_MEAN:
        scales = [criterion.scale for criterion in rubric.criteria]
        low = min(scale.low for scale in scales)
        return Axis(low=low, high=max(scale.high for scale in scales), bounded=True)
    return of_sample_figure(name.removesuffix("_mean"), rubric) if name.endswith("_mean") else None


def of_sample_figure(name: str, rubric: Rubric) -> Axis | None:
    """Return the axis of a figure that samples have; None where it has no scale."""
    if name in (rubric.overall_name, "sample_score"):
        return WHOLE
    criterion = rubric.criterion(name)
    if criterion is None and name == JUDGE_SCORE:
        # What a judge says of the whole is its only criterion, or the overall score.
        criterion = rubric.criteria[0] if len(rubric.criteria) == 1 else None
        if criterion is None:
            return WHOLE
    if criterion is None:
        return None
    return Axis(low=criterion.scale.low, high=criterion.scale.high, bounded=True)


def above(value: float) -> float:
    """Return a round number above a value, with some air."""
    if value <= 0:
        return 1.0
    wanted = value * _AIR
    power = 10.0 ** math.floor(math.log10(wanted))
    return next(step for step in (*_STEPS, 20.0) if step * power >= wanted) * power
