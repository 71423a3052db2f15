"""Names and texts in messages: the nearest known name, lists, printable text."""

import difflib
from collections.abc import Iterable

# Comparing takes time that grows with the square of the length.
_LONGEST = 60


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` most likely misspells."""
    if len(name) > _LONGEST:
        return None
    folded = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return how to fix an unknown name: the nearest known one, or else ``otherwise``."""
    close = closest(name, known)
    return otherwise if close is None else f"did you mean `{close}`?"


def listed(names: Iterable[str]) -> str:
    """Return names in backticks, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def printable(text: str) -> str:
    """Return a text that can be printed anywhere, whatever a file or its name holds."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is one."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
