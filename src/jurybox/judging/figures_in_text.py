"""Reading words, signs and quantities off a text, in one pass."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import msgspec

from jurybox.judging.quantities import (
    Quantity,
    Reading,
    date_of,
    measured,
    money,
    numeric_date,
    ordinal,
)
from jurybox.judging.units import (
    CURRENCIES,
    DEGREES,
    MONTHS,
    ORDINALS,
    PARTS,
    POWERS,
    SCALES,
    SMALL,
    TENS,
    TIMES,
    UNITS,
    Unit,
)

_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTER: Final = rf"[^\W\d_{_CJK}]"


@cache  # to compile it takes longer than most commands have, and few need it
def _token() -> re.Pattern[str]:
    return re.compile(
        r"(?P<date>(?<![\d.,/-])(?:\d{4}-\d{1,2}-\d{1,2}|\d{1,2}([./])\d{1,2}\2\d{4})(?![\d/-]))"
        r"|(?P<clock>(?<![\d:])\d{1,2}:[0-5]\d(?![\d:]))"
        r"|(?P<number>\d+(?:[.,]\d+)*)"
        rf"|(?P<noon>[ap]\.m\b\.?|[ap]m\b)"
        rf"|(?P<word>{_LETTER}(?:[^\W{_CJK}]*[^\W_{_CJK}])?(?:'{_LETTER}+)*)"
        rf"|(?P<sign>[^\S\n]*\n\s*|[^\s\w]|[{_CJK}]|_)",
        re.IGNORECASE,
    )


_ENGLISH: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_EUROPEAN: Final = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}|\d+,\d{1,2}")
_SPLIT_DATE: Final = re.compile(r"[-./]")
_LONGEST: Final = 30
# "m" and "bn" are millions and billions only behind a currency; elsewhere "m" is a metre.
_SHORT: Final = 2
_LATEST_DAY: Final = 31
_HALF_A_DAY: Final = 720
_YEAR_DIGITS: Final = 4
_AFTER_INCHES: Final = frozenset(["long", "wide", "tall", "high", "deep", "thick", "across", "in"])
_STARTS: Final = frozenset(
    {"-", "+", "a", "an", "half", "hundred", "dozen", "thousand"}
    | CURRENCIES.keys()
    | MONTHS.keys()
    | ORDINALS.keys()
    | SMALL.keys()
    | TENS.keys()
    | TIMES.keys()
)
_CAPITAL: Final = frozenset({"c", "f", "may", "march"})


class Token(msgspec.Struct, frozen=True):
    """A word, a sign or a number, and where it stands."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """The text without regard to case."""
        return self.text.casefold()


_END: Final = Token("end", "", -1, -1)


def read(text: str) -> Iterator[Token | Quantity]:
    """Yield the words, signs and quantities of a text in their order."""
    reader = _Reader(text)
    while reader.at < len(reader.tokens):
        quantity = reader.quantity()
        if quantity is None:
            yield reader.tokens[reader.at]
            reader.at += 1
        else:
            yield quantity


class _Reader:
    """Reads quantities off the tokens; each method moves on only where it finds something."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [
            Token(match.lastgroup or "", match[0], match.start(), match.end())
            for match in _token().finditer(text)
        ]
        self.at = 0

    def quantity(self) -> Quantity | None:
        first = self._token()
        begun = self.at
        # Most words and signs begin no quantity, and a long text has many of them.
        if first.kind in {"word", "sign", "noon"} and first.name not in _STARTS:
            return None
        for reading in (self._date, self._clock, self._amount):
            found = reading()
            if found is not None:
                shown = self.text[first.start : self.tokens[self.at - 1].end]
                return msgspec.structs.replace(found, text=" ".join(shown.split()))
            self.at = begun
        return None

    def _token(self, ahead: int = 0) -> Token:
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else _END

    def _take(self, *names: str) -> bool:
        if self._token().name in names:
            self.at += 1
            return True
        return False

    def _touches(self) -> bool:
        """Whether the token stands at the one before it, without a space."""
        return self.at > 0 and self.tokens[self.at - 1].end == self._token().start

    def _date(self) -> Quantity | None:
        first = self._token()
        if first.kind == "date":
            self.at += 1
            parts = [int(part) for part in _SPLIT_DATE.split(first.text)]
            return numeric_date(parts, dotted="." in first.text)
        day = self._day()
        if day is not None:
            self._take("of")
        month = self._month()
        if month is None:
            return None
        if day is None:
            day = self._day()
        comma = self._take(",")
        year = self._year()
        if comma and year is None:
            self.at -= 1
        if day is None and year is None:
            return None
        return date_of(year, month, day)

    def _day(self) -> int | None:
        token = self._token()
        plain = token.kind == "number" and token.text.isdecimal() and len(token.text) <= _SHORT
        if not plain or not 1 <= int(token.text) <= _LATEST_DAY:
            return None
        self.at += 1
        if self._touches():
            self._take("st", "nd", "rd", "th")
        return int(token.text)

    def _month(self) -> int | None:
        token = self._token()
        month = MONTHS.get(token.name)
        if month is None or (token.name in _CAPITAL and not token.text[0].isupper()):
            return None
        self.at += 1
        if month and len(token.text) <= 4 and self._touches():  # noqa: PLR2004 - "Sept."
            self._take(".")
        return month

    def _year(self) -> int | None:
        token = self._token()
        if token.kind == "number" and token.text.isdecimal() and len(token.text) == _YEAR_DIGITS:
            self.at += 1
            return int(token.text)
        return None

    def _clock(self) -> Quantity | None:
        token = self._token()
        if token.kind == "clock":
            hour, minute = (int(part) for part in token.text.split(":"))
        elif token.text.isdecimal() and len(token.text) <= _SHORT and self._token(1).kind == "noon":
            hour, minute = int(token.text), 0
        else:
            return None
        self.at += 1
        minutes = 60 * hour + minute
        noon = self._token()
        if noon.kind != "noon":
            return Quantity(text="", exact=(Reading("clock", minutes),))
        self.at += 1
        minutes = minutes % _HALF_A_DAY + (_HALF_A_DAY if noon.name[0] == "p" else 0)
        return Quantity(text="", exact=(Reading("clock", minutes),))

    def _amount(self) -> Quantity | None:
        sign = self._sign()
        currency = CURRENCIES.get(self._token().name)
        if currency is not None:
            self.at += 1
            sign = sign or self._sign()
        token = self._token()
        if token.name in ORDINALS and currency is None:
            self.at += 1
            # "First" and "second" often only count the sentences.
            return ordinal(ORDINALS[token.name], weak=token.name in {"first", "second"})
        number = self._digits() if token.kind == "number" else self._words()
        if number is None:
            return None
        value, slack, weak = number
        if isinstance(value, str):
            return Quantity(text="", exact=(Reading(f"literal {value}", 0.0),))
        value, slack = self._scaled(value, slack, short=currency is not None)
        value = -value if sign == "-" else value
        if currency is not None:
            return money(currency, value)
        return self._ordered(value, token) or self._with_unit(value, slack, weak=weak)

    def _ordered(self, value: float, token: Token) -> Quantity | None:
        if token.kind == "number" and self._touches() and self._take("st", "nd", "rd", "th"):
            return ordinal(value, weak=False)
        return None

    def _sign(self) -> str:
        token = self._token()
        # "7-6" and "1914-1918" are no negative numbers.
        joins = self._touches() and self.tokens[self.at - 1].kind in {"number", "word", "date"}
        follows = self._token(1).start == token.end
        if token.text in {"-", "+"} and follows and not joins:
            self.at += 1
            return token.text
        return ""

    def _digits(self) -> tuple[float | str, float, bool] | None:
        token = self._token()
        self.at += 1
        value = _value(token.text)
        if value is None:
            return token.text, 0.0, False
        fraction = self._fraction()
        if fraction is not None and self._touches_slash(token):
            return fraction, 0.0, False
        decimals = len(token.text.rpartition(".")[2]) if "." in token.text else 0
        return value + (fraction or 0.0), 0.5 * 10.0**-decimals, False

    def _touches_slash(self, token: Token) -> bool:
        return self.text[token.end : token.end + 1] == "/"

    def _fraction(self) -> float | None:
        """Read what makes "1/2" of "1", or "2 1/2" of "2"."""
        last = self.tokens[self.at - 1]
        parts = [last, *(self._token(ahead) for ahead in range(3))]
        for start, used in ((0, 2), (1, 3)):
            over, slash, under = (*parts, _END)[start : start + 3]
            whole = over.text.isdecimal() and under.text.isdecimal()
            close = over.end == slash.start and slash.end == under.start
            small = len(over.text) <= _SHORT and len(under.text) <= _SHORT + 1
            if slash.text == "/" and whole and close and small and int(under.text):
                self.at += used
                return int(over.text) / int(under.text)
        return None

    def _words(self) -> tuple[float, float, bool] | None:
        """Read "two hundred and fifty", "half", "a dozen", "an" before a unit."""
        token = self._token()
        begun = self.at
        if self._take("half"):
            if self._take("a", "an") and not self._unit_ahead():
                self.at -= 1
            return 0.5, 0.0, False
        article = self._take("a", "an")
        if token.name in TIMES:
            self.at += 1
            return TIMES[token.name], 0.0, True
        whole = self._whole()
        part = self._part(1.0 if whole is None else whole)
        if part is not None and (article or whole is not None):
            return part, 0.0, False
        if whole is not None:
            return whole, 0.5, self.at - begun == 1 and token.name == "one"
        return (1.0, 0.5, True) if article and self._unit_ahead() else None

    def _part(self, over: float) -> float | None:
        hyphen = self._token().text == "-"
        under = PARTS.get(self._token(1 if hyphen else 0).name)
        if under is None:
            return None
        self.at += 2 if hyphen else 1
        return over / under

    def _whole(self) -> float | None:
        """Read number words, each kind only where it may follow the one before it."""
        total, current, last = 0.0, 0.0, ""
        while True:
            joined = bool(last) and self._token().name in {"-", "and"}
            name = self._token(1 if joined else 0).name
            if name in SMALL and last in {"", "tens", "hundred", "scale"}:
                current, kind = current + SMALL[name], "small"
            elif name in TENS and last in {"", "hundred", "scale"}:
                current, kind = current + TENS[name], "tens"
            elif name == "dozen" and not joined and last in {"", "small"}:
                current, kind = 12 * (current or 1.0), "dozen"
            elif name == "hundred" and not joined and last in {"", "small", "tens"}:
                current, kind = 100 * (current or 1.0), "hundred"
            elif name in SCALES and not joined and len(name) > _SHORT and last not in {"", "scale"}:
                total, current, kind = total + current * SCALES[name], 0.0, "scale"
            else:
                return total + current if last else None
            # "Twenty and five" are two numbers.
            if joined and self._token().name == "and" and last == "tens":
                return total + current - SMALL.get(name, 0.0)
            self.at += 2 if joined else 1
            last = kind

    def _scaled(self, value: float, slack: float, *, short: bool) -> tuple[float, float]:
        token = self._token()
        scale = SCALES.get(token.name, 1.0)
        if scale == 1.0 or (len(token.text) <= _SHORT and not short):
            return value, slack
        self.at += 1
        return value * scale, slack * scale

    def _unit_ahead(self) -> bool:
        begun = self.at
        found = self._unit() is not None
        self.at = begun
        return found

    def _with_unit(self, value: float, slack: float, *, weak: bool) -> Quantity:
        begun = self.at
        if self._token().text == "-" and self._touches():
            self.at += 1
        units = self._unit()
        if units is None:
            self.at = begun
        return measured(value, slack, units or (), weak=weak)

    def _unit(self) -> tuple[Unit, ...] | None:
        begun = self.at
        degree = self._take("\u00b0", "degree", "degrees")
        token = self._token()
        if degree and token.name in DEGREES:
            self.at += 1
            return (DEGREES[token.name],)
        power = 2 if self._take("square", "sq") else 3 if self._take("cubic") else 1
        token = self._token()
        # Only where a capital says so is a lone letter a temperature.
        units = (DEGREES[token.name],) if token.text in {"C", "F"} else UNITS.get(token.name)
        if degree or units is None or (token.name == "in" and not self._is_inches()):
            self.at = begun
            return None
        self.at += 1
        if units[0].dimension == "length":
            return self._raised(units[0], power, token)
        if token.name == "per" and not self._take("cent"):
            self.at = begun
            return None
        return units

    def _raised(self, unit: Unit, power: int, token: Token) -> tuple[Unit, ...]:
        """Read what follows a length: a power, or the time of a speed."""
        slash = self._token().text == "/" or self._token().name == "per"
        time = {"h": 3600.0, "hour": 3600.0, "s": 1.0, "second": 1.0}.get(self._token(1).name)
        if slash and time is not None:
            self.at += 2
            return (Unit("speed", unit.factor / time, unit.system),)
        if self._token().text == "^" and self._token(1).text in {"2", "3"} and self._touches():
            power = int(self._token(1).text)
            self.at += 2
        elif token.name[-1] in "23":
            power = int(token.name[-1])
        name = POWERS[power - 1]
        return (Unit(name, unit.factor**power, unit.system),)

    def _is_inches(self) -> bool:
        follower = self._token(1)
        return follower.kind in {"sign", "end"} or follower.name in _AFTER_INCHES


def _value(text: str) -> float | None:
    """Return a number with separators; None for what is none, such as a version."""
    if len(text) > _LONGEST:
        return None
    if _ENGLISH.fullmatch(text):
        return float(text.replace(",", ""))
    if _EUROPEAN.fullmatch(text):
        return float(text.replace(".", "").replace(",", "."))
    return float(text) if "," not in text and text.count(".") <= 1 else None
