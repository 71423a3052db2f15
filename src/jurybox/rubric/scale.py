"""The scale a criterion is scored on."""

import json
import math
import re
from typing import Self

import msgspec

from jurybox.documents.numbers import fixed, show_number
from jurybox.errors import Unreadable

_END = r"(-?[0-9]{1,9}(?:\.[0-9]{1,9})?)"
_SCALE = re.compile(rf"\s*{_END}\s*(\.\.|-|\u2013)\s*{_END}\s*")
_LONGEST = 60
_MEND = "write it as `1-5` (whole numbers) or `0.0-1.0` (continuous)"


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """From ``low`` to ``high``, in whole steps or continuous."""

    low: float
    high: float
    continuous: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``1-5``, ``-2..2`` (whole numbers) or ``0.0-1.0`` (continuous).

        Raises:
            Unreadable: the text is no scale, or a scale with fewer than two points.

        """
        match = _SCALE.fullmatch(text) if len(text) <= _LONGEST else None
        if match is None:
            raise Unreadable(f"`{text}` is not a scale", _MEND)
        low_text, _, high_text = match.groups()
        fractional = ["." in end for end in (low_text, high_text)]
        if any(fractional) != all(fractional):
            hint = "write both ends with decimals (continuous) or both without (whole numbers)"
            raise Unreadable(f"the ends of the scale `{text}` are of two kinds", hint)
        continuous = all(fractional)
        low, high = (float(end) if continuous else int(end) for end in (low_text, high_text))
        if low == high:
            raise Unreadable(
                f"the scale `{text}` has only one point", "give it at least two, such as `0-1`"
            )
        if low > high:
            raise Unreadable(f"the scale `{text}` runs downwards", "write the lower end first")
        return cls(low=low, high=high, continuous=continuous)

    def __str__(self) -> str:
        """Return the canonical text, which parses back to the same scale."""
        show = fixed if self.continuous else show_number
        return (".." if self.low < 0 else "-").join([show(self.low), show(self.high)])

    def accepts(self, score: float) -> bool:
        """Tell whether ``score`` is a point of the scale."""
        within = self.low <= score <= self.high
        return within and (self.continuous or score == int(score))

    def share(self, score: float) -> float:
        """Return how far up the scale ``score`` is, from 0 to 1."""
        return (score - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """Return the point that is ``share`` of the way up; half-way between two goes up."""
        exact = self.low + share * (self.high - self.low)
        return round(exact, 6) if self.continuous else math.floor(exact + 0.5)

    def describe(self) -> str:
        """Say in words which scores there are."""
        if self.continuous:
            return f"a number from {self.low} to {self.high}"
        return f"a whole number from {show_number(self.low)} to {show_number(self.high)}"

    def schema(self) -> dict[str, object]:
        """Return the JSON schema of a score."""
        kind = "number" if self.continuous else "integer"
        return {"type": kind, "minimum": self.low, "maximum": self.high}

    def problem_with(self, value: object) -> str | None:
        """Say why a decoded JSON value is no score of this scale; None where it is one.

        Nothing is rounded, clamped or converted (E5): 3.0, "3" and true are not 3.
        """
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return f"is {_shown(value)}, not {self.describe()}"
        if isinstance(value, float) and not self.continuous:
            return f"is {_shown(value)}, not {self.describe()} without a decimal point"
        if not self.low <= value <= self.high:
            return f"is {_shown(value)}, which is outside the scale: give {self.describe()}"
        return None


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return "something nested"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
