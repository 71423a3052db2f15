"""Pass rules and gates: a name, an operator and a number.

The texts are parsed here and never evaluated as code, so a document can't run anything.
"""

import operator
import re
from collections.abc import Callable
from typing import Final, Self

import msgspec

from jurybox.documents.numbers import read_number, show_number
from jurybox.errors import ParseError

OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}

LONGEST: Final = 200
"""The longest comparison or formula; it bounds the time to parse one."""

_SHAPE = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*([^\sA-Za-z0-9_.+-]+)\s*([^\s<>=!]\S*)\s*")
_DECIMALS = 6
_MEANT = {
    "=": "==",
    "=>": ">=",
    "=<": "<=",
    "\u2265": ">=",
    "\u2264": "<=",
    "\u2260": "!=",
    "<>": "!=",
}


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """``name operator number``, such as ``pass_rate >= 0.85``."""

    name: str
    operator: str
    number: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read one comparison.

        Raises:
            ParseError: the text is anything else.

        """
        match = _SHAPE.fullmatch(text) if len(text) <= LONGEST else None
        if match is None:
            hint = "write a name, an operator and a number, such as `overall >= 0.6`"
            raise ParseError(f"`{text}` is not a comparison", hint)
        name, sign, number_text = match.groups()
        if sign not in OPERATORS:
            known = f"`{_MEANT[sign]}`" if sign in _MEANT else "one of " + ", ".join(OPERATORS)
            raise ParseError(f"`{sign}` is not an operator", f"use {known}")
        number = read_number(number_text)
        if number is None:
            percent = read_number(number_text.removesuffix("%"))
            hint = (
                "use a plain number" if percent is None else f"write {show_number(percent / 100)}"
            )
            raise ParseError(f"`{number_text}` is not a number", hint)
        if number != round(number, _DECIMALS):
            problem = f"`{number_text}` has more than {_DECIMALS} decimals"
            raise ParseError(problem, "shorten it: values are rounded to that many")
        return cls(name=name, operator=sign, number=number)

    def __str__(self) -> str:
        """Return the canonical text."""
        return f"{self.name} {self.operator} {show_number(self.number)}"

    def passes(self, value: float | None) -> bool:
        """Compare ``value``, rounded to six decimals so that 0.7 never fails as 0.6999999 (C10).

        A missing value never passes, so an unscored sample passes no rule.
        """
        if value is None:
            return False
        return OPERATORS[self.operator](round(value, _DECIMALS), self.number)

    @property
    def upward(self) -> bool | None:
        """Whether more is better; None for ``==`` and ``!=``."""
        return {">": True, ">=": True, "<": False, "<=": False}.get(self.operator)

    def margin(self, value: float | None) -> float | None:
        """Return the margin by which a value passes; negative if it fails."""
        if value is None or self.upward is None:
            return None
        above = value - self.number
        return round(above if self.upward else -above, _DECIMALS)
