"""Reads the numbers in documents, and formats numbers for tables and sentences."""

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

# Bounded, so that a document can't contain a number with a million digits.
NUMBER = r"[-+]?(?:[0-9]{1,20}(?:\.[0-9]{1,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
_NUMBER = re.compile(NUMBER)
_RANGE = re.compile(rf"({NUMBER})(?:\s*(?:\.\.|-|\u2013)\s*({NUMBER}))?")
_SMALL, _LARGE = 1e-9, 1e15
MISSING: Final = "-"
_CENT: Final = 0.01
_DECIMALS, _SHORT, _COMPARED = 4, 3, 6
_IN_THOUSANDS: Final = 1000
_WHOLE: Final = 100
# Enough digits for any number in a document.
_WIDE = Context(prec=400)


def read_number(text: str) -> float | None:
    """Return a number, an int if written as one; None for other text or if a float loses digits."""
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    # Refuse infinite numbers, and those with more digits than a float keeps.
    if not math.isfinite(value) or Decimal(text) != Decimal(repr(value)):
        return None
    return value if any(mark in text for mark in ".eE") else int(text)


def range_ends(text: str) -> list[str]:
    """Return both ends of a range such as ``0.8-0.9``, one for a number, none for other text."""
    match = _RANGE.fullmatch(text.strip())
    return [] if match is None else [end for end in match.groups() if end]


def show_number(value: float) -> str:
    """Return a short text that parses back to ``value``, without an exponent if possible."""
    if value == int(value) and abs(value) < _LARGE:
        return str(int(value))
    return fixed(value) if _SMALL <= abs(value) < _LARGE else repr(value)


def fixed(value: float) -> str:
    """Return ``value`` exactly, without an exponent."""
    return f"{Decimal(repr(value)):f}"


def decimals_of(text: str) -> int:
    """Return how many decimals a number is written with; 0 if it isn't a number."""
    exponent = Decimal(text).as_tuple().exponent if _NUMBER.fullmatch(text) else 0
    return max(0, -exponent) if isinstance(exponent, int) else 0


def round_half_up(value: float, decimals: int) -> float:
    """Round half up: 0.85 becomes 0.9 at one decimal.

    The value is first rounded to six decimals, because 0.85 may arrive as 0.8499999999999999.
    """
    steady = Decimal(repr(round(value, 6)))
    step = Decimal(1).scaleb(-decimals)
    return float(steady.quantize(step, rounding=ROUND_HALF_UP, context=_WIDE))


def shown(value: float | None) -> str:
    """Format a number for a table: rounded to four decimals, or to one if it is 1000 or more."""
    if value is None:
        return MISSING
    rounded = round(value, 1 if abs(value) >= _IN_THOUSANDS else _DECIMALS)
    # A value too small to show is not shown as zero.
    return show_number(rounded) if rounded or not value else f"{value:.2g}"


def rounded(value: float) -> float:
    """Round a metric for display, half up: to three decimals, or to one if it is 1000 or more."""
    return round_half_up(value, 1 if abs(value) >= _IN_THOUSANDS else _SHORT)


def count_text(value: int | None) -> str:
    """Format a count, with its thousands separated."""
    return MISSING if value is None else f"{value:,}"


def metric_value(name: str, value: float | None) -> str:
    """Format a metric with the decimals of its kind, so that columns align.

    A rate is in percent with one decimal, and a score has three. A time and a number of tokens
    have one, but none from 100, and nothing has any from 1000; counts have none. Thousands of
    counts and of tokens are separated.
    """
    if value is None:
        return MISSING
    if name.endswith("_rate"):
        return f"{100 * rounded(value):.1f}%"
    if isinstance(value, int):
        return count_text(value)
    if name.endswith("_ms") or "tokens" in name or abs(value) >= _IN_THOUSANDS:
        separator = "," if "tokens" in name else ""
        return f"{value:{separator}.{0 if abs(value) >= _WHOLE else 1}f}"
    # A small value has two digits, unless it is too small for the precision of comparisons.
    if near := rounded(value):
        return f"{near:.3f}"
    return short(value) if round(value, _COMPARED) else "0.000"


def written_value(value: float, name: str) -> str:
    """Format a threshold, or an end of an axis, as rubrics write it: a rate in percent."""
    rate = name.endswith("_rate")
    return f"{show_number(round(100 * value, 4))}%" if rate else show_number(value)


def short(value: float | None) -> str:
    """Format a vote, a count or a number on an axis: rounded to three decimals, without zeros."""
    if value is None:
        return MISSING
    return show_number(rounded(value) or float(f"{round(value, _COMPARED):.2g}"))


def metric_change(name: str, value: float | None) -> str:
    """Format the change of a metric with its sign; if it is a rate, in percentage points."""
    text = metric_value(name, value).replace("%", " points")
    return f"{'+' if value is not None and value > 0 else ''}{text}"


def rounding_misleads(value: float, threshold: float) -> bool:
    """Return whether rounding for display moves a value across a threshold."""
    shown_at = rounded(value)
    return (shown_at > threshold, shown_at < threshold) != (value > threshold, value < threshold)


def compared_value(name: str, value: float | None, threshold: float) -> str:
    """Format a metric's value next to its threshold; don't round if that would mislead."""
    if value is None or not rounding_misleads(value, threshold):
        return metric_value(name, value)
    return exact(value)


def dollars(value: float | None) -> str:
    """Return a formatted cost in dollars and cents; a fraction of a cent has two digits."""
    if value is None:
        return "unknown"
    return f"${fixed(float(f'{value:.2g}'))}" if 0 < value < _CENT else f"${value:,.2f}"


def exact(value: float | None) -> str:
    """Return a number at the precision used for comparisons: 0.84999 isn't shown as 0.85."""
    return MISSING if value is None else show_number(round(value, _COMPARED))


def difference(one: float | None, other: float | None) -> float | None:
    """Return the second value minus the first; None if either is missing."""
    if one is None or other is None:
        return None
    # Rounded: in floats, 0.3 - 0.1 is not quite 0.2.
    return round(other - one, 9)


def signed(value: float | None) -> str:
    """Return a difference with its sign."""
    return f"+{shown(value)}" if value is not None and value > 0 else shown(value)
