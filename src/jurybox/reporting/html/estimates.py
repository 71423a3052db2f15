"""The figures of a run with what is known of their chance: how many samples, and intervals.

An interval takes samples to be independent of each other. The repeats of one sample aren't, so only
as many values count as there are samples, while what repeats differ by counts in full; that makes
intervals too wide rather than too narrow.
"""

from typing import Final

import msgspec

from jurybox.reporting.html.axes import Axis, axis_of
from jurybox.rubric.figures import (
    AGGREGATE_SCORE,
    LOWEST_MEAN,
    RATES,
    SAMPLE_SCORE,
    Share,
    Statistic,
)
from jurybox.rubric.model import Rubric
from jurybox.scoring.spreads import FigureSpread
from jurybox.scoring.summary import Conclusion
from jurybox.statistics.distributions import t_quantile
from jurybox.statistics.interval import Interval
from jurybox.statistics.proportion import wilson

LEVEL: Final = 0.95
OLDER: Final = "an older jurybox made the run and didn't keep how values vary"

_MEAN: Final = "_mean"
_TWO: Final = 2


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of a run.

    Attributes:
        name: the figure's, as rules and gates call it.
        value: None where no sample has what it is made of.
        n: how many samples it comes from; None for what is a count itself.
        interval: where the true figure probably lies.
        reason: why there is no interval.
        axis: the ends between which it is drawn.

    """

    name: str
    value: float | None
    n: int | None
    interval: Interval | None
    reason: str | None
    axis: Axis


class Estimates:
    """Tells what is known of a run's figures, by their names."""

    def __init__(self, conclusion: Conclusion, rubric: Rubric) -> None:
        self._summary = conclusion.summary
        self._spreads = conclusion.spreads
        self._rubric = rubric
        self._counts: dict[str, int] = self._summary.get("n", {})
        self._repeats: int = self._summary.get("repeats", {}).get("n", 1)
        self._formulas = {figure.name: figure.formula for figure in rubric.figures}

    def of(self, name: str) -> Estimate:
        """Return what is known of one figure."""
        value: float | None = self._summary.get(name)
        n = self._counts.get(name)
        axis = axis_of(name, self._rubric, value)
        interval, reason = self._interval(name, value, n, axis)
        return Estimate(name=name, value=value, n=n, interval=interval, reason=reason, axis=axis)

    def spread(self, figure: str) -> FigureSpread | None:
        """Return how a figure of the samples is spread over them."""
        return None if self._spreads is None else self._spreads.figures.get(figure)

    def _interval(
        self, name: str, value: float | None, n: int | None, axis: Axis
    ) -> tuple[Interval | None, str | None]:
        if value is None or n == 0:
            return None, "there are no values"
        if n is None:
            lowest = "the lowest of several means has none"
            return None, lowest if name == LOWEST_MEAN else "it is a count"
        formula = self._formulas.get(name)
        if isinstance(formula, Share) or (formula is None and name in RATES):
            # A share of all repeats is one of as many samples as there are in one of them.
            alone = n / self._repeats
            return wilson(value * alone, alone, LEVEL), None
        source = self._source(name)
        if source is None:
            return None, "sums, extremes, percentiles and ratios have none here"
        return self._of_mean(source, axis)

    def _of_mean(self, source: str, axis: Axis) -> tuple[Interval | None, str | None]:
        if self._spreads is None:
            return None, OLDER
        spread = self._spreads.figures.get(source)
        if spread is None:
            return None, f"the spread of {source} isn't kept"
        return mean_interval(spread, axis)

    def _source(self, name: str) -> str | None:
        """Return the figure of the samples that a figure of the run is the mean of."""
        formula = self._formulas.get(name)
        if formula is not None:
            return formula.of if isinstance(formula, Statistic) and formula.by == "mean" else None
        if name == AGGREGATE_SCORE:
            return SAMPLE_SCORE
        return name.removesuffix(_MEAN) if name.endswith(_MEAN) else None


def mean_interval(spread: FigureSpread, axis: Axis) -> tuple[Interval | None, str | None]:
    """Return Student's interval of a mean, ``mean -+ t * sd / sqrt(n)``, or why there is none.

    A mean can't lie beyond its scale, so the interval ends there: what is cut off held nothing.
    """
    n, sd = spread.independent, spread.sd
    if n < _TWO:
        return None, "one sample can't show how samples vary"
    if sd is None:
        return None, "the values are too large"
    if sd == 0:
        return None, "all values are the same, so they don't show how values vary"
    half = t_quantile((1 + LEVEL) / 2, n - 1) * sd / n**0.5
    low, high = spread.mean - half, spread.mean + half
    if axis.bounded:
        low, high = max(low, axis.low), min(high, axis.high)
    return Interval(low=low, high=high, level=LEVEL, method="t"), None
