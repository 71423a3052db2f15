"""Markdown in which the words of models and datasets are words and nothing else."""

import re
from collections.abc import Iterable, Sequence

# What no page should get: it may move the cursor, hide text or turn its direction.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_SPACES = re.compile(r"\s+")
_MARKS = re.compile(r"[\\`*_\[\]{}|~#!$^]")
# Many pages make a link of everything that looks like an address.
_ADDRESS = re.compile(r":(?=//)|(?<=www)\.", re.IGNORECASE)


def plain(text: str) -> str:
    """Return text for one line or one cell: it shows as it is, and does nothing."""
    line = _CONTROL.sub("\ufffd", _SPACES.sub(" ", text)).strip()
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ADDRESS.sub(r"\\\g<0>", _MARKS.sub(r"\\\g<0>", line))


def code(name: str) -> str:
    """Return a name of the program's own as code; whatever could end the code is text instead."""
    return f"`{name}`" if re.fullmatch(r"[\w .:<>=!/%+-]+", name, re.ASCII) else plain(name)


def item(text: str) -> str:
    """Return one item of a list; the text is Markdown already."""
    return f"- {text}"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table as lines; its cells are Markdown already."""
    lines = [_row(headings), _row(["---"] * len(headings))]
    lines += [_row(row) for row in rows]
    return lines


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
