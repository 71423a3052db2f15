"""Automated scoring as data: a base score, conditional adjustments, and lexicons."""

from typing import Final, Literal

import msgspec

from jurybox.documents.numbers import show_number

SIGNALS: Final[dict[str, str]] = {
    "formatting": "the response has formatting characters or list lines",
    "question": "the response asks a question",
    "helpful_question": "a question of the response addresses the user",
    "excessive_line_breaks": "the response has more than two line breaks",
    "shared_words": "the response and the user's message have a word in common",
    "unsafe_content": "the safety scan finds something in the response",
}
"""The text signals that rules can use, each with its meaning."""

LEAST: Final = {"excessive_line_breaks": 3}
"""The minimum amount for a text signal to be present, if it is more than 1."""

NUMERIC_SIGNALS: Final[dict[str, str]] = {
    "sentiment": "the response's sentiment, from -1 (all mood words negative) to 1 (all positive)",
    "distress": "1 if the user's message shows distress, 0.5 if only a recent earlier one does",
    "topic_overlap": "the share of the response's content words that the user's message has",
    "kindred_words": "how many of the user's content words the response repeats; words of one"
    " family (mum, mother) count as one",
    "user_content": "how many different content words the user's message has",
    "content_words": "how many different content words the response has",
    "content_share": "the share of different content words among the words of the response",
    "echo": "the share of the response's word triples that also occur in the user's message",
    "earlier_words": "how many content words of the response occur in earlier turns but not in the"
    " user's message",
    "earlier_turns": "how many turns the user had before the message",
    "kept_memory": "how many times the response recalls something that was really said",
    "false_memory": "how many times the response recalls something that was never said",
    "said_before": "the share of the response's word triples that are also in its earlier turns",
    "question_count": "how many questions the response asks",
    "repetition": "the share of the response's word triples that occurred earlier in the response",
    "spoken_words": "how many words the response has, not counting standalone punctuation",
    "sentence_words": "the mean number of words in a sentence of the response",
    "word_letters": "the mean number of letters in a word of the response",
    "hard_to_say": "how many addresses, long numbers, brackets and abbreviations the response has",
}
"""The numeric text signals that rules can compare with a range, each with its meaning."""

SIGNAL_LEXICONS: Final[dict[str, tuple[str, ...]]] = {
    "sentiment": ("bright_words", "dark_words", "negations"),
    "distress": ("distress_cues",),
    "topic_overlap": ("stop_words",),
    "kindred_words": ("stop_words", "word_families"),
    "user_content": ("stop_words",),
    "content_words": ("stop_words",),
    "content_share": ("stop_words",),
    "earlier_words": ("stop_words",),
    "kept_memory": ("stop_words", "memory_claims", "word_families"),
    "false_memory": ("stop_words", "memory_claims", "word_families"),
    "hard_to_say": ("abbreviations",),
}
"""The lexicons that signals need; a document that uses a signal has to define them."""

HEARD_LEXICONS: Final = ("distress_cues",)
"""The lexicons that are matched in the user's messages, not in the response."""

FAMILIES: Final = ("word_families",)
"""The lexicons in which each phrase is a family of words that count as one."""

WORD_LISTS: Final = ("bright_words", "dark_words", "negations", "stop_words")
"""The lexicons that are matched word by word; a phrase of several words is never found."""

WORD_COUNTS: Final = ("response_words", "user_words")
"""The word counts of both texts, which rules can use like numeric signals."""

Source = Literal["response", "user", "earlier"]
"""The texts that phrases are matched in; ``earlier`` is the user's earlier messages."""
Match = Literal["word-start", "whole-word", "pattern"]
GAP: Final = "..."
"""Matches a few words in a phrase of a lexicon with ``match: pattern``."""
EXCEPT: Final = "!"
"""Marks an exception in a pattern lexicon: it cancels other phrases' matches in the same place."""


class Lexicon(msgspec.Struct, frozen=True, kw_only=True):
    """A named list of phrases."""

    name: str
    phrases: tuple[str, ...]
    match: Match = "word-start"


class HasPhrase(msgspec.Struct, frozen=True, kw_only=True, tag="phrase"):
    """Whether a text has, or lacks, a phrase of a lexicon (given by name, or listed in place)."""

    text: Source
    lexicon: str | tuple[str, ...]
    present: bool

    def written(self) -> tuple[str, str | tuple[str, ...]]:
        """Return its key and value in a document."""
        return f"{self.text}_{'has' if self.present else 'lacks'}", self.lexicon


class SignalWithin(msgspec.Struct, frozen=True, kw_only=True, tag="number"):
    """Whether a signal or word count is within both ends; None leaves an end open."""

    signal: str
    low: float | None
    high: float | None

    def written(self) -> tuple[str, str]:
        """Return its key and value in a document."""
        if self.signal in SIGNALS:
            return "no_signal" if self.low is None else "signal", self.signal
        if self.low is None:
            return self.signal, f"<= {show_number(self.high or 0)}"
        if self.high is None:
            return self.signal, f">= {show_number(self.low)}"
        dash = ".." if self.low < 0 else "-"
        return self.signal, f"{show_number(self.low)}{dash}{show_number(self.high)}"


Condition = HasPhrase | SignalWithin


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """Points to add or subtract, once, if one of the sets of conditions in ``when`` is met."""

    add: float
    when: tuple[tuple[Condition, ...], ...]
    why: str = ""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The automated scoring of one criterion."""

    base: float
    adjustments: tuple[Adjustment, ...] = ()
    lexicons: tuple[Lexicon, ...] = ()
