"""Many phrases, looked up in one pass over a text (C8).

A phrase begins at the start of a word and may end within one; or it is a whole word. Words are
letters, digits and their marks: a hyphen, an underscore, an emoji or a quotation mark ends one. So
does an apostrophe, which is how a whole word is found in its contractions ("I'm"); but the one or
two letters that follow it are a tail and no word ("you're", "Hawai'i").

A pattern is whole words too. Its contractions are also found cut off ("do n't") or without their
apostrophe, its gap stands for a few words of the same sentence, and a choice in brackets for each
of its words. An exception takes back what overlaps with it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from jurybox.rubric.rules import EXCEPT, GAP, Match, Source
from jurybox.scoring.rules.case_folding import fold

Hit = tuple[int, int, int]
"""A phrase in a text: its number, its start and its end."""
Found = Mapping[int, list[Hit]]
"""Where a text has the phrases that show a fact, by fact and in the order of the text."""

# Scripts without spaces, in which every character may begin a word: Thai, Lao, Burmese, Khmer,
# Chinese and Japanese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)

_CONTRACTION = re.compile(r"(?<=\w)(n't|'(?:s|m|d|t|re|ve|ll))(?![a-z])")
_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
_WORD = re.compile(r"(?:\([^()]*\)|[^\s(]|\((?![^()]*\)))+")
_MOST_COMBINED = 200  # ways to say a part of a phrase
_ENDS_SENTENCE = re.compile(r"[.!?\n]")
_MOST_IN_GAP = 5  # words
_LONGEST_GAP = 60  # characters


class _Letters(dict[str, bool]):
    def __missing__(self, char: str) -> bool:
        letter = char.isalnum() or unicodedata.category(char).startswith("M")
        self[char] = letter and _UNSPACED.match(char) is None
        return self[char]


IS_LETTER: Final = _Letters()
"""Whether a character makes one word with its neighbours, for all characters ever looked at."""


class Group(NamedTuple):
    """Phrases that show a fact where they are in a text."""

    fact: int
    text: Source
    phrases: tuple[str, ...]
    match: Match = "word-start"


class _Part(NamedTuple):
    """A part of a phrase in all its spellings; ``close`` where it follows the one before at once.

    A phrase is cut into such parts where all combinations of its choices would be too many.
    """

    spellings: tuple[str, ...]
    close: bool


class _Piece:
    """A piece of text in the automaton: the facts that it shows, and the parts that it is."""

    def __init__(self, text: str, *, whole: bool) -> None:
        self.facts: dict[int, None] = {}
        self.parts: list[tuple[int, int]] = []
        """The numbers of longer phrases, and which of their parts it is."""
        self.starts_word = IS_LETTER[text[0]]
        self.ends_word = whole and IS_LETTER[text[-1]]


class Phrases:
    """Groups of phrases, those for each text in an Aho-Corasick automaton of their own."""

    def __init__(self, groups: Iterable[Group]) -> None:
        sorted_out: dict[Source, list[Group]] = {}
        for group in groups:
            sorted_out.setdefault(group.text, []).append(group)
        self._lookups = {text: _Lookup(each) for text, each in sorted_out.items()}

    def find(self, text: str, source: Source) -> Found:
        """Return where a folded text has the phrases that rules look for in it."""
        lookup = self._lookups.get(source)
        return lookup.find(text) if lookup else {}


class _Lookup:
    """The phrases that are looked for in one text."""

    def __init__(self, groups: Iterable[Group]) -> None:
        from ahocorasick_rs import AhoCorasick

        # A phrase that is looked up in both ways is in the automaton twice.
        self._known: dict[tuple[str, bool], _Piece] = {}
        self._long: list[tuple[int, list[bool]]] = []
        """What a phrase of several parts shows, and which of them follow the one before at once."""
        for group in groups:
            for phrase in group.phrases:
                self._add(group, fold(phrase).text.strip())
        self._pieces = list(self._known.values())
        self._automaton = AhoCorasick([text for text, _ in self._known])

    def _add(self, group: Group, phrase: str) -> None:
        if not phrase:
            return  # nothing but what is invisible
        if group.match != "pattern":
            self._piece(phrase, whole=group.match == "whole-word").facts[group.fact] = None
            return
        # What an exception finds is kept under the same fact, below zero.
        excepts = phrase.startswith(EXCEPT)
        fact = -group.fact if excepts else group.fact
        parts = list(_parts(phrase.removeprefix(EXCEPT)))
        if len(parts) == 1:
            for spelling in parts[0].spellings:
                self._piece(spelling, whole=True).facts[fact] = None
            return
        for number, part in enumerate(parts):
            for spelling in part.spellings:
                self._piece(spelling, whole=True).parts.append((len(self._long), number))
        self._long.append((fact, [part.close for part in parts]))

    def _piece(self, text: str, *, whole: bool) -> _Piece:
        return self._known.setdefault((text, whole), _Piece(text, whole=whole))

    def find(self, text: str) -> Found:
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
            fact, close = self._long[phrase]
            if len(hits) == len(close) and (joined := _join(text, hits, close)):
                found[fact] = sorted([*found[fact], *joined], key=itemgetter(2))
        if found and min(found) < 0:
            _take_back(found)
        return found


def _join(text: str, parts: dict[int, list[Hit]], close: Sequence[bool]) -> list[Hit]:
    """Return where the parts of a phrase follow each other."""
    joined = parts[0]
    for number in range(1, len(close)):
        joined = list(_followed(text, joined, parts[number], close=close[number]))
    return joined


def _followed(text: str, before: list[Hit], after: list[Hit], *, close: bool) -> Iterator[Hit]:
    """Join each part to the one right before it, or over a gap to the nearest."""
    starts = {end: start for _, start, end in before}
    ends = sorted(starts)
    for index, start, end in after:
        if close:
            if start - 1 in starts:
                yield index, starts[start - 1], end
        elif (place := bisect_right(ends, start)) and _is_gap(text, ends[place - 1], start):
            yield index, starts[ends[place - 1]], end


def _take_back(found: dict[int, list[Hit]]) -> None:
    """Leave out what an exception of the same lexicon was found in the same place as."""
    for fact in [fact for fact in found if fact < 0]:
        exceptions = found.pop(fact)
        hits = found.pop(-fact, [])
        # In time that grows with the number of hits: which places exceptions cover, first.
        covered = set[int]()
        for _, start, end in exceptions:
            covered.update(range(start, end))
        kept = [hit for hit in hits if covered.isdisjoint(range(hit[1], hit[2]))]
        if kept:
            found[-fact] = kept


def _parts(phrase: str) -> Iterator[_Part]:
    for piece in phrase.split(GAP):
        close, combined = False, [""]
        for word in _WORD.findall(piece):
            choices = _choices(word)
            if len(combined) * len(choices) > _MOST_COMBINED and all(combined) and all(choices):
                yield _Part(_spelt(combined), close)
                close, combined = True, [""]
            combined = [f"{one} {other}".strip() for one in combined for other in choices]
        yield _Part(_spelt(combined), close)


def _choices(word: str) -> list[str]:
    """Return a word, or what stands in brackets for one, with each choice: "(am|feel)" is two."""
    choice = _CHOICE.search(word)
    if choice is None:
        return [word]
    before, after = word[: choice.start()], word[choice.end() :]
    return [each for one in choice[1].split("|") for each in _choices(f"{before}{one}{after}")]


def _spelt(phrases: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for phrase in phrases if phrase for each in _spellings(phrase)))


def _spellings(phrase: str) -> tuple[str, ...]:
    """Return a phrase with its contractions whole, cut off, and without apostrophes."""
    if "'" not in phrase:
        return (phrase,)
    cut = _CONTRACTION.sub(r" \1", phrase)
    return tuple(dict.fromkeys((phrase, cut, phrase.replace("'", ""))))


def _is_gap(text: str, start: int, end: int) -> bool:
    """Whether between two places stand a few words of one sentence at most."""
    if not 0 <= end - start <= _LONGEST_GAP:
        return False
    between = text[start:end]
    return len(between.split()) <= _MOST_IN_GAP and _ENDS_SENTENCE.search(between) is None


def _is_tail(text: str, start: int) -> bool:
    """Whether what follows the apostrophe before ``start`` belongs to the word before it."""
    within = start > 1 and IS_LETTER[text[start - 2]]
    return within and not all(IS_LETTER[char] for char in text[start : start + 3].ljust(3))
