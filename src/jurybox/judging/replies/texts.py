"""What a reply says in words, free of the form it is in."""

from typing import Any, Final, cast

from jurybox.judging.flow import Defect
from jurybox.judging.replies.objects import find_objects

_TEXT: Final = frozenset({str})
_HOLDING: Final = frozenset({str, dict, list})


def spoken(text: str) -> list[str]:
    """Return the texts of a reply: each string in its objects, and the prose around them.

    Escapes are undone and fields kept apart, so that neither hides a word or lends it a denial.
    A reply that can't be taken apart is one text.
    """
    texts: list[str] = []
    at = 0
    for found in find_objects(text):
        if isinstance(found, Defect):
            return [text]
        if at < found.start:
            texts.append(text[at : found.start])
        _add_strings(found.value, texts)
        at = found.end
    if at < len(text):
        texts.append(text[at:])
    return texts


def _add_strings(value: dict[str, Any], texts: list[str]) -> None:
    # No recursion: a reply may be nested as deeply as its reader allows.
    waiting: list[Any] = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            texts.append(current)
            continue
        if isinstance(current, dict):
            held = list(cast("dict[str, Any]", current).values())
        elif isinstance(current, list):
            held = cast("list[Any]", current)
        else:
            continue
        # Most objects hold nothing but texts, or none at all.
        kinds = set(map(type, held))
        if kinds <= _TEXT:
            texts += held
        elif not kinds.isdisjoint(_HOLDING):
            waiting += reversed(held)
