"""What a reply says in words, free of the form it is in."""

from collections.abc import Iterator
from typing import Any, cast

from jurybox.judging.flow import Defect
from jurybox.judging.replies.objects import find_objects


def spoken(text: str) -> Iterator[str]:
    """Yield the texts of a reply one by one: each string in its objects, and the prose around them.

    Escapes are undone and fields kept apart, so that neither hides a word or lends it a denial.
    A reply that can't be taken apart is one text.
    """
    objects = find_objects(text)
    if any(isinstance(found, Defect) for found in objects):
        yield text
        return
    at = 0
    for found in objects:
        if not isinstance(found, Defect):
            yield text[at : found.start]
            yield from _strings(found.value)
            at = found.end
    yield text[at:]


def _strings(value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    # No recursion: a reply may be nested as deeply as its reader allows.
    waiting: list[Any] = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            yield current
        elif isinstance(current, dict):
            waiting += reversed(cast("dict[str, Any]", current).values())
        elif isinstance(current, list):
            waiting += reversed(cast("list[Any]", current))
