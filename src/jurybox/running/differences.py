"""Where two stored texts differ, in words."""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

_LONGEST: Final = 80
_MISSING: Final = "nothing"


def first_difference(
    column: str, kept: str | None, again: str | None, witness: str = "the replies say"
) -> str:
    """Say where two JSON texts differ first, in words."""
    try:
        one = None if kept is None else msgspec.json.decode(kept)
        other = None if again is None else msgspec.json.decode(again)
    except msgspec.DecodeError as error:
        return f"{column} can't be read ({error})"
    found = next(_differences(column, one, other), None)
    if found is None:
        return f"{column} is written otherwise"
    path, left, right = found
    return f"{path} is {_short(left)}, and {witness} {_short(right)}"


def _differences(path: str, one: object, other: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        for key in dict.fromkeys((*left, *right)):
            yield from _differences(
                f"{path}.{key}", left.get(key, _MISSING), right.get(key, _MISSING)
            )
    elif isinstance(one, list) and isinstance(other, list):
        mine, theirs = cast("list[Any]", one), cast("list[Any]", other)
        if len(mine) != len(theirs):
            yield path, mine, theirs
        for index, pair in enumerate(zip(mine, theirs, strict=False)):
            yield from _differences(f"{path}[{index}]", *pair)
    elif one != other:
        yield path, one, other


def _short(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[: _LONGEST - 3]}...`"
