"""Finds the phrases of a rubric in folded texts, and maps matches back to the original.

Folding unifies case, apostrophes and canonically equal spellings (an accent may be a separate
character), and removes invisible characters such as soft hyphens. Words are separated by one space,
even across line breaks; empty lines are kept, because no phrase continues after one.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Final

import msgspec

from jurybox.rubric.rules import EXCEPT, GAP, Lexicon, Match

_APOSTROPHES = "\u2018\u2019\u201b\u02bc"
_UNSEEN = "\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
_SEEN = re.compile(f"[^{_UNSEEN}]+")
# White space other than a single space, and invisible characters. The pattern begins with a
# character set instead of an alternation, because only then does `re` skip quickly.
_ODD = re.compile(rf"[\s{_UNSEEN}](?:(?<! )|(?=[\s{_UNSEEN}]))[\s{_UNSEEN}]*")
_LINE_BREAK = re.compile("\r\n|[\n\r\v\f\x85\u2028\u2029]")
# A letter with accents as separate characters; at most 30, because sorting more takes long.
_ACCENTED = re.compile(".[\u0300-\u036f]{1,30}")
# Lone surrogates, which other libraries refuse.
_SURROGATE, _REPLACEMENT = re.compile("[\ud800-\udfff]"), "\ufffd"


def count_line_breaks(text: str) -> int:
    """Return the number of line breaks in a text; CR LF counts as one."""
    return len(_LINE_BREAK.findall(text))


class Folded(msgspec.Struct, frozen=True, gc=False):
    """A folded text; ``text`` has one space or one line break between two words.

    ``original`` is the text before folding, with composed accents. ``one_line`` means that it has
    no line breaks and only single spaces. ``removed`` has the position of each removed character,
    in the folded text and in order.
    """

    text: str
    original: str
    one_line: bool
    removed: Sequence[int] = ()

    @property
    def words(self) -> int:
        """The number of words: runs of characters between spaces."""
        return len(self.text.split())

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that corresponds to a span of the folded text."""
        last = end - 1
        return (
            start + bisect_right(self.removed, start),
            last + bisect_right(self.removed, last) + 1,
        )


def fold(text: str) -> Folded:
    """Fold a text."""
    if text.isascii():
        small = text.lower()
        # Most texts have only single spaces, which is quick to check.
        is_tidy = " ".join(small.split()) == small
    else:
        text = _ACCENTED.sub(_composed, _SURROGATE.sub(_REPLACEMENT, text))
        small, is_tidy = _casefolded(text), False
        for apostrophe in _APOSTROPHES:
            small = small.replace(apostrophe, "'")
    if is_tidy or not _ODD.search(small):
        return Folded(small, text, one_line=True)
    return _fold_space(small, text)


def _composed(accented: re.Match[str]) -> str:
    return unicodedata.normalize("NFC", accented[0])


def _casefolded(text: str) -> str:
    folded = text.casefold()
    if len(folded) == len(text):
        return folded
    # Letters that would become two, such as "ß", are kept, since they would shift what follows.
    return "".join(low if len(low := char.casefold()) == 1 else char for char in text)


def _fold_space(small: str, original: str) -> Folded:
    parts: list[str] = []
    removed: list[int] = []
    place = 0
    for match in _ODD.finditer(small):
        start, end = match.span()
        kept = _tidy(match[0])
        parts += small[place:start], kept
        start += len(kept)
        removed += [start - len(removed)] * (end - start)
        place = end
    return Folded("".join([*parts, small[place:]]), original, one_line=False, removed=removed)


def _tidy(odd: str) -> str:
    if odd == "\n":
        return " "
    space = odd if odd.isspace() else "".join(_SEEN.findall(odd))
    if not space:
        return ""
    return "\n" if count_line_breaks(space) > 1 else " "


Hit = tuple[int, int, int]
"""A phrase in a text: its number, its start and its end."""
Found = Mapping[int, list[Hit]]
"""The matches in a text, grouped by the fact that they show, in text order."""

# Scripts without spaces, in which every character may begin a word: Thai, Lao, Burmese, Khmer,
# Chinese and Japanese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)

_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
_WORD = re.compile(r"(?:\([^()]*\)|[^\s(]|\((?![^()]*\)))+")
_ENDS_SENTENCE = re.compile(r"[.!?\n]")
_MOST_IN_GAP = 5  # words
_LONGEST_GAP = 60  # characters


class _Letters(dict[str, bool]):
    def __missing__(self, char: str) -> bool:
        letter = char.isalnum() or unicodedata.category(char).startswith("M")
        self[char] = letter and _UNSPACED.match(char) is None
        return self[char]


IS_LETTER: Final = _Letters()
"""Caches whether a character is part of a word."""


class _Piece:
    """A text in the automaton: the facts that it shows, and the phrase parts that it represents."""

    def __init__(self, text: str, *, whole: bool) -> None:
        self.facts: dict[int, None] = {}
        self.parts: list[tuple[int, int]] = []
        """The numbers of longer phrases, each with the index of this part in it."""
        self.starts_word = IS_LETTER[text[0]]
        self.ends_word = whole and IS_LETTER[text[-1]]


class Phrases:
    """The phrases of lexicons, searched for in one pass; each lexicon shows a fact."""

    def __init__(self, lexicons: Mapping[int, Lexicon]) -> None:
        from ahocorasick_rs import AhoCorasick

        # A phrase matched both as a whole word and as the start of one is in the automaton twice.
        self._known: dict[tuple[str, bool], _Piece] = {}
        self._long: list[tuple[int, int]] = []
        """The fact of each phrase with gaps, and the number of its parts."""
        for fact, lexicon in lexicons.items():
            for phrase in lexicon.phrases:
                self._add(fact, fold(phrase).text.strip(), lexicon.match)
        self._pieces = list(self._known.values())
        self._automaton = AhoCorasick([text for text, _ in self._known])

    def _add(self, fact: int, phrase: str, match: Match) -> None:
        if not phrase:
            return  # only invisible characters
        if match != "pattern":
            self._piece(phrase, whole=match == "whole-word").facts[fact] = None
            return
        # Matches of an exception are stored under the negative number of the fact.
        fact = -fact if phrase.startswith(EXCEPT) else fact
        parts = phrase.removeprefix(EXCEPT).split(GAP)
        for number, part in enumerate(parts):
            for spelling in _spelled(part):
                piece = self._piece(spelling, whole=True)
                if len(parts) == 1:
                    piece.facts[fact] = None
                else:
                    piece.parts.append((len(self._long), number))
        self._long.append((fact, len(parts)))

    def _piece(self, text: str, *, whole: bool) -> _Piece:
        return self._known.setdefault((text, whole), _Piece(text, whole=whole))

    def find(self, text: str) -> Found:
        """Return the matches in a folded text."""
        found: defaultdict[int, list[Hit]] = defaultdict(list)
        parts: defaultdict[int, dict[int, list[Hit]]] = defaultdict(dict)
        for hit in self._automaton.find_matches_as_indexes(text, overlapping=True):
            index, start, end = hit
            piece = self._pieces[index]
            if piece.starts_word and start:
                before = text[start - 1]
                if IS_LETTER[before] or (before == "'" and _is_tail(text, start)):
                    continue
            if piece.ends_word and end < len(text) and IS_LETTER[text[end]]:
                continue
            for fact in piece.facts:
                found[fact].append(hit)
            for phrase, number in piece.parts:
                parts[phrase].setdefault(number, []).append(hit)
        for phrase, hits in parts.items():
            fact, count = self._long[phrase]
            if len(hits) == count and (joined := _join(text, hits)):
                found[fact] = sorted([*found[fact], *joined], key=itemgetter(2))
        if found and min(found) < 0:
            _take_back(found)
        return found


def _join(text: str, parts: dict[int, list[Hit]]) -> list[Hit]:
    """Return the places where the parts of a phrase follow one another, with gaps between them."""
    joined = parts[0]
    for number in range(1, len(parts)):
        starts = {end: start for _, start, end in joined}
        ends = sorted(starts)
        # Each part is joined to the nearest one before it.
        joined = [
            (index, starts[ends[place - 1]], end)
            for index, start, end in parts[number]
            if (place := bisect_right(ends, start)) and _is_gap(text, ends[place - 1], start)
        ]
    return joined


def _take_back(found: dict[int, list[Hit]]) -> None:
    """Drop matches that an exception of the same lexicon covers."""
    for fact in [fact for fact in found if fact < 0]:
        exceptions = found.pop(fact)
        hits = found.pop(-fact, [])
        # Linear in the number of matches: first collect the positions that exceptions cover.
        covered = set[int]()
        for _, start, end in exceptions:
            covered.update(range(start, end))
        kept = [hit for hit in hits if covered.isdisjoint(range(hit[1], hit[2]))]
        if kept:
            found[-fact] = kept


def _spelled(part: str) -> Iterable[str]:
    """Return the spellings of a part of a phrase: its choices, with and without apostrophes."""
    combined = [""]
    for words in map(_choices, _WORD.findall(part)):
        combined = [f"{one} {other}".strip() for one in combined for other in words]
    spelled = ((phrase, phrase.replace("'", "")) for phrase in combined if phrase)
    return dict.fromkeys(chain.from_iterable(spelled))


def _choices(word: str) -> list[str]:
    """Return the choices for a word: itself, or those in brackets; "(am|feel)" gives two."""
    choice = _CHOICE.search(word)
    if choice is None:
        return [word]
    before, after = word[: choice.start()], word[choice.end() :]
    return [each for one in choice[1].split("|") for each in _choices(f"{before}{one}{after}")]


def _is_gap(text: str, start: int, end: int) -> bool:
    """Whether at most a few words of one sentence separate two positions."""
    if not 0 <= end - start <= _LONGEST_GAP:
        return False
    between = text[start:end]
    return len(between.split()) <= _MOST_IN_GAP and _ENDS_SENTENCE.search(between) is None


def _is_tail(text: str, start: int) -> bool:
    """Whether the text at ``start``, after an apostrophe, ends a contraction (such as "it's")."""
    within = start > 1 and IS_LETTER[text[start - 2]]
    return within and not all(IS_LETTER[char] for char in text[start : start + 3].ljust(3))
