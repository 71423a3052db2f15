"""Names and texts in messages: the nearest known name, lists, and printable text."""

import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import msgspec

# Longer names aren't compared, because that takes time quadratic in the length.
_LONGEST = 60
# Above 0.62, the similarity of `assert` and `dataset`, and of `--model` and `--help`.
_ALIKE = 0.65
_SELECTORS = ("\U000e0100", "\U000e01ef")
_UNUSUAL = re.compile("[^ -~]")


def closest(name: str, known: Iterable[str], alike: float = _ALIKE) -> str | None:
    """Return the known name that ``name`` most likely misspells; None if none is similar."""
    if len(name) > _LONGEST:
        return None
    folded = {each.casefold(): each for each in known}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=alike)
    return folded[close[0]] if close else None


def nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return how to fix an unknown name: the nearest known name; without any, ``otherwise``."""
    close = closest(name, known)
    return otherwise if close is None else f"did you mean `{close}`?"


def listed(names: Iterable[str]) -> str:
    """Return names in backticks, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def joined(parts: Sequence[str], link: str = "and") -> str:
    """Return parts as one list in words, such as ``a, b and c``."""
    return f" {link} ".join([*filter(None, [", ".join(parts[:-1])]), *parts[-1:]])


def _marked(char: str) -> str:
    return " " if char in "\t\r\n" or unicodedata.category(char) == "Zs" else "\ufffd"


def visible(text: str, *, kept: str = "", mark: Callable[[str], str] = _marked) -> str:
    """Return a text without hidden, reordering or terminal control characters.

    Control characters, direction marks, zero-width and tag characters are replaced by ``mark``,
    except those in ``kept``.
    """
    if text.isprintable() and (text.isascii() or max(text) < _SELECTORS[0]):
        return text

    def shown(found: re.Match[str]) -> str:
        char = found[0]
        return char if _is_seen(char) or char in kept or _joins(text, found.start()) else mark(char)

    return _UNUSUAL.sub(shown, text)


def visible_json(text: str) -> str:
    """Return equivalent JSON with invisible characters escaped."""
    return visible(text, kept="\n", mark=lambda char: json.dumps(char)[1:-1])


def printable(text: str) -> str:
    """Return a text that is safe to print on one line."""
    return visible(text, mark=lambda _: "\ufffd")


def _is_seen(char: str) -> bool:
    # Rare variation selectors can carry a hidden text behind an emoji.
    return char.isprintable() and not _SELECTORS[0] <= char <= _SELECTORS[1]


def _joins(text: str, index: int) -> bool:
    """Return whether a character joins two letters of a script, or two emoji."""
    around = text[index - 1 : index] + text[index + 1 : index + 2]
    joins = text[index] in "\u200c\u200d" and len(around) == 2  # noqa: PLR2004 - both sides
    return joins and not around[0].isascii() and not around[1].isascii() and around.isprintable()


_OF_ONE = {"are": "is", "were": "was", "have": "has", "pass": "passes"}


def verb(count: int, plural: str) -> str:
    """Return the form of a verb that goes with a count: ``fails`` with 1, else ``fail``."""
    return _OF_ONE.get(plural, f"{plural}s") if count == 1 else plural


def counted(count: int, noun: str, does: str = "") -> str:
    """Return a count with its noun, and perhaps a verb, in singular or plural."""
    many = f"{count:,} {noun}" + ("" if count == 1 else "s")
    return f"{many} {verb(count, does)}" if does else many


def as_text(value: object) -> str:
    """Return a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def short_id(text: str, most: int = 44) -> str:
    """Return an id of limited length, cut in the middle: ids often differ only at their end."""
    end = most // 3
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[-end:]}"


def cut(text: str, most: int) -> str:
    """Return a text on one line of limited length, cut between words."""
    # Only the beginning is put on one line: a text may be very long.
    flat = " ".join(text[: 8 * most].split())
    if len(flat) <= most and len(text) <= 8 * most:
        return flat
    start = flat[: most - 1]
    words = start.rpartition(" ")[0]
    # A single long word is cut anywhere.
    return f"{words if 2 * len(words) > most else start}…"
