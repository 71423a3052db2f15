"""Findings about a document, each with its place, and the decoding of its bytes."""

import bisect
import re
from typing import Final

import msgspec

from jurybox.errors import Finding
from jurybox.text_format import printable

_MAX_LENGTH = 500
_MOST = 100


class Place(msgspec.Struct, frozen=True, order=True):
    """A line and a column, both counted from 1."""

    line: int
    column: int = 1


class Lines:
    """Finds the line and column of a character.

    Only a line feed ends a line, as in editors and the Markdown reader; YAML knows other line ends.
    """

    def __init__(self, text: str, start: Place) -> None:
        """Index the lines of a text that begins at ``start`` in its document."""
        self._start = start
        self._starts = [0, *(index + 1 for index, char in enumerate(text) if char == "\n")]

    def place(self, index: int) -> Place:
        """Return the place of the character at ``index``."""
        line = bisect.bisect_right(self._starts, index) - 1
        return Place(self._start.line + line, self._start.column + index - self._starts[line])


class TooManyError(Exception):
    """The document has too many faults to continue."""


class Findings:
    """The faults found so far."""

    def __init__(self) -> None:
        """Start without faults."""
        self._found: list[Finding] = []

    def add(self, place: Place, code: str, problem: str, hint: str) -> None:
        """Note one fault.

        Raises:
            TooManyError: there are more faults than a person would read.

        """
        if len(self._found) == _MOST:
            problem = f"more than {_MOST} findings"
            self._note(place, "too-many", problem, "fix the findings above first")
            raise TooManyError
        self._note(place, code, problem, hint)

    def _note(self, place: Place, code: str, problem: str, hint: str) -> None:
        self._found.append(
            Finding(
                line=place.line,
                column=place.column,
                code=code,
                problem=_one_line(problem),
                hint=_one_line(hint),
            )
        )

    def in_order(self) -> tuple[Finding, ...]:
        """Return each fault once, in the order of the text."""
        once = dict.fromkeys(self._found)
        return tuple(sorted(once, key=_order))


def _order(finding: Finding) -> tuple[bool, int, int]:
    """Return the sort key: the place, with the note about further findings last."""
    return finding.code == "too-many", finding.line, finding.column


def _one_line(text: str) -> str:
    """Return a text, which may quote the document, on one line and not too long."""
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= _MAX_LENGTH else flat[: _MAX_LENGTH - 3] + "..."


MAX_BYTES: Final = 1_000_000
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
"""Characters that editors hide, and that YAML and Markdown treat differently."""


def decode(data: bytes, findings: Findings) -> str | None:
    """Return the text with line feeds as line ends; None if it is too large or not plain UTF-8."""
    if len(data) > MAX_BYTES:
        problem = f"the document is larger than 1 MB ({MAX_BYTES:,} bytes)"
        findings.add(Place(1), "too-large", problem, "split it or shorten it")
        return None
    hint = "save the file as UTF-8"
    if data.startswith(_UTF16_MARKS):
        findings.add(Place(1), "encoding", "the document is UTF-16", hint)
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line_start = before.rfind(b"\n") + 1
        column = len(before[line_start:].decode("utf-8-sig", "replace")) + 1
        place = Place(before.count(b"\n") + 1, column)
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        findings.add(place, "encoding", problem, hint)
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if match := CONTROL.search(text):
        before = text[: match.start()]
        place = Place(before.count("\n") + 1, match.start() - before.rfind("\n"))
        problem = f"the document contains the control character U+{ord(match[0]):04X}"
        findings.add(place, "encoding", problem, "remove it")
        return None
    return text
