"""The marks of layout in a response: lists, headings, bold, code, tables, emoji."""

import re
from typing import Final

_PATTERNS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("lists", re.compile(r"^[ \t]{0,8}(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)),
    ("headings", re.compile(r"^ {0,3}#{1,6}[ \t]+\S", re.MULTILINE)),
    ("bold", re.compile(r"\*\*[^*\s][^*\n]{0,400}\*\*|__[^_\s][^_\n]{0,400}__")),
    ("code", re.compile(r"^ {0,3}(?:```|~~~)|`[^`\n]{1,400}`", re.MULTILINE)),
    ("tables", re.compile(r"^[ \t]*\|?[ \t]*:?-{3,}:?[ \t]*\|[-|: \t]*$", re.MULTILINE)),
    (
        "emoji",
        re.compile("[\u2600-\u26ff\u2705\u2728\u274c\u2753-\u2757\u2764\U0001f300-\U0001faff]"),
    ),
)

MARKS: Final = tuple(name for name, _ in _PATTERNS)
"""The names of the marks, in the order of their bits."""


def marks_in(text: str) -> int:
    """Return which marks a text has, a bit for each: a run of many samples keeps only numbers."""
    return sum(1 << bit for bit, (_, pattern) in enumerate(_PATTERNS) if pattern.search(text))


def words_in(text: str) -> int:
    """Return how long a text is, in words."""
    return len(text.split())
