"""How many of a text's content words and numbers another text has, in whatever form.

It tells what was left out. It doesn't tell right from wrong: a wrong answer may use all the words
of the right one.
"""

import re
from typing import Final

_TOKEN: Final = re.compile(r"\d[\d,]*(?:\.\d+)?|[^\W\d_]+(?:'[a-z]+)?")
_SMALL: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen twenty"
)
_NUMBERS: Final = {word: float(number) for number, word in enumerate(_SMALL.split())} | {
    "thirty": 30.0,
    "forty": 40.0,
    "fifty": 50.0,
    "sixty": 60.0,
    "seventy": 70.0,
    "eighty": 80.0,
    "ninety": 90.0,
    "hundred": 100.0,
    "thousand": 1000.0,
    "half": 0.5,
    "once": 1.0,
    "twice": 2.0,
    "first": 1.0,
    "second": 2.0,
    "third": 3.0,
    "dozen": 12.0,
}
_FUNCTION_WORDS: Final = frozenset(
    """
    a an the is are was were be been being do does did has have had of in on at to for from by with
    and or but as it its this that these those they them their he she his her you your we our i my
    not no nor so than then there which who whom what when where why how if while also only just
    about into over under up down out off can could may might must shall should will would very
    more most some any all each both between ones
    """.split()  # noqa: SIM905 - words read best as words
)
_ENDINGS: Final = ("ingly", "edly", "ing", "ied", "ies", "'s", "ed", "ly", "es", "er", "est", "s")
_SHORTEST_STEM: Final = 3
_SURE: Final = 5
_LIKELY: Final = 4

Word = str | float


def content(text: str) -> tuple[Word, ...]:
    """Return the stems of the content words and the numbers of a text, in order."""
    found: list[Word] = []
    plain = text.replace("\u2019", "'").replace("-", " ").lower()
    for match in _TOKEN.finditer(plain):
        word = match[0]
        if word[0].isdecimal():
            found.append(float(word.replace(",", "").rstrip(".")))
        elif word in _NUMBERS:
            found.append(_NUMBERS[word])
        elif word not in _FUNCTION_WORDS:
            found.append(_stem(word))
    return tuple(found)


class Vocabulary:
    """The content of a text, ready to be looked up."""

    def __init__(self, text: str) -> None:
        words = content(text)
        stems = [word for word in words if isinstance(word, str)]
        self._exact = frozenset(words)
        self._sure = frozenset(stem[:_SURE] for stem in stems if len(stem) >= _SURE)
        self._likely = frozenset(stem[:_LIKELY] for stem in stems if len(stem) >= _LIKELY)
        self._short = frozenset(stem[:_LIKELY] for stem in stems if _LIKELY <= len(stem) <= _SURE)

    def coverage(self, statement: str) -> float:
        """Return the share of a statement's content that is in the text, from 0 to 1."""
        wanted = content(statement)
        return sum(map(self._has, wanted)) / len(wanted) if wanted else 1.0

    def _has(self, word: Word) -> bool:
        """Tell whether the text has a word in whatever form: forms share their first letters."""
        if word in self._exact:
            return True
        if not isinstance(word, str) or len(word) < _LIKELY:
            return False
        # Four letters are enough where one of the two is hardly longer.
        likely = self._likely if len(word) <= _SURE else self._short
        return word[:_LIKELY] in likely or (len(word) >= _SURE and word[:_SURE] in self._sure)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word[: -len(ending)].rstrip("e")
    return word.rstrip("e") if len(word) > _SHORTEST_STEM else word
