"""The contents of another tool's file, before they are written as a suite."""

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from jurybox.datasets.dataset import DatasetError, survey
from jurybox.datasets.open_dataset import open_dataset
from jurybox.datasets.row_reader import Record
from jurybox.datasets.verdicts import read_verdicts
from jurybox.errors import Finding, InputError
from jurybox.suite import SuiteError, parse_suite
from jurybox.text_format import counted, printable

_ROLES: Final = ("system", "user", "assistant")
_MISSING: Final = "missing-field"
_TOO_MANY: Final = "too-many"


class ForeignSuite(msgspec.Struct, kw_only=True):
    """Rows, recorded judgments, targets and judges, and a count of what has no counterpart."""

    name: str = ""
    format: str = ""
    rows: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    ratings: list[dict[str, Any]] = []
    scale: str = "0-1"
    targets: list[dict[str, Any]] = []
    judges: list[str] = []
    rubric: str = ""
    lost: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])
    at: int | None = None  # the number of the part that is being read, from 0

    def each(self, parts: object) -> Iterator[Any]:
        """Yield the parts of a file, and remember which one is being read."""
        for self.at, part in enumerate(listing(parts)):
            yield part
        self.at = None

    def lose(self, noun: str, which: str, what: str, count: int = 1) -> None:
        """Count something that can't be carried over as it is."""
        self.lost[noun, f"{which}: {what}"] += count

    def losses(self) -> list[str]:
        """Return a line for each kind of thing that can't be carried over."""
        counts = self.lost.items()
        return [printable(f"{counted(count, noun)} {which}") for (noun, which), count in counts]

    def keep_readable(self) -> None:
        """Leave out what jurybox itself would refuse to read, and count it."""
        recorded = not self.targets and all("response" in row for row in self.rows)
        self.rows = self._readable(
            "row", self.rows, lambda path: survey(open_dataset(path), needs_response=recorded)
        )
        self.verdicts = self._readable("verdict", self.verdicts, read_verdicts)
        self.targets = [
            each for each in self.targets if self._accepts("targets", each["model"], [each])
        ]
        if len(self.targets) == 1:
            self.targets = [{key: self.targets[0][key] for key in self.targets[0] if key != "name"}]
        self.judges = [each for each in self.judges if self._accepts("judge", each, each)]
        rated: dict[tuple[object, ...], dict[str, Any]] = {}
        for each in self.ratings:
            rated.setdefault((each.get("criterion"), each["item"], each["rater"]), each)
        if twice := len(self.ratings) - len(rated):
            self.lose("rating", "given twice by the same rater", "the first counts", twice)
        self.ratings = [*rated.values()]

    def _readable(
        self, noun: str, rows: list[dict[str, Any]], read: Callable[[Path], object]
    ) -> list[dict[str, Any]]:
        """Return the rows that a reader accepts from a file."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.jsonl"
            while rows:
                path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
                try:
                    read(path)
                except DatasetError as error:
                    refused = _refused(rows, error.findings)
                except InputError:
                    # Verdicts without any winner: the commands that read them say so.
                    break
                else:
                    break
                if len(refused) == len(rows) and {x.code for x in refused.values()} == {_MISSING}:
                    finding = refused[1]
                    self.lose("column", f"is missing, {finding.problem}", finding.hint)
                    break
                for finding in refused.values():
                    self.lose(noun, "left out", finding.problem)
                rows = [row for line, row in enumerate(rows, 1) if line not in refused]
        return rows

    def _accepts(self, key: str, name: str, value: object) -> bool:
        """Tell whether a suite may have a target or a judge."""
        usual = {"suite": "imported", "rubric": "general", "dataset": "rows.jsonl"}
        try:
            parse_suite(msgspec.json.encode({**usual, key: value}), key)
        except SuiteError as error:
            self.lose("model", f"`{name}`", f"left out, {error.findings[0].problem}")
            return False
        if "latest" in name:
            self.lose("model", f"`{name}`", "left out, name its version instead of `latest`")
            return False
        return True


def _refused(rows: list[dict[str, Any]], findings: Sequence[Finding]) -> dict[int, Finding]:
    """Return the finding of each refused row; a missing column is reported once for all rows."""
    missing = {_columns(rows[each.line - 1]): each for each in findings if each.code == _MISSING}
    lines = [(line, _columns(row)) for line, row in enumerate(rows, 1)]
    found = {line: missing[columns] for line, columns in lines if columns in missing}
    return found | {each.line: each for each in findings if each.code != _TOO_MANY}


def _columns(row: Record) -> frozenset[str]:
    return frozenset(key for key, value in row.items() if value not in (None, ""))


def is_number(value: object) -> bool:
    """Tell whether a value is a finite number."""
    return isinstance(value, int | float) and math.isfinite(value)


def mapping(value: object) -> dict[str, Any]:
    """Return an object; anything else counts as an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """Return a list, a single value as a list of one, and nothing as an empty one."""
    if value is None:
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def asked(value: object) -> dict[str, object] | None:
    """Return a question as a row has it: a text, or turns that end with the user's; else None."""
    if isinstance(value, str):
        return {"task": value} if value.strip() else None
    turns: list[dict[str, str]] = []
    for turn in map(mapping, listing(value)):
        content = content_of(turn.get("content"))
        if content is None or turn.get("role") not in _ROLES:
            return None
        turns.append({"role": turn["role"], "content": content})
    if not turns or turns[-1]["role"] != "user":
        return None
    return {"task": turns[0]["content"]} if len(turns) == 1 else {"messages": turns}


def content_of(value: object) -> str | None:
    """Return the text of a turn; None where it is anything but text."""
    if isinstance(value, str):
        return value
    parts = [mapping(part).get("text") for part in listing(value)]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else None
