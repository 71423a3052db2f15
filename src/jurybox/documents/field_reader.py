"""Reads YAML as values of declared types; notes every fault and continues.

The fields of a struct declare the keys of a mapping: their types, bounds (`msgspec.Meta`), how a
text is parsed (`TextForm`), and an example for error messages.
"""

import re
from collections.abc import Callable, Container, Iterable, Sequence
from functools import cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec
from msgspec import UNSET, Meta

from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import read_number, show_number
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar
from jurybox.errors import ParseError
from jurybox.text_format import listed, nearest

S = TypeVar("S", bound=msgspec.Struct)
N = TypeVar("N", Items, Pairs)
T = TypeVar("T")

NAME = re.compile(r"[a-z][a-z0-9_]*")
NAME_HINT = "begin with a letter and use only `a-z`, `0-9` and `_`"


def parse_name(text: str) -> str:
    """Read the name of a metric, a lexicon or a decision."""
    if NAME.fullmatch(text) is None:
        raise ParseError(f"`{text}` can't be a name", NAME_HINT)
    return text


class TextForm(NamedTuple):
    """Marks a type that is written as text, with its parser and the error code for invalid text."""

    code: str
    parse: Callable[[str], Any]


Name = Annotated[str, TextForm("bad-name", parse_name)]


def kind_of(node: Node) -> str:
    """Describe a value for a message: `a list`, `a mapping`, or the text of a scalar."""
    match node:
        case Items():
            return "a list"
        case Pairs():
            return "a mapping"
        case Scalar(text=text, quoted=quoted):
            if not text and not quoted:
                return "nothing"
            return f'the string "{text}"' if quoted else f"`{text}`"


def node_at(node: Node | None, *path: str | int) -> Node | None:
    """Return the value at a path of keys and indexes; None if nothing is there."""
    for step in path:
        match node:
            case Pairs():
                node = next((value for key, value in node.pairs if key.text == step), None)
            case Items() if isinstance(step, int) and step < len(node.items):
                node = node.items[step]
            case _:
                return None
    return node


def key_place(node: Pairs, key: str) -> Place:
    """Return the place of a key, or of the mapping if the key is missing."""
    return next((each.place for each, _ in node.pairs if each.text == key), node.place)


def plain_number(node: Node) -> float | None:
    """Return the number in an unquoted scalar; None for any other node."""
    return read_number(node.text) if isinstance(node, Scalar) and not node.quoted else None


@cache
def fields_of(kind: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    """Return the fields of a struct; cached, because resolving its types is slow."""
    return msgspec.structs.fields(kind)


class FieldReader:
    """Reads values from nodes and remembers the place of each struct in the document."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self._places: dict[int, tuple[object, Place]] = {}

    def place_of(self, value: object, otherwise: Place) -> Place:
        """Return the place of a struct that this reader read; for any other, ``otherwise``."""
        return self._places.get(id(value), (value, otherwise))[1]

    def parse(self, node: Scalar, code: str, parse: Callable[[str], T]) -> T | None:
        """Read a scalar with ``parse``; if it raises `ParseError`, note the fault."""
        try:
            return parse(node.text)
        except ParseError as error:
            self.findings.add(node.place, code, error.problem, error.hint)
            return None

    def note_unknown(self, node: Pairs, what: str, known: Iterable[str]) -> None:
        """Note every unknown key."""
        known = list(known)
        for key, _ in node.pairs:
            if key.text not in known:
                hint = nearest(key.text, known, f"use one of {listed(known)}")
                problem = f"{what} has no key `{key.text}`"
                self.findings.add(key.place, "unknown-key", problem, hint)

    def open(self, kind: type[N], node: Node | None, what: str, hint: str) -> N | None:
        """Return the node if it is a list or a mapping, as wanted; otherwise note the fault."""
        if node is None or isinstance(node, kind):
            return node
        self.findings.add(node.place, "wrong-type", f"{what} is {kind_of(node)}", hint)
        return None

    def struct(self, kind: type[S], node: Pairs, what: str) -> S | None:
        """Read a struct from a mapping; None if a required field is missing or wrong."""
        fields = fields_of(kind)
        self.note_unknown(node, what, [field.encode_name for field in fields])
        values = self.fields(kind, node)
        required = [field for field in fields if field.required]
        for field in required:
            self.require(node, what, field.encode_name, _example(field.type) or "...")
        whole = all(field.name in values for field in required)
        return self._placed(kind(**values), node) if whole else None

    def require(self, node: Pairs, what: str, key: str, example: str) -> None:
        """Note a missing key."""
        if node_at(node, key) is None:
            hint = f"add it, such as `{key}: {example}`"
            self.findings.add(node.place, "missing-key", f"{what} has no `{key}`", hint)

    def fields(
        self, kind: type[msgspec.Struct], node: Pairs, skip: Container[str] = ()
    ) -> dict[str, Any]:
        """Return the fields of a struct that are in the mapping and valid, except ``skip``."""
        values: dict[str, Any] = {}
        for field in fields_of(kind):
            given = node_at(node, field.encode_name)
            value = UNSET
            if given is not None and field.name not in skip:
                value = self.value(field.type, given, f"`{field.encode_name}`")
            values |= {} if value is UNSET else {field.name: value}
        return values

    def value(self, declared: Any, node: Node, what: str) -> Any:  # noqa: ANN401, PLR0911 - as declared
        """Read a node as the declared type; if it doesn't fit, note the fault and return UNSET."""
        kind, marks = _bare(declared)
        text = next((mark for mark in marks if isinstance(mark, TextForm)), None)
        match node:
            case Scalar() if text is not None:
                value = self.parse(node, text.code, text.parse)
                return UNSET if value is None else self._placed(value, node)
            case Scalar() if get_origin(kind) is Literal:
                return self._choice(get_args(kind), node, what)
            case Scalar(text=word, quoted=False) if kind is bool and word in {"true", "false"}:
                return word == "true"
            case Scalar() if kind is str and node.text.strip():
                return " ".join(node.text.split())
            case Scalar() if kind in (int, float) and (number := _number(kind, node)) is not None:
                return self._within(number, marks, node, what)
            case Items() if get_origin(kind) is tuple:
                entry = get_args(kind)[0]
                values = [self.value(entry, each, f"an entry of {what}") for each in node.items]
                return tuple(value for value in values if value is not UNSET)
            case Pairs() if get_origin(kind) is dict:
                name, each = get_args(kind)
                named = {
                    self.value(name, k, f"a key of {what}"): self.value(
                        each, v, f"{what} of `{k.text}`"
                    )
                    for k, v in node.pairs
                }
                return {k: v for k, v in named.items() if UNSET not in (k, v)}
            case Pairs() if text is None and _is_struct(kind):
                value = self.struct(cast("type[msgspec.Struct]", kind), node, what)
                return UNSET if value is None else value
            case _:
                self._note_wrong(declared, node, what)
                return UNSET

    def _placed(self, value: T, node: Node) -> T:
        if isinstance(value, msgspec.Struct):
            self._places[id(value)] = value, node.place
        return value

    def _note_wrong(self, declared: object, node: Node, what: str) -> None:
        kind, marks = _bare(declared)
        is_text = kind is str or any(isinstance(mark, TextForm) for mark in marks)
        wanted = "a string" if is_text else _WANTED.get(get_origin(kind) or kind, "a mapping")
        example = _example(declared)
        hint = f"give {wanted}{f' such as `{example}`' if example else ''}{_fix(node)}"
        self.findings.add(node.place, "wrong-type", f"{what} is {kind_of(node)}", hint)

    def _choice(self, words: Sequence[str], node: Scalar, what: str) -> object:
        if node.text in words:
            return node.text
        hint = nearest(node.text, words, f"use one of {listed(words)}")
        self.findings.add(node.place, "unknown-choice", f"{what} can't be {kind_of(node)}", hint)
        return UNSET

    def _within(self, number: float, marks: Sequence[object], node: Scalar, what: str) -> object:
        bounds = next((mark for mark in marks if isinstance(mark, Meta)), Meta())
        low = bounds.ge if bounds.gt is None else bounds.gt
        beyond = low is not None and (number < low or number == bounds.gt)
        if not beyond and (bounds.le is None or number <= bounds.le):
            return number
        least = "at least" if bounds.gt is None else "more than"
        most = "" if bounds.le is None else f" and at most {show_number(bounds.le)}"
        hint = f"use {least} {show_number(low or 0)}{most}"
        self.findings.add(node.place, "out-of-range", f"{what} is {show_number(number)}", hint)
        return UNSET


_WANTED: Final[dict[Any, str]] = {
    bool: "`true` or `false`, without quotes",
    int: "a whole number",
    float: "a number",
    tuple: "a list",
    Literal: "one word",
}


def _bare(declared: object) -> tuple[Any, tuple[Any, ...]]:
    """Return a declared type without None, and the annotations that it had."""
    if get_origin(declared) in (Union, UnionType):
        declared = next(each for each in get_args(declared) if each is not type(None))
    if get_origin(declared) is Annotated:
        kind, *marks = get_args(declared)
        inner, more = _bare(kind)
        return inner, (*marks, *more)
    return declared, ()


def _is_struct(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _example(declared: object) -> str:
    examples = (mark.examples for mark in _bare(declared)[1] if isinstance(mark, Meta))
    return next((str(each[0]) for each in examples if each), "")


def _fix(node: Node) -> str:
    """Return the end of a hint for a value that is almost right; empty for others."""
    if isinstance(node, Scalar) and node.quoted and read_number(node.text) is not None:
        return ", without quotes"
    percent = read_number(node.text[:-1]) if isinstance(node, Scalar) and node.text else None
    if isinstance(node, Scalar) and node.text.endswith("%") and percent is not None:
        return f", such as {show_number(percent / 100)}"
    return ""


def _number(kind: type, node: Scalar) -> float | None:
    number = plain_number(node)
    if kind is float:
        return None if number is None else float(number)
    return number if isinstance(number, int) else None
