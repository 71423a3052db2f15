"""A figure on its scale: a dot for the value, a line for the interval."""

from typing import Final

from markupsafe import Markup

from jurybox.reporting.figures import shown
from jurybox.reporting.html.charts.drawing import element, line, picture
from jurybox.reporting.html.estimates import Estimate

_WIDTH: Final = 180.0
_HEIGHT: Final = 16.0
_EDGE: Final = 5.0


def whisker(estimate: Estimate) -> Markup:
    """Return the drawing of a figure with its interval."""
    middle = _HEIGHT / 2

    def place(value: float) -> float:
        return _EDGE + estimate.axis.share(value) * (_WIDTH - 2 * _EDGE)

    drawn = [line((_EDGE, middle), (_WIDTH - _EDGE, middle), "axis")]
    drawn += [line((end, middle - 3), (end, middle + 3), "axis") for end in (_EDGE, _WIDTH - _EDGE)]
    if estimate.interval is not None:
        low, high = place(estimate.interval.low), place(estimate.interval.high)
        drawn.append(line((low, middle), (high, middle), "range"))
    if estimate.value is not None:
        at = place(estimate.value)
        drawn.append(element("circle", cx=at, cy=middle, r=3.5, class_="dot"))
    return picture(estimate.name, _told(estimate), (_WIDTH, _HEIGHT), *drawn, kind="interval")


def _told(estimate: Estimate) -> str:
    low, high = shown(estimate.axis.low), shown(estimate.axis.high)
    told = f"{shown(estimate.value)} on an axis from {low} to {high}"
    if estimate.interval is not None:
        low, high = shown(estimate.interval.low), shown(estimate.interval.high)
        told += f", 95% interval {low} to {high}"
    return f"{told}, n {shown(estimate.n)}."
