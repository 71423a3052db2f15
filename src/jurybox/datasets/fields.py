"""The fields of a row: their names, and how each value is read."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, cast

import msgspec

from jurybox.rubric.checks import ROW_CHECKS, read_check
from jurybox.sample import Turn
from jurybox.text_format import listed

MAX_ID: Final = 200
MAX_DEPTH: Final = 64

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SHOWN = 40
_LARGE = 10**15


class FieldError(Exception):
    """A value can't be used."""

    def __init__(self, code: str, problem: str, hint: str) -> None:
        super().__init__(problem)
        self.code = code
        self.problem = problem
        self.hint = hint


Reader = Callable[[object, str], object]
"""Reads a named value; returns None if it counts as absent."""


def kind_of(value: object) -> str:
    """Describe a value in words."""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    match value:
        case str():
            short = value if len(value) <= _SHOWN else value[: _SHOWN - 3] + "..."
            return f'the string "{short}"'
        case int() | float():
            return "a large number" if abs(value) >= _LARGE else f"the number {value}"
        case _:
            return _KINDS.get(type(value), "a value of another kind")


_KINDS: Final[Mapping[type, str]] = MappingProxyType(
    {list: "a list", dict: "an object", type(None): "null"}
)


def _wrong(name: str, value: object, wanted: str) -> FieldError:
    return FieldError("wrong-type", f"`{name}` is {kind_of(value)}", f"give {wanted}")


def read_id(value: object, name: str) -> str:
    """Read an id: a short string, or a whole number, which becomes a string."""
    if type(value) is int:
        value = _digits(value)
    if type(value) is not str:
        raise _wrong(name, value, "a string or a whole number")
    if len(value) > MAX_ID:
        raise FieldError(
            "bad-id", f"`{name}` has {len(value):,} characters", f"use at most {MAX_ID}"
        )
    if not value or value.isspace():
        raise FieldError("bad-id", f"`{name}` is blank", "give every row a unique id, or none")
    # The first test is quick and nearly always sufficient.
    if not value.isprintable() and _CONTROL.search(value):
        raise FieldError("bad-id", f"`{name}` contains a control character", "remove it")
    return value


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        # Python refuses to print thousands of digits.
        problem = "a number has thousands of digits"
        raise FieldError("bad-id", problem, f"use at most {MAX_ID}") from None


def read_filled_text(value: object, name: str) -> str:
    """Read a string that isn't blank."""
    text = read_any_text(value, name)
    if not text or text.isspace():
        raise FieldError("blank", f"`{name}` is blank", "give a string, or leave it out")
    return text


def read_optional_text(value: object, name: str) -> str | None:
    """Read a string; a blank one counts as absent."""
    text = read_any_text(value, name)
    return text if text and not text.isspace() else None


def read_reference(value: object, name: str) -> str:
    """Read a string that isn't blank; a whole number becomes a string."""
    return read_filled_text(_digits(value) if type(value) is int else value, name)


def read_context(value: object, name: str) -> str | None:
    """Read a string, a list of strings, or a list of objects with an id and a text."""
    if type(value) is not list:
        return read_optional_text(value, name)
    given = enumerate(cast("list[object]", value))
    parts = [_read_part(each, f"{name}[{index}]") for index, each in given]
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1]
    named = (f"[{part or number}] {text}" for number, (part, text) in enumerate(parts, start=1))
    return "\n\n".join(named) or None


def _read_part(value: object, name: str) -> tuple[str, str]:
    """Return the id of a part of a context, which may be empty, and its text."""
    if type(value) is not dict:
        return "", read_filled_text(value, name)
    part = cast("dict[str, object]", value)
    key = next((each for each in _PART_TEXTS if part.get(each) is not None), None)
    if key is None:
        problem = f"`{name}` has none of {listed(_PART_TEXTS)}"
        raise FieldError("missing-key", problem, 'give strings, or `{"id": "...", "text": "..."}`')
    own = part.get("id")
    return "" if own is None else read_id(own, f"{name}.id"), read_filled_text(part[key], name)


_PART_TEXTS: Final = ("text", "content", "page_content")


def read_any_text(value: object, name: str) -> str:
    """Read a string; it may be empty, as a model's reply may be."""
    if type(value) is not str:
        raise _wrong(name, value, "a string")
    return value


def _read_as(kind: Any, wanted: str) -> Reader:  # noqa: ANN401 - a type
    """Return a reader for values of a type with bounds; it neither rounds nor converts."""
    # Built once per type instead of for every value.
    holder: Any = msgspec.defstruct("Holder", [("value", kind)])

    def read(value: object, name: str) -> object:
        try:
            return msgspec.convert({"value": _without_nulls(value)}, holder).value
        except msgspec.ValidationError as error:
            reason, _, path = str(error).partition(" - at `$.value")
            if path == "`":
                raise _wrong(name, value, wanted) from None
            reason = reason.replace("Invalid enum value", "there is no")
            problem = f"`{name}{path.rstrip('`')}`: {reason[:1].lower()}{reason[1:]}"
            raise FieldError("wrong-type", problem, f"give {wanted}") from None

    return read


def _without_nulls(value: object) -> object:
    """Drop nulls from the objects in a list, since a typed column gives every object all keys."""
    if type(value) is not list:
        return value
    return [
        {key: part for key, part in cast("dict[str, object]", each).items() if part is not None}
        if type(each) is dict
        else each
        for each in cast("list[object]", value)
    ]


# The maximum is thirty years, or more tokens than any model reads. Larger numbers are mistakes, and
# their sums would be too large for other programs.
read_latency: Final = _read_as(
    Annotated[float, msgspec.Meta(ge=0, le=1e12)], "a number of milliseconds from 0 to 1e12"
)
read_tokens: Final = _read_as(
    Annotated[int, msgspec.Meta(ge=0, le=10**15)], "a whole number from 0 to 1e15"
)
read_flag: Final = _read_as(bool, "`true` or `false`, without quotes")
read_messages: Final = _read_as(
    tuple[Turn, ...],
    'a list such as `[{"role": "user", "content": "Hello"}]`; roles are system, user and assistant',
)


def read_checks(value: object, name: str) -> tuple[dict[str, object], ...] | None:
    """Read a row's own checks, each an object such as `{"contains": "Paris"}`."""
    if type(value) is not list:
        raise _wrong(name, value, 'a list such as `[{"contains": "Paris"}]`')
    entries = cast("list[dict[str, object]]", _without_nulls(cast("object", value)))
    for index, entry in enumerate(entries):
        check, faults = read_check(entry)
        for fault in faults:
            raise FieldError(fault.code, f"`{name}[{index}]`: {fault.problem}", fault.hint)
        if check is None or check.kind == ROW_CHECKS:
            raise _wrong(f"{name}[{index}]", entry, "a check")
    return tuple(entries) or None


def read_metadata(value: object, name: str) -> dict[str, object]:
    """Read an object with any values."""
    if not isinstance(value, dict):
        raise _wrong(name, value, "an object")
    return cast("dict[str, object]", read_extra(cast("object", value), name))


def read_extra(value: object, name: str) -> object:
    """Read the value of a column that isn't a field: any value, up to a nesting limit."""
    if not isinstance(value, dict | list):
        return value
    level = [cast("object", value)]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return cast("object", value)
    hint = f"use at most {MAX_DEPTH} levels"
    raise FieldError("too-deep", f"`{name}` is nested too deeply", hint)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


Cell = Literal["text", "number", "count", "flag", "json"]
"""The kind of value that a CSV cell is converted to."""
Part = Literal["row", "timing", "usage"]
"""Where a value belongs: to the row itself, or to the timing or usage of its response."""


class RowField(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a row: how its value is read, its other names, and where it belongs."""

    read: Reader
    aliases: tuple[str, ...] = ()
    cell: Cell = "text"
    part: Part = "row"


FIELDS: Final[Mapping[str, RowField]] = MappingProxyType(
    {
        "id": RowField(read=read_id),
        "task": RowField(
            read=read_filled_text,
            aliases=("input", "question", "user_input", "prompt", "query", "instruction"),
        ),
        "reference": RowField(
            read=read_reference,
            aliases=(
                "reference_answer",
                "expected",
                "ideal",
                "target",
                "expected_output",
                "expected_answer",
                "ground_truth",
                "correct_answer",
            ),
        ),
        "context": RowField(
            read=read_context,
            aliases=("provided_context", "contexts", "retrieval_context", "retrieved_contexts"),
        ),
        "messages": RowField(
            read=read_messages, aliases=("conversation", "chat_history"), cell="json"
        ),
        "scenario": RowField(read=read_optional_text),
        "metadata": RowField(read=read_metadata, cell="json"),
        "checks": RowField(read=read_checks, cell="json"),
        "response": RowField(
            read=read_any_text,
            aliases=(
                "candidate_answer",
                "output",
                "answer",
                "completion",
                "actual_output",
                "prediction",
                "generated_answer",
                "model_output",
                "response_a",
            ),
        ),
        "response_b": RowField(read=read_any_text),
        "latency_e2e_ms": RowField(read=read_latency, cell="number", part="timing"),
        "latency_model_ms": RowField(read=read_latency, cell="number", part="timing"),
        "timed_out": RowField(read=read_flag, cell="flag", part="timing"),
        "input_tokens": RowField(read=read_tokens, cell="count", part="usage"),
        "output_tokens": RowField(read=read_tokens, cell="count", part="usage"),
    }
)
"""Every field of a row, named as in `Row`, `Timing` and `Usage`."""

FIELD_OF: Final[Mapping[str, str]] = MappingProxyType(
    {name: field for field, each in FIELDS.items() for name in (field, *each.aliases)}
)
"""The field that each name or alias refers to."""


@cache
def fields_of(part: Part) -> frozenset[str]:
    """Return the fields that belong to one part."""
    return frozenset(name for name, each in FIELDS.items() if each.part == part)


def fields_with(cell: Cell) -> frozenset[str]:
    """Return the fields whose cells have this type."""
    return frozenset(name for name, each in FIELDS.items() if each.cell == cell)


# English words that are one letter away from a field's name.
_OTHER_WORDS: Final = frozenset({"content", "idea", "message"})
_SHORTEST: Final = 4
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEPARATOR = re.compile(r"[\W_]+")


class Columns:
    """Maps columns to fields: by the suite's names, else by the default names.

    If the suite names a field's column, columns with the field's default names count as other data.
    """

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.given: Final = given or {}
        self._named = {column: field for field, column in self.given.items()}
        # Cached, because it is called for every cell of a dataset.
        self.field: Final = cache(self._field)
        self.reader: Final = cache(self._reader)

    def _field(self, column: str) -> str | None:
        """Return the field of a column; None for other data."""
        field = self._named.get(column) or FIELD_OF.get(_plain(column))
        is_other = field is not None and column != self.given.get(field, column)
        return None if is_other else field

    def _reader(self, column: str) -> tuple[str | None, Reader]:
        """Return the field of a column, and the reader of its values."""
        field = self.field(column)
        return field, read_extra if field is None else FIELDS[field].read

    def column(self, field: str) -> str:
        """Return the column that the suite names for a field, by default the field's own name."""
        return self.given.get(field, field)

    def misspelled(self, column: str) -> str | None:
        """Return the field name that an unknown column probably misspells."""
        plain = _plain(column)
        if plain in _OTHER_WORDS or column in self._named or len(plain) < _SHORTEST:
            return None
        known = (name for name, field in FIELD_OF.items() if field not in self.given)
        return next((name for name in known if _is_slip(plain, name)), None)


def _plain(column: str) -> str:
    """Return a name in the style of fields: `Expected Output` and `expectedOutput` become one."""
    return _SEPARATOR.sub("_", _CAMEL.sub("_", column.strip())).strip("_").lower()


def _is_slip(written: str, meant: str) -> bool:
    """Return whether names differ by one typo after the first letter."""
    pairs = enumerate(zip(written, meant, strict=False))
    at = next((at for at, (one, other) in pairs if one != other), min(len(written), len(meant)))
    rest, wanted = written[at:], meant[at:]
    swapped = rest[1:2] + rest[:1] + rest[2:] == wanted
    return at > 0 and (swapped or wanted[1:] in {rest, rest[1:]} or rest[1:] == wanted)
