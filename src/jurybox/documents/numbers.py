"""Numbers as a document writes them."""

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal

# A bounded length keeps a document from making Python work on numbers of a million digits.
NUMBER = r"[-+]?(?:[0-9]{1,20}(?:\.[0-9]{1,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
_NUMBER = re.compile(NUMBER)
_SMALL, _LARGE = 1e-9, 1e15
# Wide enough for any number that a document can hold.
_WIDE = Context(prec=400)


def read_number(text: str) -> float | None:
    """Return the finite number that ``text`` is, an int where it is written as one, else None."""
    if _NUMBER.fullmatch(text) is None:
        return None
    value = float(text)
    # Neither too large to be a number nor so long that it would be rounded.
    if not math.isfinite(value) or Decimal(text) != Decimal(repr(value)):
        return None
    return value if any(mark in text for mark in ".eE") else int(text)


def show_number(value: float) -> str:
    """Return a short text that reads back as ``value``, without an exponent where people can do."""
    if value == int(value) and abs(value) < _LARGE:
        return str(int(value))
    return fixed(value) if _SMALL <= abs(value) < _LARGE else repr(value)


def fixed(value: float) -> str:
    """Return ``value`` to the digit, without an exponent."""
    return f"{Decimal(repr(value)):f}"


def decimals_of(text: str) -> int:
    """Return how many decimals a number is written with; 0 where it is no number."""
    exponent = Decimal(text).as_tuple().exponent if _NUMBER.fullmatch(text) else 0
    return max(0, -exponent) if isinstance(exponent, int) else 0


def round_half_up(value: float, decimals: int) -> float:
    """Round as people do: 0.85 becomes 0.9 at one decimal.

    The value is first brought to six decimals: 0.85 may come as 0.8499999999999999.
    """
    steady = Decimal(repr(round(value, 6)))
    step = Decimal(1).scaleb(-decimals)
    return float(steady.quantize(step, rounding=ROUND_HALF_UP, context=_WIDE))
