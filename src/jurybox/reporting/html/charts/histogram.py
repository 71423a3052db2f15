"""Bars that stand: how many samples have which value."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from markupsafe import Markup

from jurybox.reporting.figures import shown
from jurybox.reporting.html.charts.drawing import (
    box,
    element,
    line,
    picture,
    room_for,
    within,
    words,
)
from jurybox.reporting.html.distributions import Distribution
from jurybox.scoring.spreads import Bin

_WIDTH: Final = 336.0
_PLOT: Final = 110.0
_LINE: Final = 14.0
_EDGE: Final = 8.0
_GAP: Final = 6.0
_LEAST: Final = 1.5
_THICK: Final = 54.0
_LARGE: Final = 10_000


def histogram(distribution: Distribution) -> Markup:
    """Return how a figure is spread: its bins as bars, its mean and its marks as strokes."""
    return _Histogram(distribution).drawn()


class _Histogram:
    def __init__(self, distribution: Distribution) -> None:
        self._of = distribution
        self._bins = distribution.bins
        self._wide = (_WIDTH - 2 * _EDGE) / max(len(self._bins), 1)
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
        parts.append(line((_EDGE, self._base), (_WIDTH - _EDGE, self._base), "axis"))
        size = (_WIDTH, self._base + 2 * _LINE)
        unit = f" in {of.unit}" if of.unit else ""
        return picture(f"{of.label}{unit}", described(of), size, *parts, kind="histogram")

    def _bars(self) -> Iterator[Markup]:
        for at, (low, end, count) in enumerate(self._bins):
            if not count:
                continue
            high = self._high(count)
            left = _EDGE + at * self._wide
            # A score is a point; only a range is as wide as it is.
            thick = min(self._wide - 2, _THICK) if low == end else self._wide - 2
            yield box(left + (self._wide - thick) / 2, self._base - high, thick, high, "fill")

    def _high(self, count: int) -> float:
        # What is too small to be seen is still no zero.
        return max(count / self._most * _PLOT, _LEAST)

    def _counts(self) -> Iterator[Markup]:
        counts = [count for _, _, count in self._bins]
        if max(map(room_for, map(_end, counts)), default=0.0) <= self._wide - 2:
            told = range(len(counts))
        else:
            # Without room for all, the highest one says how high high is.
            told = (counts.index(self._most),)
        for at in told:
            if counts[at]:
                text = _end(counts[at])
                place, anchor = within(text, _EDGE + (at + 0.5) * self._wide, _WIDTH)
                yield words(text, place, self._base - self._high(counts[at]) - 3, "count", anchor)

    def _labels(self) -> Iterator[Markup]:
        for text, place, anchor in labels(self._bins, self._wide):
            yield words(text, place, self._base + _LINE, "tick", anchor)

    def _marks(self) -> Iterator[Markup]:
        for at, (label, value, kind) in enumerate(self._strokes):
            x = self._place(value)
            height = _LINE * (at + 1)
            text = f"{label} {shown(value)}"
            place, anchor = within(text, x, _WIDTH)
            yield element("line", x1=x, y1=height + 3, x2=x, y2=self._base, class_=kind)
            yield words(text, place, height - 1, "mark-name", anchor)

    def _place(self, value: float) -> float:
        """Return where a value lies; bins are drawn equally wide, whatever their ends are."""
        if all(low == high for low, high, _ in self._bins):
            return self._between_points(value)
        for at, (low, high, _) in enumerate(self._bins):
            if value < high or (value <= high and at == len(self._bins) - 1):
                part = (value - low) / (high - low) if high > low else 0.5
                return _EDGE + (at + min(max(part, 0.0), 1.0)) * self._wide
        return _WIDTH - _EDGE

    def _between_points(self, value: float) -> float:
        """Return where a value lies between scores, each of which is the middle of its bar."""
        points = [low for low, _, _ in self._bins]
        after = bisect_right(points, value)
        if 0 < after < len(points):
            low, high = points[after - 1], points[after]
            place = after - 1 + (value - low) / (high - low)
        else:
            place = max(after - 1, 0)
        return _EDGE + (place + 0.5) * self._wide


def labels(bins: Sequence[Bin], wide: float) -> list[tuple[str, float, str]]:
    """Return the words below the bars, as many as have room: text, place, anchor."""
    if not bins:
        return []
    if all(low == high for low, high, _ in bins):
        every = [(_end(low), _EDGE + (at + 0.5) * wide) for at, (low, _, _) in enumerate(bins)]
    else:
        ends = [*(low for low, _, _ in bins), bins[-1][1]]
        every = [(_end(end), _EDGE + at * wide) for at, end in enumerate(ends)]
    least = max(1, math.ceil((max(room_for(text) for text, _ in every) + _GAP) / wide))
    # A step that comes out at the end looks better, unless that leaves out much.
    gaps = len(every) - 1
    step = next((each for each in range(least, 2 * least) if not gaps % each), least)
    last = _placed(*every[-1])
    told: list[tuple[str, float, str]] = []
    free = -math.inf
    for text, x in every[:-1:step]:
        placed = _placed(text, x)
        left, right = _reach(placed)
        # The last one says where the axis ends; it counts more than its neighbours.
        if left >= free and right + _GAP <= _reach(last)[0]:
            told.append(placed)
            free = right + _GAP
    return [*told, last]


def _placed(text: str, x: float) -> tuple[str, float, str]:
    return (text, *within(text, x, _WIDTH))


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
