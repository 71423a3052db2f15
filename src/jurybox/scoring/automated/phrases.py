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
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from jurybox.rubric.rules import EXCEPT, GAP, Match, Source
from jurybox.scoring.automated.folding import fold

Hit = tuple[int, int, int]
"""A phrase in a text: its number, its start and its end."""
Found = Mapping[int, list[Hit]]
"""Where a text has the phrases that show a fact, by fact and in the order of the text."""

Span = tuple[int, int]

APOSTROPHE: Final = 2

# Scripts without spaces, in which every character may begin a word: Thai, Lao, Burmese, Khmer,
# Chinese and Japanese.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
# A table of states is the fastest automaton, and would be large for more phrases than these.
_MOST_IN_TABLE = 2000

_CONTRACTION = re.compile(r"(?<=\w)(n't|'(?:s|m|d|t|re|ve|ll))(?![a-z])")
_CHOICE = re.compile(r"\(([^()]*\|[^()]*)\)")
_WORD = re.compile(r"(?:\([^()]*\)|[^\s(]|\((?![^()]*\)))+")
_MOST_COMBINED = 200  # ways to say a part of a phrase
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
    for char in set(text).difference(JOINING):
        JOINING[char] = _joining(char)


class Group(NamedTuple):
    """Phrases that show a fact where they are in a text."""

    fact: int
    text: Source
    phrases: tuple[str, ...]
    match: Match = "word-start"


_Chain = tuple[int, int]
"""A phrase of several parts, and which of them."""
_Link = tuple[_Chain, int]
"""The same, and where it ends if the next part has to follow at once."""
_ANYWHERE = -1


class _Part(NamedTuple):
    """A part of a phrase in all its spellings; ``close`` where it follows the one before at once.

    A phrase is cut into such parts where all combinations of its choices would be too many.
    """

    spellings: tuple[str, ...]
    close: bool


class _Follow(NamedTuple):
    """A later part of a phrase: how it goes with the part before, and with the one after."""

    before: _Chain
    close: bool
    this: _Chain
    next_close: bool
    fact: int
    """What the phrase shows, where this is the last part; else 0."""


class _Shown(NamedTuple):
    """What a phrase shows, and whether a word may not go on before it and after it."""

    facts: tuple[int, ...]
    not_within: bool
    whole: bool
    links: "_Links | None"
    """None where it is a part of no longer phrase, as most are."""


class _Links(NamedTuple):
    """The longer phrases that a phrase is a part of."""

    opens: tuple[tuple[_Chain, bool], ...]
    """Those of which it is the first part, and whether the next has to follow at once."""
    follows: tuple[_Follow, ...]
    """Those of which it is a later one."""


class _Entry:
    """A piece of text in the automaton, with the facts and the chains that it belongs to."""

    def __init__(self) -> None:
        self.facts: dict[int, None] = {}
        self.chains: list[_Chain] = []


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
        from ahocorasick_rs import AhoCorasick, Implementation

        # A phrase that is looked up in both ways stands in the automaton twice.
        self._known: dict[tuple[str, bool], _Entry] = {}
        self._chains: list[tuple[int, tuple[bool, ...]]] = []
        """What a phrase of several parts shows, and which of them follow the one before at once."""
        for group in groups:
            for phrase in group.phrases:
                self._add(group, fold(phrase).text.strip())
        known = self._known
        self._shown = [
            self._show(text, whole=whole, entry=entry) for (text, whole), entry in known.items()
        ]
        table = Implementation.DFA if len(known) <= _MOST_IN_TABLE else None
        self._automaton = AhoCorasick([text for text, _ in known], implementation=table)

    def _add(self, group: Group, phrase: str) -> None:
        if not phrase:
            return  # nothing but what nobody sees
        if group.match != "pattern":
            self._entry(phrase, whole=group.match == "whole-word").facts[group.fact] = None
            return
        # What an exception finds is kept under the same fact, below zero.
        excepts = phrase.startswith(EXCEPT)
        fact = -group.fact if excepts else group.fact
        parts = list(_parts(phrase.removeprefix(EXCEPT)))
        if len(parts) == 1:
            for spelling in parts[0].spellings:
                self._entry(spelling, whole=True).facts[fact] = None
            return
        chain = len(self._chains)
        self._chains.append((fact, tuple(part.close for part in parts)))
        for number, part in enumerate(parts):
            for spelling in part.spellings:
                self._entry(spelling, whole=True).chains.append((chain, number))

    def _entry(self, text: str, *, whole: bool) -> _Entry:
        return self._known.setdefault((text, whole), _Entry())

    def find(self, text: str) -> Found:
        hits = self._automaton.find_matches_as_indexes(text, overlapping=True)
        if not hits:
            return {}
        if not text.isascii():
            _look_at(text)
        found: defaultdict[int, list[Hit]] = defaultdict(list)
        joins, shown, size = JOINING, self._shown, len(text)
        linked: dict[_Link, Span] = {}
        for hit in hits:
            index, start, end = hit
            facts, not_within, whole, links = shown[index]
            if not_within and start:
                before = joins[text[start - 1]]
                if before and (before == 1 or _is_tail(text, start)):
                    continue
            if whole and end < size and joins[text[end]] == 1:
                continue
            for fact in facts:
                found[fact].append(hit)
            if links is not None and (linked or links.opens):
                _link(text, hit, links, linked, found)
        if found and min(found) < 0:
            _take_back(found)
        return found

    def _show(self, text: str, *, whole: bool, entry: _Entry) -> _Shown:
        opens: list[tuple[_Chain, bool]] = []
        follows: list[_Follow] = []
        # Later parts first: a piece that is two parts of a phrase mustn't be joined to itself.
        for chain, number in sorted(entry.chains, key=_by_part):
            fact, close = self._chains[chain]
            is_last = number + 1 == len(close)
            next_close = not is_last and close[number + 1]
            if number:
                before, this = (chain, number - 1), (chain, number)
                shows = fact if is_last else 0
                follows.append(_Follow(before, close[number], this, next_close, shows))
            else:
                opens.append(((chain, number), next_close))
        within, ends = _joining(text[0]) == 1, whole and _joining(text[-1]) == 1
        links = _Links(tuple(opens), tuple(follows)) if entry.chains else None
        return _Shown(tuple(entry.facts), within, ends, links)


def _link(
    text: str,
    hit: Hit,
    links: _Links,
    linked: dict[_Link, Span],
    found: dict[int, list[Hit]],
) -> None:
    """Join a part of a phrase to the one right before it, or over a gap to the nearest."""
    index, start, end = hit
    opens, follows = links
    for before, close, this, next_close, fact in follows if linked else ():
        span = linked.get((before, start - 1 if close else _ANYWHERE))
        if span is None or not (close or _is_gap(text, span[1], start)):
            continue
        if fact:
            found[fact].append((index, span[0], end))
        else:
            linked[this, end if next_close else _ANYWHERE] = span[0], end
    for chain, close in opens:
        linked[chain, end if close else _ANYWHERE] = start, end


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


def _by_part(chain: _Chain) -> int:
    return -chain[1]


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
    within = start > 1 and _joining(text[start - 2]) == 1
    return within and any(_joining(char) != 1 for char in text[start : start + 3].ljust(3))
