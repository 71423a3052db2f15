"""What a reply says in words, free of the form it is in."""

from collections.abc import Iterator
from typing import Any, cast

from jurybox.judging.flow import Defect
from jurybox.judging.formats.objects import find_objects


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
    within: list[Iterator[Any]] = [iter(value.values())]
    while within:
        for each in within[-1]:
            if isinstance(each, str):
                texts.append(each)
            elif isinstance(each, dict):
                within.append(iter(cast("dict[str, Any]", each).values()))
                break
            elif isinstance(each, list):
                within.append(iter(cast("list[Any]", each)))
                break
        else:
            within.pop()
