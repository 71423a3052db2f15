"""Gates as gauges: the value, the threshold, how far apart they are, and what chance has to say."""

from collections.abc import Sequence

import msgspec

from jurybox.errors import Unreadable
from jurybox.reporting.html.axes import Axis, above, axis_of
from jurybox.reporting.html.estimates import Estimates
from jurybox.rubric.comparison import Comparison
from jurybox.rubric.model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.interval import Interval

_UPWARD = (">", ">=")
_DOWNWARD = ("<", "<=")
_DECIMALS = 6
_CLOSE = 0.3


class Gauge(msgspec.Struct, frozen=True, kw_only=True):
    """A gate of a run.

    Attributes:
        gate: its text.
        value: of the figure it is about; None fails.
        passed: whether it holds.
        threshold: the number it names; None where the text can't be read.
        upward: whether more is better; None where it asks for one number.
        margin: how far the value is on the good side; below zero on the other.
        n: how many samples the value comes from.
        interval: where the figure probably lies.
        reason: why that isn't known.
        close: whether the threshold lies within the interval, so that chance may have decided.
        axis: the ends between which it is drawn.

    """

    gate: str
    value: float | None
    passed: bool
    threshold: float | None
    upward: bool | None
    margin: float | None
    n: int | None
    interval: Interval | None
    reason: str | None
    close: bool
    axis: Axis | None


def gauge(gate: GateOutcome, rubric: Rubric, estimates: Estimates) -> Gauge:
    """Return a gate with all that is known of its figure."""
    try:
        rule = Comparison.parse(gate.gate)
    except Unreadable as error:
        return Gauge(
            gate=gate.gate,
            value=gate.value,
            passed=gate.passed,
            threshold=None,
            upward=None,
            margin=None,
            n=None,
            interval=None,
            reason=str(error),
            close=False,
            axis=None,
        )
    known = estimates.of(rule.name)
    interval = known.interval
    return Gauge(
        gate=gate.gate,
        value=gate.value,
        passed=gate.passed,
        threshold=rule.number,
        upward=_upward(rule),
        margin=_margin(rule, gate.value),
        n=known.n,
        interval=interval,
        reason=known.reason,
        close=interval is not None and interval.low <= rule.number <= interval.high,
        axis=_near(
            axis_of(rule.name, rubric, gate.value, rule.number),
            [gate.value, rule.number, None if interval is None else interval.high],
        ),
    )


def _near(axis: Axis, values: Sequence[float | None]) -> Axis:
    """Look closer where all that is drawn lies at the lower end."""
    most = max((value for value in values if value is not None), default=axis.high)
    if axis.low < 0 or not 0 < most <= _CLOSE * axis.high:
        return axis
    return msgspec.structs.replace(axis, high=above(most), bounded=False)


def _upward(rule: Comparison) -> bool | None:
    if rule.operator in _UPWARD + _DOWNWARD:
        return rule.operator in _UPWARD
    return None


def _margin(rule: Comparison, value: float | None) -> float | None:
    if value is None or _upward(rule) is None:
        return None
    above = value - rule.number
    return round(above if _upward(rule) else -above, _DECIMALS)
