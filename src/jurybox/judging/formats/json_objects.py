"""Finding JSON objects in a reply, strictly.

Python's reader lets things through that a verdict must not have: a key given twice, NaN, a number
that would be rounded, half a character. Here they are defects, like any other fault of an object.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, cast

import msgspec

from jurybox.judging.flow import Defect

# An object begins with a key and a colon, or ends at once; `{a, b}` and `{"a", "b"}` are none.
_OPENING = re.compile(r'\{(?=\s*(?:\}|"(?:[^"\\]|\\.)*"\s*:))')
_LONGEST_NUMBER = 40


class FoundObject(msgspec.Struct, frozen=True):
    """An object, and where in the text it stands."""

    value: dict[str, Any]
    start: int
    end: int


class _RefusedError(ValueError):
    """The object has a fault that Python's reader would let through."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RefusedError(f"the key {json.dumps(key)} is given twice")
            seen.add(key)
    return found


def _no_constant(name: str) -> float:
    raise _RefusedError(f"{name} is not a JSON number")


def _exact(text: str) -> float:
    """Read a fraction, and refuse one that would be rounded: the score must be what was written."""
    value = float(text)
    # An exponent can be too large even for a Decimal.
    kept = len(text) <= _LONGEST_NUMBER and math.isfinite(value)
    if not kept or not _same(text, value):
        raise _RefusedError(f"the number {text[:_LONGEST_NUMBER]} can't be kept exactly")
    return value


def _same(text: str, value: float) -> bool:
    try:
        return Decimal(text) == Decimal(repr(value))
    except InvalidOperation:
        return False


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_exact
)


def read_object(text: str, start: int = 0) -> FoundObject | Defect:
    """Read the object that begins at ``start``."""
    try:
        value, end = _DECODER.raw_decode(text, start)
        # Half a character comes from an escape, or from a text that can't be encoded either.
        piece = text[start:end]
        if "\\u" in piece or not piece.isascii():
            json.dumps(value, ensure_ascii=False).encode()
    except _RefusedError as error:
        return Defect(f"{error}.")
    except UnicodeEncodeError:
        return Defect("a text in the JSON object holds half a character (a lone surrogate).")
    except json.JSONDecodeError as error:
        reason = error.msg.removesuffix(" starting at").removesuffix(" at")
        return Defect(
            f"the JSON object is malformed at its character {error.pos - start}: {reason}."
        )
    except RecursionError:
        return Defect("the JSON object is nested too deeply.")
    except ValueError:
        return Defect("the JSON object holds a number of too many digits.")
    return FoundObject(value, start, end)


_QUICK = msgspec.json.Decoder().decode


def plain_object(text: str) -> FoundObject | None:
    """Read a text that is one object and nothing else, unless there might be a fault in it.

    Most replies are, and so it takes half the time.
    """
    if text[:1] != "{" or text[-1:] != "}" or "\\" in text:
        return None
    try:
        value = cast("dict[str, Any]", _QUICK(text))
        # Without escapes every quote belongs to a text that was read, but for those of a key that
        # is given twice.
        if text.count('"') != 2 * _quoted((value,)):
            return None
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return FoundObject(value, 0, len(text))


def _quoted(values: Iterable[object]) -> int:
    """Count the texts and keys in values.

    Raises:
        _RefusedError: there is a fraction, which has to be looked at as it was written.

    """
    count = 0
    for each in values:
        if isinstance(each, str):
            count += 1
        elif isinstance(each, dict):
            held = cast("dict[str, object]", each)
            count += len(held) + _quoted(held.values())
        elif isinstance(each, list):
            count += _quoted(cast("list[object]", each))
        elif isinstance(each, float):
            raise _RefusedError("it might be rounded")
    return count


# A reply is read for its verdict, and soon after once more for what it says.
@lru_cache(maxsize=16)
def find_objects(text: str) -> tuple[FoundObject | Defect, ...]:
    """Return every outermost object in a text.

    A malformed one is a defect and ends the search: what stands inside it, a quoted verdict for
    instance, must not be taken for an object of the reply's own.
    """
    plain = plain_object(text)
    return tuple(_objects(text)) if plain is None else (plain,)


def _objects(text: str) -> Iterator[FoundObject | Defect]:
    at = 0
    while match := _OPENING.search(text, at):
        found = read_object(text, match.start())
        yield found
        if isinstance(found, Defect):
            return
        at = found.end


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
