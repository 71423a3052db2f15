"""Reading typed fields from a mapping, noting what is wrong and going on."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, get_args

from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import read_number, show_number
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar
from jurybox.errors import Unreadable
from jurybox.text_format import listed, nearest

T = TypeVar("T")

NAME = re.compile(r"[a-z][a-z0-9_]*")
NAME_HINT = "begin with a letter and use only `a-z`, `0-9` and `_`"


def kind_of(node: Node) -> str:
    """Say in words what a value is."""
    match node:
        case Items():
            return "a list"
        case Pairs():
            return "a mapping"
        case Scalar(text=text, quoted=quoted):
            if not text and not quoted:
                return "nothing"
            return f'the text "{text}"' if quoted else f"`{text}`"


class Fields:
    """The fields of one mapping.

    Each reading method takes a key and returns its value; where the value is wrong it notes why and
    returns None, so that all faults of a document are found in one reading.
    """

    def __init__(self, node: Pairs, what: str, known: Iterable[str], findings: Findings) -> None:
        """Note every key of ``node`` that is not ``known``."""
        self.place = node.place
        self.findings = findings
        self._what = what
        self._values = {key.text: value for key, value in node.pairs}
        self._keys = {key.text: key.place for key, _ in node.pairs}
        known = list(known)
        for key, _ in node.pairs:
            if key.text not in known:
                hint = nearest(key.text, known, f"known are {listed(known)}")
                findings.add(key.place, "unknown-key", f"{what} has no key `{key.text}`", hint)

    def __contains__(self, key: str) -> bool:
        """Tell whether the key is given."""
        return key in self._values

    def node(self, key: str) -> Node | None:
        """Return the value as it was read."""
        return self._values.get(key)

    def key_place(self, key: str) -> Place:
        """Return the place of the key, or else of the mapping."""
        return self._keys.get(key, self.place)

    def value_place(self, key: str) -> Place:
        """Return the place of the value, or else of the mapping."""
        value = self._values.get(key)
        return self.place if value is None else value.place

    def require(self, key: str, hint: str) -> bool:
        """Note a missing key."""
        if key not in self._values:
            problem = f"{self._what} has no `{key}`"
            self.findings.add(self.place, "missing-key", problem, hint)
        return key in self._values

    def wrong(self, key: str, wanted: str) -> None:
        """Note a value of the wrong kind."""
        node = self._values[key]
        problem = f"`{key}` is {kind_of(node)}"
        self.findings.add(node.place, "wrong-type", problem, f"give {wanted}{_hint(node)}")

    def text(self, key: str) -> str | None:
        """Read non-empty text."""
        node = self._values.get(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and node.text.strip():
            return " ".join(node.text.split())
        self.wrong(key, "a text")
        return None

    def flag(self, key: str) -> bool | None:
        """Read `true` or `false`; other words that YAML once took for them are refused."""
        node = self._values.get(key)
        if node is None:
            return None
        if isinstance(node, Scalar) and not node.quoted and node.text in {"true", "false"}:
            return node.text == "true"
        self.wrong(key, "`true` or `false`, without quotes")
        return None

    def number(self, key: str, low: float | None = None, high: float | None = None) -> float | None:
        """Read a number from ``low`` to ``high``."""
        node = self._values.get(key)
        return None if node is None else self._bounded(key, node, (low, high), "a number")

    def whole(self, key: str, low: int | None = None, high: int | None = None) -> int | None:
        """Read a whole number from ``low`` to ``high``."""
        node = self._values.get(key)
        if node is None:
            return None
        value = self._bounded(key, node, (low, high), "a whole number")
        return value if isinstance(value, int) else None

    def _bounded(
        self, key: str, node: Node, ends: tuple[float | None, float | None], wanted: str
    ) -> float | None:
        value = plain_number(node)
        if value is None or (wanted == "a whole number" and not isinstance(value, int)):
            self.wrong(key, wanted)
            return None
        low, high = ends
        if (low is not None and value < low) or (high is not None and value > high):
            problem = f"`{key}` is {show_number(value)}"
            self.findings.add(node.place, "out-of-range", problem, f"use {_range(low, high)}")
            return None
        return value

    def choice(self, key: str, options: Iterable[T]) -> T | None:
        """Read one of a few words."""
        node = self._values.get(key)
        if node is None:
            return None
        options = list(options)
        if isinstance(node, Scalar):
            for option in options:
                if option == node.text:
                    return option
            words = [str(option) for option in options]
            hint = nearest(node.text, words, f"use one of {listed(words)}")
            problem = f"`{key}` can't be {kind_of(node)}"
            self.findings.add(node.place, "unknown-choice", problem, hint)
            return None
        self.wrong(key, "one word")
        return None

    def parsed(
        self, key: str, code: str, parse: Callable[[str], T], wanted: str = "a text"
    ) -> T | None:
        """Read a small text with a reader of its own."""
        node = self._values.get(key)
        if node is None:
            return None
        if not isinstance(node, Scalar):
            self.wrong(key, wanted)
            return None
        return parse_at(node, code, parse, self.findings)

    def items(self, key: str, wanted: str) -> Iterator[Node]:
        """Yield the values of a list."""
        node = self._values.get(key)
        if isinstance(node, Items):
            yield from node.items
        elif node is not None:
            self.wrong(key, wanted)

    def pairs(self, key: str, wanted: str) -> Iterator[tuple[Scalar, Node]]:
        """Yield the keys and values of a mapping."""
        node = self._values.get(key)
        if isinstance(node, Pairs):
            yield from node.pairs
        elif node is not None:
            self.wrong(key, wanted)

    def mapping(self, key: str, known: Iterable[str]) -> "Fields | None":
        """Read a mapping with keys of its own."""
        node = self._values.get(key)
        if isinstance(node, Pairs):
            return Fields(node, f"`{key}`", known, self.findings)
        if node is not None:
            self.wrong(key, "a mapping")
        return None


def parse_at(node: Scalar, code: str, parse: Callable[[str], T], findings: Findings) -> T | None:
    """Read a scalar with a reader of its own; note where it can't be read."""
    try:
        return parse(node.text)
    except Unreadable as error:
        findings.add_unreadable(node.place, code, error)
        return None


def _hint(node: Node) -> str:
    """Say how a value that is nearly right should be written."""
    if isinstance(node, Scalar) and node.quoted and read_number(node.text) is not None:
        return ", without quotes"
    return percent_hint(node)


def percent_hint(node: Node) -> str:
    """Say what a percentage is as a number."""
    if isinstance(node, Scalar) and node.text.endswith("%"):
        percent = read_number(node.text.removesuffix("%"))
        if percent is not None:
            return f", such as {show_number(percent / 100)}"
    return ""


def plain_number(node: Node) -> float | None:
    """Return the number that an unquoted scalar is."""
    return read_number(node.text) if isinstance(node, Scalar) and not node.quoted else None


def options_of(literal: object) -> tuple[str, ...]:
    """Return the words of a ``Literal`` type."""
    return get_args(literal)


def _range(low: float | None, high: float | None) -> str:
    match low, high:
        case float() | int(), float() | int():
            return f"{show_number(low)} to {show_number(high)}"
        case float() | int(), None:
            return f"{show_number(low)} or more"
        case None, float() | int():
            return f"{show_number(high)} or less"
        case _:
            return "a number"
