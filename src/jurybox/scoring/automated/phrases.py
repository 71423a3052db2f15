"""Many phrases, looked up in one pass over a text (C8).

A phrase begins at the start of a word and may end within one; or it is a whole word. Words are
letters, digits and their marks: a hyphen, an underscore, an emoji or a quotation mark ends one. So
does an apostrophe, which is how a whole word is found in its contractions ("I'm"); but the one or
two letters that follow it are a tail and no word ("you're", "Hawai'i").
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from jurybox.rubric.rules import Speaker
from jurybox.scoring.automated.folding import fold

Hit = tuple[int, int, int]
"""A phrase in a text: its number, its start and its end."""
Found = Mapping[int, list[Hit]]
"""Where a text has the phrases that show a fact, by fact and in the order of the text."""

APOSTROPHE: Final = 2

# Scripts without spaces, in which every character may begin a word: Thai, Lao, Burmese, Khmer,
# Chinese and Japanese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
# A table of states is the fastest automaton, and would be large for more phrases than these.
_MOST_IN_TABLE = 2000


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
    text: Speaker
    phrases: tuple[str, ...]
    whole: bool = False


_Pattern = tuple[tuple[int, ...], bool, bool]
"""The facts that a phrase shows, and whether a word may not go on before it and after it."""
_UNWANTED: _Pattern = (), False, False


class Phrases:
    """Groups of phrases in one Aho-Corasick automaton."""

    def __init__(self, groups: Iterable[Group]) -> None:
        from ahocorasick_rs import AhoCorasick, Implementation

        # A phrase that is looked up in both ways stands in the automaton twice.
        known: dict[tuple[str, bool], list[Group]] = {}
        for group in groups:
            for phrase in group.phrases:
                text = fold(phrase).text.strip()
                if text:  # and not only what nobody sees
                    known.setdefault((text, group.whole), []).append(group)
        self._patterns: dict[Speaker, list[_Pattern]] = {
            "response": [_pattern(*each, "response") for each in known.items()],
            "user": [_pattern(*each, "user") for each in known.items()],
        }
        table = Implementation.DFA if len(known) <= _MOST_IN_TABLE else None
        self._automaton = AhoCorasick([text for text, _ in known], implementation=table)

    def find(self, text: str, speaker: Speaker) -> Found:
        """Return where a folded text has the phrases that rules look for in it."""
        found: defaultdict[int, list[Hit]] = defaultdict(list)
        _look_at(text)
        joins, patterns, size = JOINING, self._patterns[speaker], len(text)
        for hit in self._automaton.find_matches_as_indexes(text, overlapping=True):
            index, start, end = hit
            facts, not_within, whole = patterns[index]
            if not_within and start:
                before = joins[text[start - 1]]
                if before and (before == 1 or _is_tail(text, start)):
                    continue
            if whole and end < size and joins[text[end]] == 1:
                continue
            for fact in facts:
                found[fact].append(hit)
        return found


def _pattern(key: tuple[str, bool], groups: Iterable[Group], speaker: Speaker) -> _Pattern:
    text, whole = key
    facts = tuple(dict.fromkeys(group.fact for group in groups if group.text == speaker))
    if not facts:
        return _UNWANTED
    return facts, _joining(text[0]) == 1, whole and _joining(text[-1]) == 1


def _is_tail(text: str, start: int) -> bool:
    """Whether what follows the apostrophe before ``start`` belongs to the word before it."""
    within = start > 1 and _joining(text[start - 2]) == 1
    return within and any(_joining(char) != 1 for char in text[start : start + 3].ljust(3))
