"""The scale of a criterion."""

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, Literal, Self

import msgspec

from jurybox.documents.numbers import fixed, show_number
from jurybox.errors import ParseError

_END = r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)"
_SCALE = re.compile(rf"\s*{_END}\s*(\.\.|-|\u2013)\s*{_END}\s*")
_LONGEST = 60
_HINT = "write it as `1-5` (whole numbers) or `0.0-1.0` (continuous)"


_MOST_POINT_BINS: Final = 21

Measurement = Literal["nominal", "ordinal", "interval"]


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """The scores from ``low`` to ``high``, in whole steps or continuous."""

    low: float
    high: float
    continuous: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``1-5``, ``-2..2`` (whole numbers) or ``0.0-1.0`` (continuous)."""
        match = _SCALE.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise ParseError(f"`{text}` is not a scale", _HINT)
        low_text, _, high_text = match.groups()
        fractional = ["." in end for end in (low_text, high_text)]
        if any(fractional) != all(fractional):
            hint = "write both ends with decimals (continuous) or both without (whole numbers)"
            raise ParseError(f"the scale `{text}` has decimals at one end only", hint)
        continuous = all(fractional)
        low, high = (float(end) if continuous else int(end) for end in (low_text, high_text))
        if low == high:
            raise ParseError(
                f"the scale `{text}` has only one point", "give it at least two, such as `0-1`"
            )
        if low > high:
            raise ParseError(f"the scale `{text}` runs downwards", "write the lower end first")
        return cls(low=low, high=high, continuous=continuous)

    def __str__(self) -> str:
        """Return the canonical text, which parses back to the same scale."""
        show = fixed if self.continuous else show_number
        return (".." if self.low < 0 else "-").join([show(self.low), show(self.high)])

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest score."""
        return self.low, self.high

    @property
    def span(self) -> float:
        """The distance from low to high."""
        return self.high - self.low

    @property
    def points(self) -> range | None:
        """All scores of a scale in whole steps; None for a continuous one."""
        return None if self.continuous else range(int(self.low), int(self.high) + 1)

    @property
    def measurement(self) -> Measurement:
        """The level of measurement; a scale with two points is nominal."""
        if self.continuous:
            return "interval"
        return "nominal" if self.span == 1 else "ordinal"

    @property
    def as_continuous(self) -> "Scale":
        """The continuous scale with the same ends."""
        return Scale(low=float(self.low), high=float(self.high), continuous=True)

    def contains(self, score: float) -> bool:
        """Return whether ``score`` lies between the ends, on a point or not."""
        return self.low <= score <= self.high

    def accepts(self, score: float) -> bool:
        """Return whether ``score`` is a point of the scale."""
        return self.contains(score) and (self.continuous or score == int(score))

    def clamp(self, score: float) -> float:
        """Return ``score``, limited to the ends of the scale."""
        return min(self.high, max(self.low, score))

    def nearest(self, score: float) -> float:
        """Return the nearest point; if two are equally near, the higher one."""
        return float(score) if self.continuous else math.floor(score + 0.5)

    def normalize(self, score: float) -> float:
        """Return how far up the scale ``score`` is, from 0 to 1."""
        return (score - self.low) / (self.high - self.low)

    def denormalize(self, share: float) -> float:
        """Return the point at ``share`` of the scale; halfway between two, the higher one."""
        exact = self.low + share * self.span
        return round(exact, 6) if self.continuous else self.nearest(exact)

    def distance(self, one: float, other: float) -> float:
        """Return how far two scores are apart, as a share of the scale."""
        return abs(one - other) / self.span

    def bins(self, equal: int) -> "ScoreBins":
        """Return one bin per point, or ``equal`` bins if the scale is continuous or long."""
        points = self.points
        if points is not None and len(points) <= _MOST_POINT_BINS:
            scores = tuple(float(point) for point in points)
            starts = tuple(score - 0.5 for score in scores)
            return ScoreBins(ends=tuple(zip(scores, scores, strict=True)), starts=starts)
        edges = tuple(round(self.low + self.span * step / equal, 9) for step in range(equal + 1))
        return ScoreBins(ends=tuple(pairwise(edges)), starts=edges[:-1])

    def describe(self) -> str:
        """Describe the allowed scores in words."""
        if self.continuous:
            return f"a number from {self.low} to {self.high}"
        return f"a whole number from {show_number(self.low)} to {show_number(self.high)}"

    def schema(self) -> dict[str, object]:
        """Return the JSON schema of a score."""
        kind = "number" if self.continuous else "integer"
        return {"type": kind, "minimum": self.low, "maximum": self.high}

    def read(self, value: object) -> float | str:
        """Return a decoded JSON value as a score, or what is wrong with it.

        Nothing is rounded, clamped or converted: 3.0, "3" and true are not 3.
        """
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"is {_shown(value)}, not {self.describe()}"
        if isinstance(value, float) and not self.continuous:
            return f"is {_shown(value)}, not {self.describe()} without a decimal point"
        if not self.low <= value <= self.high:
            return f"is {_shown(value)}, which is outside the scale: give {self.describe()}"
        return value


UNIT_SCALE: Final = Scale(low=0.0, high=1.0, continuous=True)
"""The scale of overall scores, shares and rates."""


class ScoreBins(msgspec.Struct, frozen=True, kw_only=True):
    """Bins of scores: the ends of each bin, and the score at which it begins."""

    ends: tuple[tuple[float, float], ...]
    starts: tuple[float, ...]

    def place(self, score: float) -> int:
        """Return the index of a score's bin; a score beyond the ends is in the outermost bin."""
        return min(max(bisect_right(self.starts, score) - 1, 0), len(self.starts) - 1)

    def labels(self) -> tuple[str, ...]:
        """Return the name of each bin: a score, or a range of scores."""
        shown = (tuple(show_number(round(end, 6)) for end in ends) for ends in self.ends)
        return tuple(" to ".join(dict.fromkeys(ends)) for ends in shown)


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return "something nested"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def weighted_mean(weights: Sequence[float], values: Iterable[float]) -> float:
    """Return the weighted mean of values."""
    weighted = [weight * value for weight, value in zip(weights, values, strict=True)]
    return sum(weighted) / sum(weights)
