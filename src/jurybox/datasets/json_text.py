"""JSON read strictly and fast; where it is faulty, what is wrong and at which character.

A key that is given twice is refused: one of the two values would be lost unseen.
"""

import json
from typing import Final, NoReturn, cast

import msgspec

from jurybox.datasets.source import SAVE_AS_UTF8
from jurybox.datasets.values import Refused

_DECODE: Final = msgspec.json.Decoder().decode
_BEFORE_COLON: Final = b'" \t\r\n'
_NESTED: Final = frozenset({dict, list})


class Fault(Refused):
    """JSON can't be read; ``column`` says where, counted in characters from 1."""

    def __init__(self, column: int, code: str, problem: str, mend: str) -> None:
        super().__init__(code, problem, mend)
        self.column = column


def decode(data: bytes) -> object:
    """Read JSON.

    Raises:
        Fault: it has a fault.

    """
    try:
        value = cast("object", _DECODE(data))
        # As many colons as keys: none is given twice. That settles most rows at once.
        if data.count(b":") != _count(value) and _key_ends(data) != _keys_in(value):
            _read_slowly(data.decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explained(data, error) from None
    return value


def _count(value: object) -> int:
    """Return how many keys a value has on its first level."""
    return len(cast("dict[str, object]", value)) if isinstance(value, dict) else 0


def _key_ends(data: bytes) -> int:
    """Return how many keys a text may have: one a colon behind a quote or a space.

    Never too few, given twice or not; too many where a text holds such a colon.
    """
    parts = data.split(b":")
    parts.pop()
    return sum([part[-1:] in _BEFORE_COLON for part in parts])


def _keys_in(value: object) -> int:
    """Return how many keys a value has on all levels."""
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value)
        deeper = [each for each in inner.values() if type(each) in _NESTED]
        return len(inner) + (sum(map(_keys_in, deeper)) if deeper else 0)
    if isinstance(value, list):
        return sum(map(_keys_in, cast("list[object]", value)))
    return 0


def _explained(data: bytes, error: Exception) -> Fault:
    """Return what is wrong, as exactly as can be told."""
    try:
        text = data.decode()
    except UnicodeDecodeError as bad:
        column = len(data[: bad.start].decode("utf-8", "replace")) + 1
        problem = f"byte 0x{data[bad.start]:02x} is not UTF-8"
        return Fault(column, "encoding", problem, SAVE_AS_UTF8)
    if "\0" in text:
        problem = "the line holds NUL characters, as UTF-16 has them"
        return Fault(text.index("\0") + 1, "encoding", problem, SAVE_AS_UTF8)
    try:
        _read_slowly(text)
    except Fault as fault:
        return fault
    if isinstance(error, RecursionError):
        return _too_deep()
    return Fault(1, "json-syntax", *_let_through(text, error))


def _let_through(text: str, error: Exception) -> tuple[str, str]:
    """Name a fault that Python's own reader is content with."""
    if "out of range" in str(error):
        return "a number is too large", "write it as a text"
    if "\\u" in text:
        return "a text holds half a character (a lone surrogate)", "remove it"
    return f"not valid JSON ({error})", "mend it"


def _read_slowly(text: str) -> None:
    """Read JSON with a reader that says where a fault is."""
    try:
        _READER.decode(text)
    except json.JSONDecodeError as error:
        raise _located(text, error) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        problem = "a number has too many digits"
        raise Fault(1, "json-syntax", problem, "write it as a text") from None


def _located(text: str, error: json.JSONDecodeError) -> Fault:
    if error.msg == "Extra data":
        problem = "something follows the JSON value"
        return Fault(error.pos + 1, "json-syntax", problem, "give each row a line of its own")
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        problem = f"the JSON breaks off ({_reason(error)})"
        return Fault(error.pos + 1, "json-syntax", problem, "complete it, on one line")
    problem = f"not valid JSON ({_reason(error)})"
    return Fault(error.pos + 1, "json-syntax", problem, "mend it here")


def _reason(error: json.JSONDecodeError) -> str:
    reason = error.msg.removesuffix(" starting at").removesuffix(" at")
    return reason[:1].lower() + reason[1:]


def _too_deep() -> Fault:
    return Fault(1, "too-deep", "the JSON is nested too deeply", "make it flatter")


def _unique(pairs: list[tuple[str, object]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            problem = f"the key `{key}` is given twice"
            raise Fault(1, "duplicate-key", problem, "remove one of them")
        seen.add(key)


def _no_constant(name: str) -> NoReturn:
    raise Fault(1, "json-syntax", f"{name} is not a JSON number", "use null, or leave it out")


_READER: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
