"""Many phrases, looked up in one pass over a text (C8).

A phrase begins at the start of a word and may end within one; or it is a whole word. Words are
letters, digits and their marks: a hyphen, an underscore, an emoji or a quotation mark ends one. So
does an apostrophe, which is how a whole word is found in its contractions ("I'm"); but the one or
two letters that follow it are a tail and no word ("you're", "Hawai'i").

A pattern is whole words too. Its contractions are also found cut off ("do n't") or without their
apostrophe, and its gap stands for a few words of the same sentence.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from jurybox.rubric.rules import GAP, Match, Source
from jurybox.scoring.automated.folding import fold

Hit = tuple[int, int, int]
"""A phrase in a text: its number, its start and its end."""
Found = Mapping[int, list[Hit]]
"""Where a text has the phrases that show a fact, by fact and in the order of the text."""

Span = tuple[int, int]

APOSTROPHE: Final = 2
_SOURCES: Final[tuple[Source, ...]] = ("response", "user", "earlier")

# Scripts without spaces, in which every character may begin a word: Thai, Lao, Burmese, Khmer,
# Chinese and Japanese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
# A table of states is the fastest automaton, and would be large for more phrases than these.
_MOST_IN_TABLE = 2000

_CONTRACTION = re.compile(r"(?<=\w)(n't|'(?:s|m|d|t|re|ve|ll))(?![a-z])")
_ENDS_SENTENCE = re.compile(r"[.!?\n]")
_MOST_IN_GAP = 5  # words
_LONGEST_GAP = 60  # characters


def _joining(char: str) -> int:
    if char == "'":
        return APOSTROPHE
    letter = char.isalnum() or unicodedata.category(char).startswith("M")
    return int(letter and _UNSPACED.match(char) is None)


JOINING: Final = {char: _joining(char) for char in map(chr, range(128))}
"""Whether a character makes one word with its neighbours, for all characters ever looked at.

1 for what words are made of, ``APOSTROPHE`` for what may be within one, 0 for what ends one.
"""


def _look_at(text: str) -> None:
    if not text.isascii():
        for char in set(text).difference(JOINING):
            JOINING[char] = _joining(char)


class Group(NamedTuple):
    """Phrases that show a fact where they are in a text."""

    fact: int
    text: Source
    phrases: tuple[str, ...]
    match: Match = "word-start"


_Chain = tuple[int, int]
"""A phrase with gaps, and which of its parts."""


class _Shown(NamedTuple):
    """What a phrase shows, and whether a word may not go on before it and after it."""

    facts: tuple[int, ...]
    not_within: bool
    whole: bool
    chains: tuple[_Chain, ...]


_UNWANTED = _Shown((), not_within=False, whole=False, chains=())


class _Entry:
    """A piece of text in the automaton, with the groups and the chains that it belongs to."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.chains: list[tuple[Source, _Chain]] = []


class Phrases:
    """Groups of phrases in one Aho-Corasick automaton."""

    def __init__(self, groups: Iterable[Group]) -> None:
        from ahocorasick_rs import AhoCorasick, Implementation

        # A phrase that is looked up in both ways stands in the automaton twice.
        self._known: dict[tuple[str, bool], _Entry] = {}
        self._chains: list[tuple[int, int]] = []
        """The fact that each phrase with gaps shows, and its last part."""
        for group in groups:
            for phrase in group.phrases:
                self._add(group, fold(phrase).text.strip())
        known = self._known
        self._shown: dict[Source, list[_Shown]] = {
            text: [_shown(*key, entry, text) for key, entry in known.items()] for text in _SOURCES
        }
        table = Implementation.DFA if len(known) <= _MOST_IN_TABLE else None
        self._automaton = AhoCorasick([text for text, _ in known], implementation=table)

    def _add(self, group: Group, phrase: str) -> None:
        if not phrase:
            return  # nothing but what nobody sees
        if group.match != "pattern":
            self._entry(phrase, whole=group.match == "whole-word").groups.append(group)
            return
        parts = [part.strip() for part in phrase.split(GAP)]
        if len(parts) == 1:
            for spelling in _spellings(phrase):
                self._entry(spelling, whole=True).groups.append(group)
            return
        chain = len(self._chains)
        self._chains.append((group.fact, len(parts) - 1))
        for number, part in enumerate(parts):
            for spelling in _spellings(part):
                entry = self._entry(spelling, whole=True)
                entry.chains.append((group.text, (chain, number)))

    def _entry(self, text: str, *, whole: bool) -> _Entry:
        return self._known.setdefault((text, whole), _Entry())

    def find(self, text: str, source: Source) -> Found:
        """Return where a folded text has the phrases that rules look for in it."""
        found: defaultdict[int, list[Hit]] = defaultdict(list)
        _look_at(text)
        joins, shown, size = JOINING, self._shown[source], len(text)
        linked: dict[_Chain, Span] = {}
        for hit in self._automaton.find_matches_as_indexes(text, overlapping=True):
            index, start, end = hit
            facts, not_within, whole, chains = shown[index]
            if not_within and start:
                before = joins[text[start - 1]]
                if before and (before == 1 or _is_tail(text, start)):
                    continue
            if whole and end < size and joins[text[end]] == 1:
                continue
            for fact in facts:
                found[fact].append(hit)
            if chains:
                self._link(text, hit, chains, linked, found)
        return found

    def _link(
        self,
        text: str,
        hit: Hit,
        chains: tuple[_Chain, ...],
        linked: dict[_Chain, Span],
        found: dict[int, list[Hit]],
    ) -> None:
        """Join a part of a phrase with gaps to the nearest one before it."""
        index, start, end = hit
        for chain, number in chains:
            first = start
            if number:
                before = linked.get((chain, number - 1))
                if before is None or not _is_gap(text, before[1], start):
                    continue
                first = before[0]
            fact, last = self._chains[chain]
            if number == last:
                found[fact].append((index, first, end))
            else:
                linked[chain, number] = first, end


def _shown(text: str, whole: bool, entry: _Entry, source: Source) -> _Shown:  # noqa: FBT001
    facts = tuple(dict.fromkeys(group.fact for group in entry.groups if group.text == source))
    # Later parts first: a piece that is two parts of a phrase mustn't be joined to itself.
    chains = tuple(
        sorted((chain for where, chain in entry.chains if where == source), key=_by_part)
    )
    if not facts and not chains:
        return _UNWANTED
    return _Shown(facts, _joining(text[0]) == 1, whole and _joining(text[-1]) == 1, chains)


def _by_part(chain: _Chain) -> int:
    return -chain[1]


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
    within = start > 1 and _joining(text[start - 2]) == 1
    return within and any(_joining(char) != 1 for char in text[start : start + 3].ljust(3))
