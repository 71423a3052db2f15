"""Automated scoring as data: a base, adjustments under conditions of a closed kind, lexicons."""

from typing import Final, Literal

import msgspec

SIGNALS: Final[dict[str, str]] = {
    "formatting": "the response has formatting characters or list lines",
    "question": "the response asks a question",
    "helpful_question": "a question of the response addresses the user",
    "excessive_line_breaks": "the response has more than two line breaks",
    "shared_words": "the response and the user's message have a word in common",
    "unsafe_content": "the safety scan finds something in the response",
}
"""The text signals a rule may ask for, each with what it means."""

Speaker = Literal["response", "user"]
Match = Literal["word-start", "whole-word"]
MATCHES: Final[tuple[Match, ...]] = ("word-start", "whole-word")


class Lexicon(msgspec.Struct, frozen=True, kw_only=True):
    """A named list of phrases."""

    name: str
    phrases: tuple[str, ...]
    match: Match = "word-start"


class HasPhrase(msgspec.Struct, frozen=True, kw_only=True, tag="phrase"):
    """A phrase of a lexicon (by name, or listed in place) is in a text, or is not."""

    text: Speaker
    lexicon: str | tuple[str, ...]
    present: bool


class WordCount(msgspec.Struct, frozen=True, kw_only=True, tag="words"):
    """The number of words of a text lies within both ends; None leaves an end open."""

    text: Speaker
    low: int | None
    high: int | None


class HasSignal(msgspec.Struct, frozen=True, kw_only=True, tag="signal"):
    """A text signal is present, or is absent."""

    signal: str
    present: bool


Condition = HasPhrase | WordCount | HasSignal


class Adjustment(msgspec.Struct, frozen=True, kw_only=True):
    """What is added (below zero: taken off) once, where one of the sets in ``when`` holds."""

    add: float
    when: tuple[tuple[Condition, ...], ...]
    why: str = ""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The automated scoring of one criterion."""

    base: float
    adjustments: tuple[Adjustment, ...] = ()
    lexicons: tuple[Lexicon, ...] = ()
