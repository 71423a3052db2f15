"""The contents of another tool's file, before they are written as a suite."""

import math
from collections import Counter
from typing import Any, cast

import msgspec

from jurybox.datasets.row_reader import Record
from jurybox.text_format import counted, printable

_ROLES = ("system", "user", "assistant")


class ForeignSuite(msgspec.Struct, kw_only=True):
    """Rows, recorded judgments, targets and judges, and a count of what has no counterpart."""

    name: str = ""
    format: str = ""
    rows: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    ratings: list[dict[str, Any]] = []
    scale: str = "0-1"
    targets: list[Record] = []
    judges: list[str] = []
    rubric: str = ""
    lost: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])

    def lose(self, noun: str, which: str, what: str, count: int = 1) -> None:
        """Count something that can't be carried over as it is."""
        self.lost[noun, f"{which}: {what}"] += count

    def losses(self) -> list[str]:
        """Return a line for each kind of thing that can't be carried over."""
        counts = self.lost.items()
        return [printable(f"{counted(count, noun)} {which}") for (noun, which), count in counts]


def is_number(value: object) -> bool:
    """Tell whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def mapping(value: object) -> dict[str, Any]:
    """Return an object; anything else counts as an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """Return a list, a single value as a list of one, and nothing as an empty one."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def asked(value: object) -> dict[str, object] | None:
    """Return a question as a row has it: a text, or turns that end with the user's; else None."""
    if isinstance(value, str):
        return {"task": value} if value.strip() else None
    turns: list[dict[str, str]] = []
    for turn in map(mapping, listing(value)):
        content = content_of(turn.get("content"))
        if content is None or turn.get("role") not in _ROLES:
            return None
        turns.append({"role": turn["role"], "content": content})
    if not turns or turns[-1]["role"] != "user":
        return None
    return {"task": turns[0]["content"]} if len(turns) == 1 else {"messages": turns}


def content_of(value: object) -> str | None:
    """Return the text of a turn; None where it is anything but text."""
    if isinstance(value, str):
        return value
    parts = [mapping(part).get("text") for part in listing(value)]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else None
