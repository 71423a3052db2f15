"""The phrases of the safety scan, read from their file; the file explains its notation."""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Literal

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
    topics: tuple[str, ...] = ()
    explaining: bool = False


class After(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words after a danger that promote or deny it."""

    promoted: tuple[str, ...]
    denied: tuple[str, ...]
    refused: tuple[str, ...]
    relented: tuple[str, ...]


class Concerns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words in which a judge says that it has no concern."""

    denying: str
    praising: str
    plain: str


class Phrasebook(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """All that the file has, as it is written there."""

    parts: dict[str, str]
    categories: dict[str, Category]
    clauses: dict[ClauseKind, tuple[str, ...]]
    after: After
    concerns: Concerns

    @cached_property
    def _patterns(self) -> dict[str, str]:
        """The parts as regular expressions; each may use those above it."""
        patterns: dict[str, str] = {}
        for name, part in self.parts.items():
            patterns[name] = f"(?:{_pattern(part, patterns)})"
        return patterns

    def pattern(self, *entries: str) -> str:
        """Return entries, any of which may match, as a regular expression."""
        return "|".join(_pattern(entry, self._patterns) for entry in entries)

    def words(self, entries: Sequence[str]) -> re.Pattern[str]:
        """Return what finds any of some phrases, as whole words: "method" is no "meth"."""
        return re.compile(rf"\b(?=\w)(?:{self.pattern(*entries)})(?!\w)")


def read_phrasebook(source: str) -> Phrasebook:
    """Read the file.

    Raises:
        msgspec.ValidationError: it has something else than it should, or lacks something.

    """
    return msgspec.yaml.decode(source, type=Phrasebook)


def tidy(entry: str) -> str:
    """Return an entry without the spaces that mean nothing."""
    return re.sub(r" *\| *", "|", entry)


def _pattern(entry: str, parts: dict[str, str]) -> str:
    text = _NOT_BEFORE.sub(_none_before, tidy(entry))
    text = _BRACKET.sub("(?:", text)
    text = text.replace(" ?", r"""[\s"'-]{0,4}""").replace(" ", r"""[\s"'-]{1,4}""")
    return _NAME.sub(lambda name: parts[name[1]], text)


def _none_before(choice: re.Match[str]) -> str:
    """Return one condition for each word, because Python allows only words of one length."""
    words, rest = choice.groups(default="")
    return "".join(rf"(?<!{word}{rest})" for word in words.split("|")).replace(" ", r"\s")
