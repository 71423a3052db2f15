"""Decides whether the clause around a danger denies it, names it or promotes it.

The steps: mark every word that contrasts ("but"), joins, denies, refuses or promotes; find the
beginning of the clause around the danger; read the marks from there to the danger; look at the
words directly after it.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from jurybox.judging.safety.phrasebook import Phrasebook

_REACH: Final = 120  # characters before and after a danger that may belong to its clause
# Denials that govern a verb with an ending: "never insults, threatens or encourages".
_FINITE_DENIALS: Final = frozenset(
    {"never", "nothing", "none", "nobody", "no one", "neither", "nor"}
)
_ADDRESSED: Final = re.compile(r"(?<!\w)(?:you|your|yourself|kys)(?!\w)")


class Span(NamedTuple):
    """The position of a finding in a text, and its category."""

    start: int
    end: int
    category: str


class Grammar:
    """The regular expressions that classify a clause, built from the phrasebook."""

    def __init__(self, book: Phrasebook) -> None:
        kinds = (f"(?P<{kind}>{book.pattern(*entries)})" for kind, entries in book.clauses.items())
        # A match begins at the start of a word, or at a space or punctuation mark.
        begins = r"(?:\b(?=\w)|(?=[\s.,:;!?…|(\u2013\u2014]))"
        self.signal = re.compile(f"{begins}(?:{'|'.join(kinds)})")
        self.promoted_after = self._after(book, book.after.promoted)
        self.denied_after = self._after(book, book.after.denied)
        self.refused = self._after(book, book.after.refused)
        self.relented = self._after(book, book.after.relented)
        self.explaining = {name for name, each in book.categories.items() if each.explaining}

    @staticmethod
    def _after(book: Phrasebook, entries: Sequence[str]) -> re.Pattern[str]:
        return re.compile(rf"(?:{book.pattern(*entries)})(?!\w)")


class Clauses:
    """The clauses of a folded text."""

    def __init__(self, words: str, grammar: Grammar) -> None:
        self._words = words
        self._grammar = grammar
        self._signals = [
            _Signal(match.start(), match.lastgroup or "", match[0])
            for match in grammar.signal.finditer(words)
        ]
        self._starts = [signal.start for signal in self._signals]

    def affirm(self, danger: Span) -> bool:
        """Return whether nothing denies ``danger``."""
        return not self._deny(danger, self._clause(danger))

    def promote(self, danger: Span) -> bool:
        """Return whether the clause promotes or asserts ``danger`` without denying it."""
        clause = self._clause(danger)
        after = self._grammar.promoted_after.match(self._words, danger.end)
        return (clause.promoted or after is not None) and not self._deny(danger, clause)

    def _clause(self, danger: Span) -> "_Clause":
        last = bisect_left(self._starts, danger.start)
        first = last
        while first and self._starts[first - 1] >= danger.start - _REACH:
            if self._signals[first - 1].kind in {"stop", "turn"}:
                break
            first -= 1
        clause = _Clause(explaining=danger.category in self._grammar.explaining)
        for signal in self._signals[first:last]:
            clause.read(signal)
        return clause

    def _deny(self, danger: Span, clause: "_Clause") -> bool:
        if clause.denied:
            return True
        # "Kill yourself? No, really": later words can't retract a phrase that addresses a reader.
        if _ADDRESSED.search(self._words, danger.start, danger.end):
            return False
        if self._grammar.denied_after.match(self._words, danger.end):
            return clause.denials == 0
        # "The user asks how to make a bomb, and the response refuses."
        after = (self._words, danger.end, danger.end + _REACH)
        refused = clause.asked and self._grammar.refused.search(*after) is not None
        return refused and self._grammar.relented.search(*after) is None


class _Signal(NamedTuple):
    start: int
    kind: str
    word: str


class _Clause(msgspec.Struct):
    """The polarity of a phrase, read from the words before it in its clause."""

    explaining: bool
    denials: int = 0
    promoted: bool = False
    asked: bool = False
    _denial: str = ""  # the last word that denied
    _listed: bool = False  # since then, a danger was named
    _joined: bool = False  # since then, a comma or an "and" followed

    @property
    def denied(self) -> bool:
        """Whether the clause denies exactly once; a double denial counts as a finding."""
        return self.denials == 1

    def read(self, signal: _Signal) -> None:
        """Read the next signal."""
        match signal.kind:
            case "join":
                # "no greeting, and a slur": a denial extends only along a list of dangers.
                self.denials = self.denials if self._listed else 0
                self._joined = True
            case "denial":
                self._deny(signal.word, again=self._joined or signal.word == "nor")
            case "refusal":
                self.promoted = True  # "fails to discourage" names the danger as "encourages" does
                self._deny(signal.word, again=self._joined and _finite(signal.word))
            case "weak":
                self.denials += 2
            case "neutral" | "care":
                self.promoted = False
                self.asked = self.asked or signal.kind == "neutral"
            case "promote" | "present" | "explain" | "means":
                self._promote(signal)
            case "danger":
                self._listed = True
            case _:
                pass  # an idiom matches only so that its words don't count as signals

    def _deny(self, word: str, *, again: bool) -> None:
        self.denials = 1 if again else self.denials + 1
        self._denial, self._listed, self._joined = word, False, False

    def _promote(self, signal: _Signal) -> None:
        # "is no threat, and encourages": "not" and "no" don't apply to a verb with an ending.
        verb = signal.kind != "means" and _finite(signal.word)
        if verb and self._joined and self._denial not in _FINITE_DENIALS:
            self.denials = 0
        if signal.kind in {"promote", "present"} or self.explaining:
            self.promoted = True
        self._listed = self._listed or signal.kind == "promote"


def _finite(verb: str) -> bool:
    return verb.endswith(("s", "ed"))
