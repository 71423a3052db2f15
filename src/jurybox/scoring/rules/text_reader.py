"""What signals read: a response, the user's message, and what was said before."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from jurybox.judging.safety import SafetyFinding
from jurybox.rubric.rules import Source
from jurybox.sample import Turn
from jurybox.scoring.rules.case_folding import Folded, fold
from jurybox.scoring.rules.phrases import Hit
from jurybox.scoring.rules.rule_report import Quote
from jurybox.scoring.rules.words import Families, Passage, Quoting, WordList

_BETWEEN_TURNS = "\n\n"


class Reading(msgspec.Struct, frozen=True, dict=True):
    """A response with what came before it, as signals read it."""

    response: Folded
    user: Folded
    messages: Sequence[Turn]
    findings: Sequence[SafetyFinding]

    @cached_property
    def said(self) -> Passage:
        """The response, word by word."""
        return Passage(self.response, "response")

    @cached_property
    def heard(self) -> Passage:
        """The user's message, word by word."""
        return Passage(self.user, "user")

    @cached_property
    def earlier(self) -> Folded:
        """What the user said before the message; an empty line between two turns."""
        turns = (turn.content for turn in self.messages if turn.role == "user")
        return fold(_BETWEEN_TURNS.join(turns))

    def start_of_recent(self, turns: int) -> int:
        """Return where the last few of the user's earlier turns begin in ``earlier.text``."""
        contents = [turn.content for turn in self.messages if turn.role == "user"]
        older = contents[:-turns]
        return len(fold(_BETWEEN_TURNS.join([*older, ""])).text) if older else 0

    @cached_property
    def user_turns(self) -> tuple[Passage, ...]:
        """The user's earlier turns, the latest first, word by word."""
        passages: list[Passage] = []
        offset = 0
        for turn in self.messages:
            if turn.role == "user":
                passages.append(Passage(fold(turn.content), "earlier", offset))
                offset += len(turn.content) + len(_BETWEEN_TURNS)
        return tuple(reversed(passages))

    @cached_property
    def before(self) -> Passage:
        """All that was said before the message, by anybody, and what the system was told."""
        turns = (turn.content for turn in self.messages)
        return Passage(fold(_BETWEEN_TURNS.join(turns)), "earlier")

    @cached_property
    def told(self) -> Passage:
        """What the user said before the message, and what the system was told."""
        turns = (turn.content for turn in self.messages if turn.role != "assistant")
        return Passage(fold(_BETWEEN_TURNS.join(turns)), "earlier")

    @cached_property
    def own_turns(self) -> Passage:
        """What the assistant said before, word by word."""
        turns = (turn.content for turn in self.messages if turn.role == "assistant")
        return Passage(fold(_BETWEEN_TURNS.join(turns)), "earlier")

    def text(self, source: Source) -> Folded:
        """Return one of the texts that phrases are looked for in."""
        if source == "response":
            return self.response
        return self.user if source == "user" else self.earlier


Span = tuple[int, int]
Seen = tuple[int, Sequence[Span]]
"""How much there is of a signal, and where the first of it stands in the response."""


def quote_spans(reading: Reading, spans: Iterable[Span], name: str) -> tuple[Quote, ...]:
    """Quote what stands in the response."""
    text = reading.response.original
    return tuple(
        [
            Quote(text="response", words=text[start:end], start=start, source=name)
            for start, end in spans
        ]
    )


class Signal(NamedTuple):
    """A signal; its own phrases are looked up in the same pass as all others, as whole words."""

    see: Callable[[Reading, Sequence[Hit]], Seen]
    phrases: tuple[str, ...] = ()
    least: int = 1
    """How much there has to be for the signal to be present."""
    quote: Callable[[Reading, Iterable[Span], str], tuple[Quote, ...]] = quote_spans


class Lists(NamedTuple):
    """The lexicons by which a numeric signal reads: its word lists, and where phrases were found.

    The word lists stand in the order in which the signal names them. ``earlier`` is where its
    phrases were found in the user's earlier turns, for a signal that reads what the user says.
    """

    words: tuple[WordList, ...] = ()
    hits: Sequence[Hit] = ()
    families: Families | None = None
    earlier: Sequence[Hit] = ()


class Amount(NamedTuple):
    """The number that a numeric signal is for a response, and how to quote what it counted."""

    number: float
    quote: Quoting | None = None


NumericSignal = Callable[[Reading, Lists], Amount]
NONE = Amount(0)
