"""Draws charts as SVG, without a script.

Each is an image with a title and a description that states its numbers in words. Colors come from
the page's style sheet by classes, so a chart follows the page into dark mode.
"""

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup, escape

from jurybox.documents.numbers import show_number
from jurybox.reporting.html.histograms import Axis, Distribution, PlottedMetric
from jurybox.reporting.html.html_text import visible
from jurybox.reporting.html.panels import CountShare, Gauge
from jurybox.reporting.metric_text import exact, shown
from jurybox.scoring.spread import Bin
from jurybox.statistics.estimates import Estimate

__all__ = [
    "agreement",
    "bar",
    "gauge_chart",
    "histogram",
    "shares",
    "trend",
    "vote_dots",
    "whisker",
]

FONT: Final = 11
"""The size of words in a chart, in pixels; the style sheet says the same."""

_CHARACTER: Final = 0.62
_WIDE: Final = 1.05


def element(name: str, *content: Markup | str, **attributes: str | float) -> Markup:
    """Return an element; content that isn't markup is escaped, and so is every attribute.

    ``text_anchor`` stands for ``text-anchor``, and ``class_`` for ``class``.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_written(value))}"'
        for key, value in attributes.items()
    )
    inside = "".join(
        each if isinstance(each, Markup) else escape(visible(each)) for each in content
    )
    return Markup(f"<{name}{written}>{inside}</{name}>")  # noqa: S704 - every part is escaped


def _written(value: str | float) -> str:
    return visible(value) if isinstance(value, str) else show_number(round(value, 2))


def picture(
    title: str, description: str, size: tuple[float, float], *content: Markup | str, kind: str
) -> Markup:
    """Return a drawing that can be read aloud."""
    width, height = size
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *content,
        role="img",
        class_=f"chart {kind}",
        viewBox=f"0 0 {_written(width)} {_written(height)}",
        width=width,
        height=height,
    )


def box(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    """Return a rectangle."""
    return element("rect", x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), class_=kind)


def line(start: tuple[float, float], end: tuple[float, float], kind: str) -> Markup:
    """Return a line."""
    return element("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=kind)


def words(text: str, x: float, y: float, kind: str, anchor: str = "middle") -> Markup:
    """Return words at a place."""
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=kind)


def room_for(text: str) -> float:
    """Return how many pixels a text takes at most, more or less."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return FONT * (_CHARACTER * (len(text) - wide) + _WIDE * wide)


def within(text: str, x: float, width: float) -> tuple[float, str]:
    """Return where a text goes that should be centred at ``x`` but must not leave the drawing."""
    half = room_for(text) / 2
    if x - half < 0:
        return 0.0, "start"
    return (width, "end") if x + half > width else (x, "middle")


_CELL_WIDTH: Final = 56.0
_CELL_HEIGHT: Final = 8.0
_WHOLE: Final = (320.0, 18.0)


def bar(value: float | None, axis: Axis, wide: float = _CELL_WIDTH) -> Markup:
    """Return a bar for a cell whose number stands beside it: it is nothing to read aloud."""
    width, height = wide, _CELL_HEIGHT
    filled = 0.0 if value is None else axis.share(value) * width
    return element(
        "svg",
        box(0, 0, width, height, "track"),
        box(0, 0, filled, height, "fill"),
        class_="cell-bar",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        aria_hidden="true",
    )


def shares(title: str, parts: Sequence[CountShare]) -> Markup:
    """Return the parts of a whole as one bar, each as long as its share."""
    width, height = _WHOLE
    drawn: list[Markup] = [box(0, 0, width, height, "track")]
    at = 0.0
    for part in parts:
        drawn.append(box(at, 0, part.share * width, height, f"part {part.kind}"))
        at += part.share * width
    counts = ", ".join(f"{part.label} {part.count}" for part in parts)
    n = parts[0].n if parts else 0
    return picture(title, f"Of {shown(n)}: {counts}.", _WHOLE, *drawn, kind="shares")


_GAUGE_WIDTH: Final = 240.0
_GAUGE_HEIGHT: Final = 40.0
_TOP: Final = 6.0
_GAUGE_THICK: Final = 14.0
_GAUGE_GAP: Final = 8.0


def gauge_chart(gauge: Gauge) -> Markup:
    """Return the drawing of a gate; without a threshold to draw, nothing."""
    axis, threshold = gauge.axis, gauge.threshold
    if axis is None or threshold is None:
        return Markup("")
    bottom = _TOP + _GAUGE_THICK
    drawn = [box(0, _TOP, _GAUGE_WIDTH, _GAUGE_THICK, "track")]
    at = axis.share(threshold) * _GAUGE_WIDTH
    # Where values would be good; shown by a shade of the track.
    if gauge.upward is not None:
        start, long = (at, _GAUGE_WIDTH - at) if gauge.upward else (0.0, at)
        drawn.append(box(start, _TOP, long, _GAUGE_THICK, "good-side"))
    if gauge.value is not None:
        kind = "fill" if gauge.passed else "fill bad"
        drawn.append(
            box(0, _TOP + 3, axis.share(gauge.value) * _GAUGE_WIDTH, _GAUGE_THICK - 6, kind)
        )
    if gauge.interval is not None:
        middle = _TOP + _GAUGE_THICK / 2
        low, high = (
            axis.share(end) * _GAUGE_WIDTH for end in (gauge.interval.low, gauge.interval.high)
        )
        drawn.append(line((low, middle), (high, middle), "whisker"))
        drawn += [line((end, middle - 4), (end, middle + 4), "whisker") for end in (low, high)]
    drawn.append(element("line", x1=at, y1=_TOP - 4, x2=at, y2=bottom + 4, class_="threshold"))
    drawn += _ticks(gauge, at)
    return picture(
        f"Gate {gauge.gate}",
        _describe_gauge(gauge),
        (_GAUGE_WIDTH, _GAUGE_HEIGHT),
        *drawn,
        kind="gauge",
    )


def _ticks(gauge: Gauge, at: float) -> list[Markup]:
    """Return the threshold's number, and the ends of the axis where there is room for them."""
    if gauge.axis is None or gauge.threshold is None:
        return []
    base = _GAUGE_HEIGHT - 3
    text = shown(gauge.threshold)
    place, anchor = within(text, at, _GAUGE_WIDTH)
    long = room_for(text)
    left = {"start": place, "middle": place - long / 2, "end": place - long}[anchor]
    drawn = [words(text, place, base, "tick strong", anchor)]
    low, high = shown(gauge.axis.low), shown(gauge.axis.high)
    if room_for(low) + _GAUGE_GAP <= left:
        drawn.append(words(low, 0, base, "tick", "start"))
    if left + long + _GAUGE_GAP <= _GAUGE_WIDTH - room_for(high):
        drawn.append(words(high, _GAUGE_WIDTH, base, "tick", "end"))
    return drawn


def _describe_gauge(gauge: Gauge) -> str:
    parts = [f"The value is {exact(gauge.value)}, the threshold {exact(gauge.threshold)}."]
    if gauge.interval is not None:
        low, high = shown(gauge.interval.low), shown(gauge.interval.high)
        parts.append(f"The 95% interval is {low} to {high}.")
    parts.append("The gate passes." if gauge.passed else "The gate fails.")
    return " ".join(parts)


_HISTOGRAM_WIDTH: Final = 336.0
_PLOT: Final = 110.0
_LINE: Final = 14.0
_HISTOGRAM_EDGE: Final = 8.0
_HISTOGRAM_GAP: Final = 6.0
_LEAST: Final = 1.5
_HISTOGRAM_THICK: Final = 54.0
_LARGE: Final = 10_000


def histogram(distribution: Distribution) -> Markup:
    """Return how a figure is spread: its bins as bars, its mean and its marks as strokes."""
    return _Histogram(distribution).drawn()


class _Histogram:
    def __init__(self, distribution: Distribution) -> None:
        self._of = distribution
        self._bins = distribution.bins
        self._wide = (_HISTOGRAM_WIDTH - 2 * _HISTOGRAM_EDGE) / max(len(self._bins), 1)
        self._strokes = [(mark.label, mark.value, "mark") for mark in distribution.marks]
        if self._bins:
            self._strokes.insert(0, ("mean", distribution.mean, "mark mean"))
        # Each stroke has a line of its own, so that no two of their words can meet.
        self._top = _LINE * (len(self._strokes) + 1)
        self._base = self._top + _PLOT
        self._most = max((count for _, _, count in self._bins), default=0)

    def drawn(self) -> Markup:
        """Return the drawing."""
        of = self._of
        # Counts lie over the strokes, for a number that is crossed out can't be read.
        parts = [*self._bars(), *self._labels(), *self._marks(), *self._counts()]
        parts.append(
            line(
                (_HISTOGRAM_EDGE, self._base),
                (_HISTOGRAM_WIDTH - _HISTOGRAM_EDGE, self._base),
                "axis",
            )
        )
        size = (_HISTOGRAM_WIDTH, self._base + 2 * _LINE)
        unit = f" in {of.unit}" if of.unit else ""
        return picture(f"{of.label}{unit}", described(of), size, *parts, kind="histogram")

    def _bars(self) -> Iterator[Markup]:
        for at, (low, end, count) in enumerate(self._bins):
            if not count:
                continue
            high = self._high(count)
            left = _HISTOGRAM_EDGE + at * self._wide
            # A score is a point; only a range is as wide as it is.
            thick = min(self._wide - 2, _HISTOGRAM_THICK) if low == end else self._wide - 2
            yield box(left + (self._wide - thick) / 2, self._base - high, thick, high, "fill")

    def _high(self, count: int) -> float:
        # What is too small to be seen is still no zero.
        return max(count / self._most * _PLOT, _LEAST)

    def _counts(self) -> Iterator[Markup]:
        counts = [count for _, _, count in self._bins]
        if max(map(room_for, map(_end, counts)), default=0.0) <= self._wide - 2:
            labeled = range(len(counts))
        else:
            # Without room for all, the highest one says how high high is.
            labeled = (counts.index(self._most),)
        for at in labeled:
            if counts[at]:
                text = _end(counts[at])
                place, anchor = within(
                    text, _HISTOGRAM_EDGE + (at + 0.5) * self._wide, _HISTOGRAM_WIDTH
                )
                yield words(text, place, self._base - self._high(counts[at]) - 3, "count", anchor)

    def _labels(self) -> Iterator[Markup]:
        for text, place, anchor in labels(self._bins, self._wide):
            yield words(text, place, self._base + _LINE, "tick", anchor)

    def _marks(self) -> Iterator[Markup]:
        for at, (label, value, kind) in enumerate(self._strokes):
            x = self._place(value)
            height = _LINE * (at + 1)
            text = f"{label} {shown(value)}"
            place, anchor = within(text, x, _HISTOGRAM_WIDTH)
            yield element("line", x1=x, y1=height + 3, x2=x, y2=self._base, class_=kind)
            yield words(text, place, height - 1, "mark-name", anchor)

    def _place(self, value: float) -> float:
        """Return where a value lies; bins are drawn equally wide, whatever their ends are."""
        if all(low == high for low, high, _ in self._bins):
            return self._between_points(value)
        for at, (low, high, _) in enumerate(self._bins):
            if value < high or (value <= high and at == len(self._bins) - 1):
                part = (value - low) / (high - low) if high > low else 0.5
                return _HISTOGRAM_EDGE + (at + min(max(part, 0.0), 1.0)) * self._wide
        return _HISTOGRAM_WIDTH - _HISTOGRAM_EDGE

    def _between_points(self, value: float) -> float:
        """Return where a value lies between scores, each of which is the middle of its bar."""
        points = [low for low, _, _ in self._bins]
        after = bisect_right(points, value)
        if 0 < after < len(points):
            low, high = points[after - 1], points[after]
            place = after - 1 + (value - low) / (high - low)
        else:
            place = max(after - 1, 0)
        return _HISTOGRAM_EDGE + (place + 0.5) * self._wide


def labels(bins: Sequence[Bin], wide: float) -> list[tuple[str, float, str]]:
    """Return the words below the bars, as many as have room: text, place, anchor."""
    if not bins:
        return []
    if all(low == high for low, high, _ in bins):
        every = [
            (_end(low), _HISTOGRAM_EDGE + (at + 0.5) * wide) for at, (low, _, _) in enumerate(bins)
        ]
    else:
        ends = [*(low for low, _, _ in bins), bins[-1][1]]
        every = [(_end(end), _HISTOGRAM_EDGE + at * wide) for at, end in enumerate(ends)]
    least = max(1, math.ceil((max(room_for(text) for text, _ in every) + _HISTOGRAM_GAP) / wide))
    # A step that comes out at the end looks better, unless that leaves out much.
    gaps = len(every) - 1
    step = next((each for each in range(least, 2 * least) if not gaps % each), least)
    last = _placed(*every[-1])
    ticks: list[tuple[str, float, str]] = []
    free = -math.inf
    for text, x in every[:-1:step]:
        placed = _placed(text, x)
        left, right = _reach(placed)
        # The last one says where the axis ends; it counts more than its neighbours.
        if left >= free and right + _HISTOGRAM_GAP <= _reach(last)[0]:
            ticks.append(placed)
            free = right + _HISTOGRAM_GAP
    return [*ticks, last]


def _placed(text: str, x: float) -> tuple[str, float, str]:
    return (text, *within(text, x, _HISTOGRAM_WIDTH))


def _reach(placed: tuple[str, float, str]) -> tuple[float, float]:
    """Return from where to where words go."""
    text, x, anchor = placed
    long = room_for(text)
    left = x - long * {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor]
    return left, left + long


def described(of: Distribution) -> str:
    """Return a distribution in words."""
    unit = f" {of.unit}" if of.unit else ""
    bins = "; ".join(
        f"{_end(low)}: {count}" if low == high else f"{_end(low)} to {_end(high)}: {count}"
        for low, high, count in of.bins
        if count
    )
    marks = "".join(f" {mark.label} {shown(mark.value)}{unit}." for mark in of.marks)
    return f"{shown(of.n)} values, mean {shown(of.mean)}{unit}. {bins}.{marks}"


def _end(value: float) -> str:
    """Return the end of a bin, shortly: 12500 as 12.5k."""
    for above, letter in ((1e9, "G"), (1e6, "M"), (_LARGE, "k")):
        if abs(value) >= above:
            unit = 1000 if letter == "k" else above
            return f"{shown(round(value / unit, 2))}{letter}"
    return shown(value)


_WHISKER_WIDTH: Final = 180.0
_WHISKER_HEIGHT: Final = 16.0
_WHISKER_EDGE: Final = 5.0


def whisker(estimate: PlottedMetric, *, zero: bool = False) -> Markup:
    """Return the drawing of a metric with its interval; ``zero`` marks where nothing differs."""
    middle = _WHISKER_HEIGHT / 2

    def place(value: float) -> float:
        return _WHISKER_EDGE + estimate.axis.share(value) * (_WHISKER_WIDTH - 2 * _WHISKER_EDGE)

    drawn = [line((_WHISKER_EDGE, middle), (_WHISKER_WIDTH - _WHISKER_EDGE, middle), "axis")]
    drawn += [
        line((end, middle - 3), (end, middle + 3), "axis")
        for end in (_WHISKER_EDGE, _WHISKER_WIDTH - _WHISKER_EDGE)
    ]
    if zero:
        drawn.append(line((place(0.0), 0), (place(0.0), _WHISKER_HEIGHT), "threshold"))
    if estimate.interval is not None:
        low, high = place(estimate.interval.low), place(estimate.interval.high)
        drawn.append(line((low, middle), (high, middle), "range"))
    if estimate.value is not None:
        at = place(estimate.value)
        drawn.append(element("circle", cx=at, cy=middle, r=3.5, class_="dot"))
    return picture(
        estimate.name,
        _describe_whisker(estimate),
        (_WHISKER_WIDTH, _WHISKER_HEIGHT),
        *drawn,
        kind="interval",
    )


_AGREEMENT: Final = Axis(low=-1.0, high=1.0, bounded=True)


def agreement(name: str, found: Estimate) -> Markup:
    """Return the drawing of an agreement beyond chance."""
    value = None if found.value is None else round(found.value, 4) + 0.0
    return whisker(
        PlottedMetric(
            name=name,
            value=value,
            n=found.n,
            interval=found.interval,
            reason=found.reason,
            axis=_AGREEMENT,
        )
    )


def _describe_whisker(estimate: PlottedMetric) -> str:
    low, high = shown(estimate.axis.low), shown(estimate.axis.high)
    text = f"{shown(estimate.value)} on an axis from {low} to {high}"
    if estimate.interval is not None:
        low, high = shown(estimate.interval.low), shown(estimate.interval.high)
        text += f", 95% interval {low} to {high}"
    return f"{text}, n {shown(estimate.n)}."


_DOT: Final = 9.0


def vote_dots(name: str, votes: Sequence[float], scale: tuple[float, float]) -> Markup:
    """Return votes as dots on their scale, equal ones above each other."""
    low, high = scale
    most = max((votes.count(vote) for vote in votes), default=1)
    base = most * _DOT + 2
    left, right = _WHISKER_EDGE, _WHISKER_WIDTH - _WHISKER_EDGE

    def place(vote: float) -> float:
        return left + (vote - low) / (high - low) * (right - left)

    drawn = [line((left, base), (right, base), "axis")]
    for vote in sorted(set(votes)):
        drawn += [
            element("circle", cx=place(vote), cy=base - _DOT * (at + 0.6), r=3.5, class_="dot")
            for at in range(votes.count(vote))
        ]
    drawn += [
        words(shown(low), 0, base + FONT + 1, "tick", "start"),
        words(shown(high), _WHISKER_WIDTH, base + FONT + 1, "tick", "end"),
    ]
    said = ", ".join(map(shown, votes)) or "none"
    text = f"Votes on a scale from {shown(low)} to {shown(high)}: {said}."
    return picture(f"Votes on {name}", text, (_WHISKER_WIDTH, base + FONT + 3), *drawn, kind="dots")


_TREND: Final = (240.0, 64.0)


def trend(name: str, points: Sequence[tuple[str, PlottedMetric]]) -> Markup:
    """Return a metric over several runs, the oldest first, each with its interval."""
    width, height = _TREND
    low, high = points[-1][1].axis.low, points[-1][1].axis.high
    step = (width - 2 * _WHISKER_EDGE) / (len(points) - 1)

    def place(value: float) -> float:
        share = (value - low) / (high - low)
        return height - _WHISKER_EDGE - min(max(share, 0.0), 1.0) * (height - 2 * _WHISKER_EDGE)

    ends = [
        (_WHISKER_EDGE + at * step, place(each.value or 0.0)) for at, (_, each) in enumerate(points)
    ]
    drawn = [line((0, height - 1), (width, height - 1), "axis")]
    drawn += [line(one, other, "path") for one, other in pairwise(ends)]
    for (x, y), (run, each) in zip(ends, points, strict=True):
        if each.interval is not None:
            drawn.append(
                line((x, place(each.interval.low)), (x, place(each.interval.high)), "range")
            )
        title = element("title", f"{run}: {shown(each.value)}")
        drawn.append(element("circle", title, cx=x, cy=y, r=3.5, class_="dot"))
    said = ", ".join(f"{run} {shown(each.value)}" for run, each in points)
    return picture(f"{points[-1][1].name} of {name}", f"{said}.", _TREND, *drawn, kind="trend")
