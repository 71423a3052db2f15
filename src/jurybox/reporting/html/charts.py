"""The distributions of samples, and the layout of charts; `charts.html` draws them."""

import math
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import Final

import msgspec

from jurybox.documents.numbers import metric_value, short, show_number
from jurybox.reporting.metric_text import UNITS
from jurybox.reporting.run_metrics import RunMetrics
from jurybox.rubric.metrics import PERCENTILES, SAMPLE_SCORE, Statistic
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import JUDGE_SCORE
from jurybox.scoring.tally import MEASURED, Bin

MOST_BINS: Final = 21

_LABELS: Final = {
    "latency_e2e_ms": "Latency, end to end",
    "total_tokens": "Tokens per sample",
    SAMPLE_SCORE: "Sample score",
    JUDGE_SCORE: "The judge's score",
}
_PARTS: Final = (2, 5, 10, 20, 50, 100)


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of the run that is marked in a distribution, such as its 95th percentile."""

    name: str
    label: str
    value: float
    n: int | None


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over the samples of a run."""

    name: str
    label: str
    unit: str
    n: int
    mean: float
    bins: tuple[Bin, ...]
    marks: tuple[Mark, ...] = ()

    def query(self, at: int) -> str:
        """Return the query for the samples of a bin; the outermost bins have no outer end."""
        low, high, _ = self.bins[at]
        half = 0.5 if low == high else 0.0  # a score between two bins belongs to the nearest
        start = f"&low={show_number(low - half)}" if at else ""
        end = f"&below={show_number(high + half)}" if at < len(self.bins) - 1 else ""
        return f"metric={self.name}{start}{end}"


def score_distributions(rubric: Rubric, metrics: RunMetrics) -> tuple[Distribution, ...]:
    """Return the distributions of scores: overall first, then every criterion."""
    criteria = {criterion.id: criterion.name for criterion in rubric.criteria}
    names = {SAMPLE_SCORE: _LABELS[SAMPLE_SCORE], rubric.overall_name: "Overall", **criteria}
    return _distributions({**names, JUDGE_SCORE: _LABELS[JUDGE_SCORE]}, rubric, metrics)


def measure_distributions(rubric: Rubric, metrics: RunMetrics) -> tuple[Distribution, ...]:
    """Return the distributions of latency and tokens, with the rubric's percentiles."""
    return _distributions({name: _LABELS[name] for name in MEASURED}, rubric, metrics)


def _distributions(
    names: dict[str, str], rubric: Rubric, metrics: RunMetrics
) -> tuple[Distribution, ...]:
    return tuple(
        Distribution(
            name=name,
            label=label,
            unit=UNITS.get(name, ""),
            n=spread.n,
            mean=spread.mean,
            bins=_few(spread.bins),
            marks=_marks(name, rubric, metrics),
        )
        for name, label in names.items()
        if (spread := metrics.spreads.get(name)) is not None
    )


def _marks(name: str, rubric: Rubric, metrics: RunMetrics) -> tuple[Mark, ...]:
    marks: list[Mark] = []
    for own, formula in rubric.metrics.items():
        if isinstance(formula, Statistic) and formula.of == name and formula.by in PERCENTILES:
            known = metrics.of(own)
            if known.value is not None:
                mark = Mark(name=own, label=formula.by, value=known.value, n=known.n)
                marks.append(mark)
    return tuple(sorted(marks, key=lambda mark: mark.value))


def _few(bins: tuple[Bin, ...]) -> tuple[Bin, ...]:
    """Merge adjacent bins until all fit into a chart."""
    if len(bins) <= MOST_BINS:
        return bins
    step = next((part for part in _PARTS if len(bins) <= part * MOST_BINS), len(bins))
    parts = [bins[at : at + step] for at in range(0, len(bins), step)]
    return tuple((part[0][0], part[-1][1], sum(each[2] for each in part)) for part in parts)


_FONT: Final = 11
_CHARACTER: Final = 0.62
_WIDE: Final = 1.05

_WIDTH: Final = 336.0
_PLOT: Final = 110.0
_LINE: Final = 14.0
_EDGE: Final = 8.0
_GAP: Final = 6.0
_LEAST: Final = 1.5
_THICK: Final = 54.0
_LARGE: Final = 10_000


def px(value: float) -> str:
    """Return a coordinate in a drawing as text."""
    return show_number(round(value, 2))


def room_for(text: str) -> float:
    """Return the approximate maximum width of a text in pixels."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return _FONT * (_CHARACTER * (len(text) - wide) + _WIDE * wide)


class PlacedText(msgspec.Struct, frozen=True, kw_only=True):
    """Text at a position; ``anchor`` says which part of the text is at ``x``."""

    text: str
    x: float
    anchor: str

    @property
    def left(self) -> float:
        """The left end."""
        return self.x - room_for(self.text) * {"start": 0.0, "middle": 0.5, "end": 1.0}[self.anchor]

    @property
    def right(self) -> float:
        """The right end."""
        return self.left + room_for(self.text)


def within(text: str, x: float, width: float) -> PlacedText:
    """Center text at ``x``, but keep it inside the drawing."""
    half = room_for(text) / 2
    if x - half < 0:
        return PlacedText(text=text, x=0.0, anchor="start")
    if x + half > width:
        return PlacedText(text=text, x=width, anchor="end")
    return PlacedText(text=text, x=x, anchor="middle")


class HistogramLayout:
    """The parts of a histogram, each with its position."""

    def __init__(self, of: Distribution) -> None:
        self.description = _described(of)
        self._name, self._bins = of.name, of.bins
        self._query = of.query
        self._wide = (_WIDTH - 2 * _EDGE) / max(len(of.bins), 1)
        # The values with a known position: the scores, or the ends of the ranges.
        ends, first = [low for low, _, _ in of.bins], _EDGE + self._wide / 2
        if any(low != high for low, high, _ in of.bins):
            ends, first = [*ends, of.bins[-1][1]], _EDGE
        self._anchors = [(end, first + at * self._wide) for at, end in enumerate(ends)]
        self._named = [(mark.label, mark.value, "mark") for mark in of.marks]
        if of.bins:
            self._named.insert(0, ("mean", of.mean, "mark mean"))
        # Each stroke's label has its own line, so that labels can't overlap.
        self.base = _LINE * (len(self._named) + 1) + _PLOT
        self.size = (_WIDTH, self.base + 2 * _LINE)
        self._most = max((count for _, _, count in of.bins), default=0)

    @property
    def bars(self) -> Iterator[tuple[float, float, float, float]]:
        """Left, top, width and height of each bar."""
        for at, (low, end, count) in enumerate(self._bins):
            # A score is drawn as a point; only a range has a width.
            thick = min(self._wide - 2, _THICK) if low == end else self._wide - 2
            left = _EDGE + at * self._wide + (self._wide - thick) / 2
            if count:
                yield left, self.base - self._high(count), thick, self._high(count)

    @property
    def links(self) -> Iterator[tuple[float, float, str, str]]:
        """The left end, width, query and description of each bin with samples."""
        for at, each in enumerate(self._bins):
            if each[2]:
                yield _EDGE + at * self._wide, self._wide, self._query(at), _bin_words(each)

    def _high(self, count: int) -> float:
        # A tiny value must still be distinguishable from zero.
        return max(count / self._most * _PLOT, _LEAST)

    @property
    def counts(self) -> Iterator[tuple[PlacedText, float]]:
        """The counts above the bars, with their heights."""
        counts = [count for _, _, count in self._bins]
        # The highest bar always has one, to show the scale, even if it leaves no room for others.
        highest = counts.index(self._most) if counts else 0
        for at, count in enumerate(counts):
            if not count:
                continue
            apart = abs(at - highest) * self._wide >= room_for(_end(self._most))
            below = self._high(count) + _LINE <= _PLOT
            if at == highest or (room_for(_end(count)) <= self._wide and (apart or below)):
                x = _EDGE + (at + 0.5) * self._wide
                yield within(_end(count), x, _WIDTH), self.base - self._high(count) - 3

    @property
    def strokes(self) -> Iterator[tuple[PlacedText, float, float, str]]:
        """The name, position, height and kind of each stroke."""
        for at, (label, value, kind) in enumerate(self._named):
            x = self._place(value)
            yield (
                within(f"{label} {metric_value(self._name, value)}", x, _WIDTH),
                x,
                _LINE * (at + 1),
                kind,
            )

    @property
    def labels(self) -> list[PlacedText]:
        """The labels below the bars, as many as fit."""
        every = [(_end(value), x) for value, x in self._anchors]
        if not every:
            return []
        widest = max(room_for(text) for text, _ in every)
        last = within(*every[-1], _WIDTH)
        ticks: list[PlacedText] = []
        for text, x in every[: -1 : max(1, math.ceil((widest + _GAP) / self._wide))]:
            placed = within(text, x, _WIDTH)
            free = ticks[-1].right + _GAP if ticks else -math.inf
            # The last label shows where the axis ends; it takes precedence over its neighbors.
            if placed.left >= free and placed.right + _GAP <= last.left:
                ticks.append(placed)
        return [*ticks, last]

    def _place(self, value: float) -> float:
        """Return the position of a value, between the two anchors around it."""
        after = bisect_right(self._anchors, value, key=itemgetter(0))
        (low, left), (high, right) = self._anchors[max(after - 1, 0)], self._anchors[-1]
        if after < len(self._anchors):
            high, right = self._anchors[after]
        part = (value - low) / (high - low) if high > low else 0.0
        return left + max(part, 0.0) * (right - left)


def _described(of: Distribution) -> str:
    """Describe a distribution in words."""
    unit = f" {of.unit}" if of.unit else ""
    bins = "; ".join(_bin_words(each) for each in of.bins if each[2])
    marks = "".join(
        f" {mark.label} {metric_value(of.name, mark.value)}{unit}." for mark in of.marks
    )
    return f"{short(of.n)} values, mean {metric_value(of.name, of.mean)}{unit}. {bins}.{marks}"


def _bin_words(found: Bin) -> str:
    low, high, count = found
    return f"{' to '.join(dict.fromkeys((_end(low), _end(high))))}: {count:,}"


def _end(value: float) -> str:
    """Return the end of a bin in short form: 12500 as 12.5k."""
    for above, letter in ((1e9, "G"), (1e6, "M"), (_LARGE, "k")):
        if abs(value) >= above:
            unit = 1000 if letter == "k" else above
            return f"{short(round(value / unit, 2))}{letter}"
    return short(value)
