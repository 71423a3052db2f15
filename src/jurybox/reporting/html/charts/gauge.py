"""A gate: a bar up to the value, a stroke at the threshold, and the interval as a whisker."""

from typing import Final

from markupsafe import Markup

from jurybox.reporting.figures import exact, shown
from jurybox.reporting.html.charts.drawing import (
    box,
    element,
    line,
    picture,
    room_for,
    within,
    words,
)
from jurybox.reporting.html.gauges import Gauge

_WIDTH: Final = 240.0
_HEIGHT: Final = 40.0
_TOP: Final = 6.0
_THICK: Final = 14.0
_GAP: Final = 8.0


def gauge_chart(gauge: Gauge) -> Markup:
    """Return the drawing of a gate; without a threshold to draw, nothing."""
    axis, threshold = gauge.axis, gauge.threshold
    if axis is None or threshold is None:
        return Markup("")
    bottom = _TOP + _THICK
    drawn = [box(0, _TOP, _WIDTH, _THICK, "track")]
    at = axis.share(threshold) * _WIDTH
    # Where values would be good; shown by a shade of the track.
    if gauge.upward is not None:
        start, long = (at, _WIDTH - at) if gauge.upward else (0.0, at)
        drawn.append(box(start, _TOP, long, _THICK, "good-side"))
    if gauge.value is not None:
        kind = "fill" if gauge.passed else "fill bad"
        drawn.append(box(0, _TOP + 3, axis.share(gauge.value) * _WIDTH, _THICK - 6, kind))
    if gauge.interval is not None:
        middle = _TOP + _THICK / 2
        low, high = (axis.share(end) * _WIDTH for end in (gauge.interval.low, gauge.interval.high))
        drawn.append(line((low, middle), (high, middle), "whisker"))
        drawn += [line((end, middle - 4), (end, middle + 4), "whisker") for end in (low, high)]
    drawn.append(element("line", x1=at, y1=_TOP - 4, x2=at, y2=bottom + 4, class_="threshold"))
    drawn += _ticks(gauge, at)
    return picture(f"Gate {gauge.gate}", _told(gauge), (_WIDTH, _HEIGHT), *drawn, kind="gauge")


def _ticks(gauge: Gauge, at: float) -> list[Markup]:
    """Return the threshold's number, and the ends of the axis where there is room for them."""
    if gauge.axis is None or gauge.threshold is None:
        return []
    base = _HEIGHT - 3
    text = shown(gauge.threshold)
    place, anchor = within(text, at, _WIDTH)
    long = room_for(text)
    left = {"start": place, "middle": place - long / 2, "end": place - long}[anchor]
    drawn = [words(text, place, base, "tick strong", anchor)]
    low, high = shown(gauge.axis.low), shown(gauge.axis.high)
    if room_for(low) + _GAP <= left:
        drawn.append(words(low, 0, base, "tick", "start"))
    if left + long + _GAP <= _WIDTH - room_for(high):
        drawn.append(words(high, _WIDTH, base, "tick", "end"))
    return drawn


def _told(gauge: Gauge) -> str:
    parts = [f"The value is {exact(gauge.value)}, the threshold {exact(gauge.threshold)}."]
    if gauge.interval is not None:
        low, high = shown(gauge.interval.low), shown(gauge.interval.high)
        parts.append(f"The 95% interval is {low} to {high}.")
    parts.append("The gate holds." if gauge.passed else "The gate doesn't hold.")
    return " ".join(parts)
