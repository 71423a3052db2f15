"""Quantities: numbers with their units, dates and times of day; when two are the same.

A quantity has readings: ``exact`` is what it says, ``loose`` what it may be taken for where the
other text is less definite ("20" for "20 days"), ``implied`` what it says besides (a date its
year). Units of one system convert exactly; between systems ("165 °F", "74 °C") half of the
last written digit is granted, and never more than 5% or one degree.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from jurybox.judging.units import Unit

_LATEST_DAY: Final = 31
_LAST_MONTH: Final = 12
_GRANTED_SHARE: Final = 0.05
_GRANTED_DEGREES: Final = 1.0
# Only what reckoning with fractions loses: 12,345,678 is not 12,345,679.
_SAME: Final = 1e-9


class Reading(msgspec.Struct, frozen=True):
    """A value of some dimension; ``slack`` is half of its last written digit."""

    dimension: str
    value: float
    system: str = ""
    slack: float = 0.0


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A number, as written and as read; a weak one ("one", "a day") may be left out."""

    text: str
    exact: tuple[Reading, ...]
    loose: tuple[Reading, ...] = ()
    implied: tuple[Reading, ...] = ()
    weak: bool = False

    @property
    def kinds(self) -> set[str]:
        """What it is a number of; two literals, such as versions, are of one kind."""
        return {each.dimension.partition(" ")[0] for each in self.exact}


def ordinal(value: float, *, weak: bool) -> Quantity:
    """Return a place in an order, which may be taken for a plain number."""
    exact = (Reading("ordinal", value),)
    return Quantity(text="", exact=exact, loose=(Reading("", value),), weak=weak)


def money(currency: str, value: float) -> Quantity:
    """Return an amount of money; no rate of exchange is known."""
    exact = (Reading(currency, value),)
    return Quantity(text="", exact=exact, loose=(Reading("", value),))


def numeric_date(parts: Sequence[int], *, dotted: bool) -> Quantity:
    """Return the date of "1989-11-09", "9.11.1989" or "9/11/1989"."""
    first, second, third = parts
    if first > _LATEST_DAY:
        return date_of(first, second, third)
    day_first, month_first = date_of(third, second, first), date_of(third, first, second)
    if dotted or first > _LAST_MONTH:
        return day_first
    if second > _LAST_MONTH:
        return month_first
    # 9/11 is the ninth of November or the eleventh of September: both are read.
    return Quantity(
        text="",
        exact=day_first.exact + month_first.exact,
        loose=day_first.loose + month_first.loose,
        implied=day_first.implied + month_first.implied,
    )


def date_of(year: int | None, month: int, day: int | None) -> Quantity:
    """Return a date, or what is given of it."""
    if year is None:
        return Quantity(text="", exact=(Reading("day", 100 * month + (day or 0)),))
    in_month = Reading("month", 100 * year + month)
    in_year = Reading("", year)
    if day is None:
        return Quantity(text="", exact=(in_month,), implied=(in_year,))
    return Quantity(
        text="",
        exact=(Reading("date", 10_000 * year + 100 * month + day),),
        loose=(Reading("day", 100 * month + day),),
        implied=(in_month, in_year),
    )


def measured(value: float, slack: float, units: Sequence[Unit], *, weak: bool) -> Quantity:
    """Return a number with its unit, which may have several senses, or none."""
    plain = Reading("", value)
    if not units:
        return Quantity(text="", exact=(plain,), weak=weak)
    exact = tuple(
        Reading(unit.dimension, value * unit.factor + unit.offset, unit.system, slack * unit.factor)
        for unit in units
    )
    percent = units[0].dimension == "%"
    loose = (plain, Reading("", value / 100)) if percent else (plain,)
    return Quantity(text="", exact=exact, loose=loose, weak=weak)


class Shelf:
    """The readings of many quantities, sorted so that one like another is found at once."""

    def __init__(self, of: Iterable[tuple[Quantity, Sequence[Reading]]]) -> None:
        shelves: dict[str, list[tuple[float, str, float, int]]] = defaultdict(list)
        self._quantities: list[Quantity] = []
        for number, (quantity, readings) in enumerate(of):
            self._quantities.append(quantity)
            for each in readings:
                shelves[each.dimension].append((each.value, each.system, each.slack, number))
        self._shelves = {dimension: sorted(found) for dimension, found in shelves.items()}

    def like(self, readings: Sequence[Reading]) -> Quantity | None:
        """Return a quantity with one of these readings."""
        for each in readings:
            shelf = self._shelves.get(each.dimension, [])
            at = bisect_left(shelf, (each.value - _SAME * abs(each.value),))
            for value, system, slack, number in shelf[max(at - 1, 0) : at + 2]:
                if _agree(each, Reading(each.dimension, value, system, slack)):
                    return self._quantities[number]
        return None


def _agree(one: Reading, other: Reading) -> bool:
    distance = abs(one.value - other.value)
    if distance <= _SAME * max(abs(one.value), abs(other.value)):
        return True
    if one.system == other.system:
        return False
    hot = one.dimension == "temperature"
    most = _GRANTED_DEGREES if hot else _GRANTED_SHARE * abs(one.value)
    return distance <= min(max(one.slack, other.slack), most)
