"""Collects the faults of a document while it is read."""

import bisect

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

    Only a line feed ends a line, as in editors and the Markdown reader; YAML has more line ends.
    """

    def __init__(self, text: str, start: Place) -> None:
        """Take a text that begins at ``start``."""
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
            TooManyError: there are more than a person would read.

        """
        if len(self._found) == _MOST:
            self._found.append(
                Finding(
                    line=place.line,
                    column=place.column,
                    code="too-many",
                    problem=f"more than {_MOST} findings",
                    hint="fix those above first",
                )
            )
            raise TooManyError
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
    """Sort by place; the note about further findings comes last."""
    return finding.code == "too-many", finding.line, finding.column


def _one_line(text: str) -> str:
    """Shorten a finding, which may quote the document, to one line."""
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= _MAX_LENGTH else flat[: _MAX_LENGTH - 3] + "..."
