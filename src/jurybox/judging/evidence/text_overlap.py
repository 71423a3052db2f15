"""Splits a text into statements, and measures how many of their words another text has."""

import re
from collections.abc import Iterator
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


# Where a sentence may end: at its mark, at a semicolon, at a new line.
_ENDS: Final = re.compile(r"(?<=[.!?])[\"')\]\u2019\u201d]*\s+|;\s+|\n\s*")
_LAST_WORD: Final = re.compile(r"([\w.]+)\.[\"')\]\u2019\u201d]*$")
_ABBREVIATIONS: Final = frozenset(
    """
    a.m approx co dr e.g etc fig i.e inc jr ltd mr mrs ms no p p.m pp prof sr st u.k u.s vs
    """.split()  # noqa: SIM905 - words read best as words
)
_BLANKS: Final = re.compile(r"[^\S\n]+")
_NUMBERED: Final = re.compile(r"\s*\d{1,3}\.")
_MARKER: Final = re.compile(r"^\s*(?:[-*\u2022#>]+|\d{1,3}[.)])\s+")

_JOINING: Final = frozenset({"and", "but", "so", "while", "whereas", "then"})
_VERBS: Final = "is|are|was|were|has|have|had|can|must|may|should|will|does|do|did"
_STARTS: Final = "the|it|they|he|she|a|an|its|their|not|in|on|at|from|to|by|then|only"
_CLAUSES: Final = re.compile(
    r",?\s+(?P<word>but|while|whereas|although|though|unless|except|because|so\sthat|which"
    r"|provided\sthat)\s+"
    r"|,\s+(?P<after>and|so|with|not|or|then)\s+"
    rf"|\s+(?P<plain>and)\s+(?=(?:{_VERBS}|{_STARTS}|\w+s|\w+ed)\s)",
    re.IGNORECASE,
)
_EDGES: Final = " \t,.;:"
_LONGEST_ABBREVIATION: Final = 16
_NEAR: Final = 200

FEWEST_WORDS: Final = 3
"""A piece with fewer words says nothing by itself, so it stays with its neighbour."""

MOST: Final = 8
"""More statements than these are asked together with their neighbours: each costs a reading."""


def statements(text: str, most: int = MOST) -> tuple[str, ...]:
    """Return what a text says, piece by piece, at most ``most`` of them."""
    pieces = [piece for sentence in sentences(text) for piece in _clauses(sentence)]
    return tuple(_merged(pieces, most))


def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text, without the marks of lists."""
    found: list[str] = []
    start = 0
    text = _BLANKS.sub(" ", text)
    for end in _ENDS.finditer(text):
        # No more than an abbreviation could be: a text may be nothing but full stops.
        last = text[max(start, end.start() - _LONGEST_ABBREVIATION) : end.start()]
        is_mark = end[0].strip(" ") != ";" and "\n" not in end[0]
        if is_mark and (_is_abbreviation(last) or _NUMBERED.fullmatch(last)):
            continue
        found.append(text[start : end.start()])
        start = end.end()
    found.append(text[start:])
    bare = (_MARKER.sub("", piece).strip() for piece in found)
    return tuple(piece for piece in bare if any(letter.isalnum() for letter in piece))


def _is_abbreviation(piece: str) -> bool:
    last = _LAST_WORD.search(piece)
    if last is None:
        return False
    word = last[1]
    return word.lower().rstrip(".") in _ABBREVIATIONS or (len(word) == 1 and word.isupper())


def _clauses(sentence: str) -> Iterator[str]:
    start = 0
    for joint in _CLAUSES.finditer(sentence):
        # No more of a long sentence than it takes to count a few words.
        near = sentence[max(start, joint.start() - _NEAR) : joint.start()]
        after = sentence[joint.end() : joint.end() + _NEAR]
        if min(len(near.split()), len(after.split())) < FEWEST_WORDS:
            continue
        yield sentence[start : joint.start()].strip(_EDGES)
        word = next(each for each in joint.groups() if each)
        kept = word.lower() not in _JOINING
        start = joint.start() + joint[0].index(word) if kept else joint.end()
    yield sentence[start:].strip(_EDGES)


def _merged(pieces: list[str], most: int) -> Iterator[str]:
    """Join neighbours until there are few enough, as evenly as it goes."""
    groups = min(len(pieces), most)
    for group in range(groups):
        first, last = group * len(pieces) // groups, (group + 1) * len(pieces) // groups
        yield "; ".join(pieces[first:last])
