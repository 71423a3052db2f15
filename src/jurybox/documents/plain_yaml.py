"""Reads YAML as plain data with the place of every value.

Nodes are built from the parser's events, so that tags never construct values and every scalar keeps
its original text (``version: 1.10`` does not become 1.1). Tags, anchors, aliases,
merge keys and repeated keys are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final, NoReturn, cast

import msgspec
import yaml

from jurybox.documents.findings import CONTROL, Findings, Lines, Place
from jurybox.documents.numbers import read_number

# The parser in C reads a bundled document ten times faster; both yield the same events.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# The stubs of yaml don't type this function.
_parse = cast("Callable[..., Iterator[yaml.Event]]", vars(yaml)["parse"])
MAX_YAML_CHARACTERS = 200_000
_MAX_DEPTH = 24  # a JSON schema may be nested
_PLAIN = "use plain text, numbers, lists and `key: value` pairs only"


class Scalar(msgspec.Struct, frozen=True, kw_only=True):
    """A single value, kept as its original text."""

    text: str
    quoted: bool
    place: Place


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """A list."""

    items: tuple[Node, ...]
    place: Place


class Pairs(msgspec.Struct, frozen=True, kw_only=True):
    """Keys and values in the order of the text, each key once."""

    pairs: tuple[tuple[Scalar, Node], ...]
    place: Place


Node = Scalar | Items | Pairs


class _Open:
    """A list or a mapping that is still being read."""

    def __init__(self, place: Place, *, mapping: bool) -> None:
        self.place = place
        self.mapping = mapping
        self.children: list[Node] = []


class _NotPlainError(Exception):
    """The YAML isn't plain data; the fault has been noted."""


WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}
"""Unquoted words that are not text, with their values."""


def value_of(node: Node) -> object:
    """Return a value without places: text, number, boolean, list or mapping."""
    match node:
        case Items():
            return [value_of(each) for each in node.items]
        case Pairs():
            return {key.text: value_of(value) for key, value in node.pairs}
        case Scalar(text=text, quoted=quoted):
            if quoted or text not in WORDS:
                number = None if quoted else read_number(text)
                return text if number is None else number
            return WORDS[text]


def as_yaml(value: object) -> str:
    """Return a value as JSON that a YAML reader reads back unchanged."""
    quoted = json.dumps(value, ensure_ascii=False)
    # JSON allows these unescaped; YAML reads them as line ends or drops them.
    return re.sub("[\u2028\u2029\ufeff]", lambda match: f"\\u{ord(match[0]):04x}", quoted)


def read_yaml(text: str, start: Place, findings: Findings) -> Node | None:
    """Read YAML that begins at ``start`` in the document; None if it can't be read.

    An empty document is an empty mapping.
    """
    if len(text) > MAX_YAML_CHARACTERS:
        problem = f"the YAML has more than {MAX_YAML_CHARACTERS:,} characters"
        findings.add(start, "too-large", problem, "shorten it")
        return None
    lines = Lines(text, start)
    try:
        return _YamlReader(text, lines, findings).read()
    except _NotPlainError:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        index = 0 if mark is None else mark.index
        reason = error.problem or error.context or "it can't be parsed"
        tab = "\t" in text[text.rfind("\n", 0, index) + 1 : index + 1]
        hint = "indent with spaces, not with tabs" if tab else "correct the syntax here"
        findings.add(lines.place(index), "yaml-syntax", f"not valid YAML: {reason}", hint)
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        findings.add(start, "yaml-syntax", f"not valid YAML: {reason}", _PLAIN)
    return None


class _YamlReader:
    """Builds nodes from the parser's events, without recursion because input may be deep."""

    def __init__(self, text: str, lines: Lines, findings: Findings) -> None:
        self._text = text
        self._lines = lines
        self._findings = findings
        self._open: list[_Open] = []
        self._root: Node | None = None

    def read(self) -> Node | None:
        for event in _parse(self._text, Loader=_LOADER):
            self._take(event, self._lines.place(event.start_mark.index))
        return self._root or Pairs(pairs=(), place=self._lines.place(0))

    def _take(self, event: yaml.Event, place: Place) -> None:
        match event:
            case yaml.AliasEvent():
                self._refuse(place, f"the alias `*{event.anchor}`")
            case yaml.ScalarEvent() | yaml.CollectionStartEvent() if event.anchor is not None:
                self._refuse(place, f"the anchor `&{event.anchor}`")
            case yaml.ScalarEvent() | yaml.CollectionStartEvent() if event.tag is not None:
                tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
                self._refuse(place, f"the tag `{tag}`")
            case yaml.ScalarEvent():
                # The style of a plain scalar is None in one parser, an empty string in the other.
                scalar = Scalar(text=str(event.value), quoted=bool(event.style), place=place)
                if CONTROL.search(scalar.text):
                    self._refuse(place, "a control character")
                self._close(scalar)
            case yaml.CollectionStartEvent():
                if len(self._open) == _MAX_DEPTH:
                    self._refuse(place, "nesting this deep")
                self._open.append(_Open(place, mapping=isinstance(event, yaml.MappingStartEvent)))
            case yaml.CollectionEndEvent():
                self._close(self._finish(self._open.pop()))
            case yaml.DocumentStartEvent() if self._root is not None:
                self._refuse(place, "a second YAML document")
            case _:
                pass

    def _refuse(self, place: Place, what: str) -> NoReturn:
        """Note a part that isn't plain data, and stop reading."""
        self._findings.add(place, "yaml-not-plain", f"{what} is not plain data", _PLAIN)
        raise _NotPlainError

    def _close(self, node: Node) -> None:
        if self._open:
            self._open[-1].children.append(node)
        else:
            self._root = node

    def _finish(self, container: _Open) -> Node:
        if not container.mapping:
            return Items(items=tuple(container.children), place=container.place)
        pairs: dict[str, tuple[Scalar, Node]] = {}
        for key, value in zip(container.children[::2], container.children[1::2], strict=True):
            if not isinstance(key, Scalar) or (key.text == "<<" and not key.quoted):
                self._refuse(key.place, "a key that isn't text, or the merge key `<<`,")
            if key.text in pairs:
                first = pairs[key.text][0].place.line
                problem = f"the key `{key.text}` is given twice (first on line {first})"
                self._findings.add(key.place, "duplicate-key", problem, "remove one of them")
            else:
                pairs[key.text] = (key, value)
        return Pairs(pairs=tuple(pairs.values()), place=container.place)
