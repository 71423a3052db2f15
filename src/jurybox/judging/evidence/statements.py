"""Splitting a text into statements that can be checked one at a time.

A small model can't tell whether an answer holds all of a reference, but it can tell whether the
answer says one thing. So a text is cut into sentences, and a sentence where a new clause begins.
A piece keeps the word that gives it its sense ("unless", "not", "which"); only words that merely
join two statements are dropped.
"""

import re
from collections.abc import Iterator
from typing import Final

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
