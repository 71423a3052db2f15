"""The phrases of the safety scan, and a prefilter for those that a text can match.

The file of phrases explains its notation. Trying every phrase on every text would take thirty times
as long, and double the CPU time of a judged sample, so one pass first looks for the words that
phrases require. These are derived from the phrases.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Final, Literal

import msgspec

_NAME = re.compile(r"<([a-z]+)>")
_NOT_BEFORE = re.compile(r"\(\?<!(?:\(([^()]*)\))?([^()]*)\)")
_BRACKET = re.compile(r"(?<!\\)\((?!\?)")

ClauseKind = Literal[
    "idiom",
    "stop",
    "turn",
    "join",
    "weak",
    "denial",
    "refusal",
    "neutral",
    "care",
    "promote",
    "present",
    "explain",
    "means",
    "danger",
]


class Category(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of danger."""

    phrases: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    explaining: bool = False


class After(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words after a danger that promote or deny it."""

    promoted: tuple[str, ...]
    denied: tuple[str, ...]
    refused: tuple[str, ...]
    relented: tuple[str, ...]


class Concerns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words by which a judge states that it has no concern."""

    denying: str
    praising: str
    plain: str


class Injections(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text that addresses a judge: regular expressions and phrases."""

    marks: tuple[str, ...]
    phrases: tuple[str, ...]


class Phrasebook(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The contents of the file, as written."""

    parts: dict[str, str]
    categories: dict[str, Category]
    clauses: dict[ClauseKind, tuple[str, ...]]
    after: After
    concerns: Concerns
    injections: Injections

    @cached_property
    def _patterns(self) -> dict[str, str]:
        """The parts as regular expressions; each may use those above it."""
        patterns: dict[str, str] = {}
        for name, part in self.parts.items():
            patterns[name] = f"(?:{_pattern(part, patterns)})"
        return patterns

    def pattern(self, *entries: str) -> str:
        """Return a regular expression that matches any of the entries."""
        return "|".join(_pattern(entry, self._patterns) for entry in entries)

    def words(self, entries: Sequence[str]) -> re.Pattern[str]:
        """Return a pattern that finds phrases as entire words: "method" doesn't match "meth"."""
        return re.compile(rf"\b(?=\w)(?:{self.pattern(*entries)})(?!\w)")

    def word_ends(self, entries: Sequence[str]) -> re.Pattern[str]:
        """Return the same, but beginning anywhere, which is three times as fast."""
        return re.compile(rf"(?:{self.pattern(*entries)})(?!\w)")


def read_phrasebook(source: str) -> Phrasebook:
    """Read the file."""
    return msgspec.yaml.decode(source, type=Phrasebook)


def tidy(entry: str) -> str:
    """Return an entry without insignificant spaces."""
    return re.sub(r" *\| *", "|", entry)


def _pattern(entry: str, parts: dict[str, str]) -> str:
    text = _NOT_BEFORE.sub(_none_before, tidy(entry))
    text = _BRACKET.sub("(?:", text)
    text = text.replace(" ?", r"""[\s"'-]{0,4}""").replace(" ", r"""[\s"'-]{1,4}""")
    return _NAME.sub(lambda name: parts[name[1]], text)


def _none_before(choice: re.Match[str]) -> str:
    """Return one lookbehind per word, because Python allows only fixed lengths."""
    words, rest = choice.groups(default="")
    return "".join(rf"(?<!{word}{rest})" for word in words.split("|")).replace(" ", r"\s")


Entries = tuple[str, ...]
"""Phrases that are tried together, as one expression."""
Words = frozenset[str]
"""Pieces of plain text from the start of a word; every match contains one of them."""

_SHORTEST: Final = 3  # letters; fewer are in nearly every text
_TOKEN = re.compile(
    r"(?P<text>(?:[\w':,& -](?![?*+{]))+)|(?P<look>\(\?<?[=!])|(?P<open>\()|(?P<close>\))"
    r"|(?P<or>\|)|(?P<end>\\b)|(?P<repeat>[?*+]|\{[^}]*\})|(?P<part><[a-z]+>)"
    r"|(?P<any>\[(?:\\.|[^\]\\])*\]|\\.|.)"
)
_NUMBER_OF: Final = itemgetter(0)
_PLAIN: Final = bytes(code if chr(code).isalnum() else ord(" ") for code in range(128)).ljust(256)


class Prefilter:
    """Finds the entries that a text may match."""

    def __init__(self, tables: Iterable[Entries], parts: Mapping[str, str]) -> None:
        from ahocorasick_rs import BytesAhoCorasick

        known: dict[str, _Needs] = {}
        for name, part in parts.items():
            known[f"<{name}>"] = _NeedsReader(part, known).choice()
        needs = [
            (entries, need.all)
            for entries in tables
            for entry in entries
            for need in _NeedsReader(entry, known).sequences()
        ]
        words = sorted(frozenset[str]().union(*(each for _, needed in needs for each in needed)))
        self._automaton = BytesAhoCorasick([word.encode() for word in words])
        numbers = {word: number for number, word in enumerate(words)}
        self._always = {entries for entries, needed in needs if not needed}
        self._by_word: dict[int, list[tuple[Entries, list[frozenset[int]]]]] = {}
        for entries, needed in needs:
            rarest = _rarest(needed)
            others = [frozenset(numbers[word] for word in e) for e in needed if e is not rarest]
            for word in rarest:
                self._by_word.setdefault(numbers[word], []).append((entries, others))

    def possible(self, text: str) -> set[Entries]:
        """Return the entries that a lower-case text may match."""
        looked_at = _plain(text) if text.isascii() else _plain(text) + text.encode(errors="replace")
        hits = self._automaton.find_matches_as_indexes(looked_at, overlapping=True)
        found = set(map(_NUMBER_OF, hits))
        return self._always | {
            entries
            for word in found & self._by_word.keys()
            for entries, others in self._by_word[word]
            if not any(map(found.isdisjoint, others))
        }


class _Needs:
    """The literals in every match of a piece of a phrase, and whether it ends with a gap."""

    def __init__(self, needed: list[Words], *, ends_with_gap: bool) -> None:
        self.all = needed
        self.ends_with_gap = ends_with_gap


class _NeedsReader:
    """Finds the literals that a phrase requires; none in case of doubt."""

    def __init__(self, entry: str, parts: Mapping[str, _Needs]) -> None:
        self._parts = parts
        self._tokens = [(each.lastgroup, each[0]) for each in _TOKEN.finditer(tidy(entry))]
        self._tokens.reverse()  # the next one is the last

    def sequences(self) -> list[_Needs]:
        """Read up to a closing bracket or the end; return the needs of each alternative."""
        read = [self._sequence()]
        while self._tokens and self._tokens[-1][0] == "or":
            self._tokens.pop()
            read.append(self._sequence())
        return read

    def choice(self) -> _Needs:
        """Read the alternatives as one piece."""
        read = self.sequences()
        if len(read) == 1:
            return read[0]
        rarest = [_rarest(each.all) for each in read]
        any_of = [frozenset[str]().union(*rarest)] if all(rarest) else []
        return _Needs(any_of, ends_with_gap=all(each.ends_with_gap for each in read))

    def _sequence(self) -> _Needs:
        needed: list[Words] = []
        literal = " "  # plain text so far, from the start of a word; empty inside an unknown word
        while self._tokens and self._tokens[-1][0] not in {"or", "close"}:
            kind, token = self._tokens.pop()
            if kind == "text":
                _, gap, after = token.partition(" ")
                literal = literal + token if literal else gap + after
                continue
            piece = self._piece(kind, token)
            repeat = self._repeat()
            if kind == "look":
                continue
            needed += _words(f"{literal} " if kind == "end" else literal)
            begins = literal.endswith(" ")
            if piece is not None and not repeat.startswith(("?", "{0")):
                # Other alphabets are also searched inside words.
                needed += [each for each in piece.all if begins or not "".join(each).isascii()]
            literal = " " if piece is not None and begins and piece.ends_with_gap else ""
        return _Needs(needed + _words(literal), ends_with_gap=literal.endswith(" "))

    def _piece(self, kind: str | None, token: str) -> _Needs | None:
        if kind == "part":
            if token not in self._parts:
                raise ValueError(f"{token}: `parts` has no such name above the entry that uses it")
            return self._parts[token]
        if kind not in {"open", "look"}:
            return None
        piece = self.choice()
        self._tokens.pop()  # the closing bracket
        return piece

    def _repeat(self) -> str:
        repeated = self._tokens and self._tokens[-1][0] == "repeat"
        return self._tokens.pop()[1] if repeated else ""


def _words(literal: str) -> list[Words]:
    plain = _plain(literal).decode()
    if len(plain.strip()) < _SHORTEST:
        # `_plain` removes other alphabets entirely, so their words are searched for unchanged.
        return [] if literal.isascii() else [frozenset({max(literal.split(), key=len)})]
    # The last word may continue, unless the literal ends it.
    return [frozenset({plain.rstrip() if literal[-1].isalnum() else plain})]


def _plain(text: str) -> bytes:
    """Return letters and digits, with one space before, between and after words."""
    # Non-ASCII characters arrive as `?` and become spaces too: this only adds candidates.
    words = text.encode("ascii", "replace").translate(_PLAIN).split()
    return b" %b " % b" ".join(words)


def _rarest(needed: list[Words]) -> Words:
    """Return the words that the fewest texts contain, estimated by their length."""
    return min(
        needed, key=lambda words: sum(2.0 ** -len(word) for word in words), default=frozenset[str]()
    )
