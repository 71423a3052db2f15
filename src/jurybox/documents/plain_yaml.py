"""YAML as plain data with the place of every value.

Built from the parser's events, so that no value is ever constructed from a tag and every scalar
keeps the text it was written with (``version: 1.10`` is not a number that lost a zero). Tags,
anchors, aliases, merge keys and repeated keys are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final, cast

import msgspec
import yaml

from jurybox.documents.document_text import CONTROL
from jurybox.documents.findings import Findings, Lines, Place
from jurybox.documents.numbers import read_number

# The parser in C reads a bundled document ten times faster; both yield the same events.
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# The stubs of yaml leave this function without types.
_parse = cast("Callable[..., Iterator[yaml.Event]]", vars(yaml)["parse"])
MAX_YAML_CHARACTERS = 200_000
_MAX_DEPTH = 24  # a JSON schema may be nested
_PLAIN = "use plain text, numbers, lists and `key: value` pairs only"


class Scalar(msgspec.Struct, frozen=True, kw_only=True):
    """A single value, as the text it was written with."""

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

# Stands where an alias was; what it would mean is not looked at, for it is refused already.
_LEFT_OUT = Scalar(text="", quoted=True, place=Place(0))


class _Open:
    """A list or a mapping whose end has not come yet."""

    def __init__(self, place: Place, *, mapping: bool) -> None:
        self.place = place
        self.mapping = mapping
        self.children: list[Node] = []


class _TooDeepError(Exception):
    """The YAML is nested deeper than any document needs; it has been noted."""


WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}
"""What an unquoted word stands for."""


def value_of(node: Node) -> object:
    """Return a value without its places: text, a number, a word, a list or a mapping."""
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
    """Return JSON that YAML reads back to the character."""
    quoted = json.dumps(value, ensure_ascii=False)
    # JSON takes these as they are; YAML would read line ends or nothing.
    return re.sub("[\u2028\u2029\ufeff]", lambda match: f"\\u{ord(match[0]):04x}", quoted)


def read_yaml(text: str, start: Place, findings: Findings) -> Node | None:
    """Read YAML that begins at ``start`` in the document; None where it can't be read.

    An empty text is an empty mapping.
    """
    if len(text) > MAX_YAML_CHARACTERS:
        problem = f"the YAML has more than {MAX_YAML_CHARACTERS:,} characters"
        findings.add(start, "too-large", problem, "shorten it")
        return None
    lines = Lines(text, start)
    try:
        return _YamlReader(text, lines, findings).read()
    except _TooDeepError:
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
    """Builds nodes from the events of one text, without recursion: depth is up to the document."""

    def __init__(self, text: str, lines: Lines, findings: Findings) -> None:
        self._text = text
        self._lines = lines
        self._findings = findings
        self._open: list[_Open] = []
        self._root: Node | None = None

    def read(self) -> Node | None:
        for event in _parse(self._text, Loader=_LOADER):
            self._take(event)
        if self._root is _LEFT_OUT:
            return None
        return self._root or Pairs(pairs=(), place=self._lines.place(0))

    def _take(self, event: yaml.Event) -> None:
        place = self._lines.place(event.start_mark.index)
        match event:
            case yaml.AliasEvent():
                self._note(place, f"the alias `*{event.anchor}`", "write the value out")
                self._close(_LEFT_OUT)
            case yaml.ScalarEvent():
                self._check_plain(event, place)
                # The two parsers mark a plain scalar differently: None or an empty text.
                quoted = bool(event.style)
                scalar = Scalar(text=str(event.value), quoted=quoted, place=place)
                if CONTROL.search(scalar.text):
                    self._note(place, "a control character", "remove it")
                self._close(scalar)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._check_plain(event, place)
                if len(self._open) == _MAX_DEPTH:
                    self._note(place, "nesting this deep", _PLAIN)
                    raise _TooDeepError
                mapping = isinstance(event, yaml.MappingStartEvent)
                self._open.append(_Open(place, mapping=mapping))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._close(self._finish(self._open.pop()))
            case yaml.DocumentStartEvent() if self._root is not None:
                self._note(place, "a second YAML document", "keep one")
            case _:
                pass

    def _check_plain(
        self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, place: Place
    ) -> None:
        if event.anchor is not None:
            hint = "write the value out where it is used"
            self._note(place, f"the anchor `&{event.anchor}`", hint)
        if event.tag is not None:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            self._note(place, f"the tag `{tag}`", _PLAIN)

    def _note(self, place: Place, what: str, hint: str) -> None:
        """Note what is not plain data; reading goes on, so that the rest is checked too."""
        self._findings.add(place, "yaml-not-plain", f"{what} is not plain data", hint)

    def _close(self, node: Node) -> None:
        if self._open:
            self._open[-1].children.append(node)
        elif self._root is None:
            self._root = node

    def _finish(self, container: _Open) -> Node:
        if not container.mapping:
            kept = tuple(child for child in container.children if child is not _LEFT_OUT)
            return Items(items=kept, place=container.place)
        pairs: dict[str, tuple[Scalar, Node]] = {}
        children = iter(container.children)
        for key in children:
            value = next(children)
            if key is _LEFT_OUT or value is _LEFT_OUT:
                continue
            if not isinstance(key, Scalar):
                self._note(key.place, "a key that is a list or a mapping", _PLAIN)
            elif key.text == "<<" and not key.quoted:
                self._note(key.place, "the merge key `<<`", "write the values out")
            elif key.text in pairs:
                first = pairs[key.text][0].place.line
                problem = f"the key `{key.text}` is given twice (first on line {first})"
                self._findings.add(key.place, "duplicate-key", problem, "remove one of them")
            else:
                pairs[key.text] = (key, value)
        return Pairs(pairs=tuple(pairs.values()), place=container.place)
