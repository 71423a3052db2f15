"""JSONL: one JSON object a line, read strictly.

JSON read strictly; where it is faulty, what is wrong and at which character.

A key that is given twice is refused: one of the two values would be lost unseen. So are numbers and
texts that other programs couldn't read back.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from typing import Final, NoReturn, cast

from jurybox.datasets.fields import FieldError, kind_of
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import SAVE_AS_UTF8, Source
from jurybox.documents.findings import Findings, Lines, Place


class JsonError(FieldError):
    """JSON can't be read; ``column`` says where, counted in characters from 1."""

    def __init__(self, column: int, code: str, problem: str, hint: str) -> None:
        super().__init__(code, problem, hint)
        self.column = column


def decode(data: bytes) -> object:
    """Read JSON.

    Raises:
        JsonError: it has a fault.

    """
    text = text_of(data)
    try:
        value = cast("object", _READER.decode(text))
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _located(text, error) from None
    except UnicodeEncodeError:
        problem = "a text holds half a character (a lone surrogate)"
        raise JsonError(1, "json-syntax", problem, "remove it") from None
    except RecursionError:
        problem = "the JSON is nested too deeply"
        raise JsonError(1, "too-deep", problem, "make it flatter") from None
    except ValueError:
        problem = "a number has too many digits"
        raise JsonError(1, "json-syntax", problem, "write it as a text") from None
    return value


def text_of(data: bytes) -> str:
    """Return bytes as text.

    Raises:
        JsonError: they aren't UTF-8, or have NUL characters.

    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        column = len(data[: error.start].decode("utf-8", "replace")) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise JsonError(column, "encoding", problem, SAVE_AS_UTF8) from None
    if "\0" in text:
        problem = "the line holds NUL characters, as UTF-16 has them"
        raise JsonError(text.index("\0") + 1, "encoding", problem, SAVE_AS_UTF8)
    return text


def _located(text: str, error: json.JSONDecodeError) -> JsonError:
    if error.msg == "Extra data":
        problem = "something follows the JSON value"
        return JsonError(error.pos + 1, "json-syntax", problem, "give each row a line of its own")
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        problem = f"the JSON breaks off ({_reason(error)})"
        return JsonError(error.pos + 1, "json-syntax", problem, "complete it, on one line")
    problem = f"not valid JSON ({_reason(error)})"
    return JsonError(error.pos + 1, "json-syntax", problem, "correct it here")


def _reason(error: json.JSONDecodeError) -> str:
    reason = error.msg.removesuffix(" starting at").removesuffix(" at")
    return reason[:1].lower() + reason[1:]


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        problem = f"the key `{twice}` is given twice"
        raise JsonError(1, "duplicate-key", problem, "remove one of them")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonError(1, "json-syntax", "a number is too large", "write it as a text")
    return number


def _no_constant(name: str) -> NoReturn:
    raise JsonError(1, "json-syntax", f"{name} is not a JSON number", "use null, or leave it out")


_READER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant
)


def read_json_lines(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every object with the number of its line."""
    findings = context.findings
    first = True
    for number, line in source.lines(findings):
        try:
            value = decode(line)
        except JsonError as fault:
            if not line.strip():
                continue
            if first and line.lstrip().startswith(b"["):
                _note_array(findings, number)
                return
            place = Place(number, fault.column)
            findings.add(place, fault.code, fault.problem, fault.hint)
            value = None
        else:
            if type(value) is dict:
                yield number, cast("Record", value)
            elif first and type(value) is list:
                _note_array(findings, number)
                return
            else:
                problem = f"the line is {kind_of(value)}, not an object"
                findings.add(Place(number), "wrong-type", problem, "write an object, `{...}`")
        first = False


def _note_array(findings: Findings, number: int) -> None:
    """Report an array once, instead of a finding on every line."""
    hint = "call the file `.json`, or write each object on a line of its own, without commas"
    findings.add(Place(number), "wrong-type", "the file is a JSON list", hint)


def read_json_list(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every object of a list with its number; the file is read whole."""
    data = b"\n".join(line for _, line in source.lines(context.findings))
    try:
        value = decode(data)
    except JsonError as fault:
        place = Lines(data.decode("utf-8", "replace"), Place(1)).place(fault.column - 1)
        context.findings.add(place, fault.code, fault.problem, fault.hint)
        return
    if type(value) is not list:
        hint = "write `[{...}, {...}]`, or one object per line and call the file `.jsonl`"
        context.note(1, "wrong-type", f"the file is {kind_of(value)}, not a list", hint)
        return
    for number, each in enumerate(cast("list[object]", value), start=1):
        if type(each) is dict:
            yield number, cast("Record", each)
        else:
            problem = f"row {number} is {kind_of(each)}, not an object"
            context.note(number, "wrong-type", problem, "write an object, `{...}`")
