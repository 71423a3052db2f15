"""Ratings: who gave which item which score, one JSON object a line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

from jurybox.datasets.dataset import DatasetError
from jurybox.datasets.fields import kind_of
from jurybox.datasets.json_lines import JsonError, decode
from jurybox.datasets.source import open_or_stdin
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.documents.numbers import show_number
from jurybox.errors import InputError
from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement import Ratings
from jurybox.text_format import closest, printable

FIELDS: Final = ("item", "rater", "score", "criterion")
_EXAMPLE: Final = '`{"item": "1", "rater": "anna", "score": 4}`'
_LISTED: Final = 10
_LONGEST: Final = 40


def read_ratings(path: Path, scale: Scale) -> tuple[Ratings, ...]:
    """Read the ratings of every criterion, in the order in which they come; ``-`` is stdin.

    A score of ``null`` is a rating that is missing. Rows without a criterion belong to the
    criterion ``None``.

    Raises:
        InputError: the file can't be read, holds no rating, a score is not on the scale, or a rater
            scored an item twice.
        DatasetError: rows have faults.

    """
    findings = Findings()
    rows = _Rows(scale)
    with open_or_stdin(path, "ratings") as source:
        try:
            for number, line in source.lines(findings):
                row = _row(number, line, findings)
                if row is not None:
                    rows.add(number, *row)
        except TooManyError:
            pass
        faults = findings.in_order()
        if faults:
            raise DatasetError(source.origin, faults)
        rows.check(source.origin)
    return rows.ratings()


_Row = tuple[str | None, str, str, float | None]


def _row(number: int, line: bytes, findings: Findings) -> _Row | None:
    """Return criterion, item, rater and score of a line; None where it is empty or faulty."""
    try:
        value = decode(line)
    except JsonError as fault:
        if line.strip():
            place = Place(number, fault.column)
            findings.add(place, fault.code, fault.problem, fault.hint)
        return None
    if not isinstance(value, dict):
        problem = f"the line is {kind_of(value)}, not an object"
        findings.add(Place(number), "wrong-type", problem, f"write {_EXAMPLE}")
        return None
    record = cast("Mapping[str, object]", value)
    faults = [*_faults(record)]
    for code, problem, hint in faults:
        findings.add(Place(number), code, problem, hint)
    if faults:
        return None
    criterion, score = record.get("criterion"), record["score"]
    return (
        None if criterion is None else str(criterion),
        str(record["item"]),
        str(record["rater"]),
        cast("float | None", score),
    )


def _faults(record: Mapping[str, object]) -> Iterator[tuple[str, str, str]]:
    for name in ("item", "rater", "score"):
        if name not in record:
            meant = closest(name, [key for key in record if key not in FIELDS])
            hint = f"add it, such as {_EXAMPLE}"
            hint = hint if meant is None else f"if `{meant}` is meant, call it `{name}`"
            yield "missing-field", f"the row has no `{name}`", hint
        elif name != "score" and not _names(record[name]):
            problem = f"`{name}` is {kind_of(record[name])}"
            yield "wrong-type", problem, "give it as a text or a whole number"
    score = record.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float | None):
        hint = "give it as a number, or as null where it is missing"
        yield "wrong-type", f"`score` is {kind_of(score)}", hint
    criterion = record.get("criterion")
    if criterion is not None and not _names(criterion):
        yield "wrong-type", f"`criterion` is {kind_of(criterion)}", "give it as a text"


def _names(value: object) -> bool:
    """Tell whether a value names something: a text that isn't empty, or a whole number."""
    return bool(value) if isinstance(value, str) else type(value) is int


class _Rows:
    """Gathers the rows, and what keeps them from being used."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._columns: dict[str | None, _Columns] = {}
        self._off: list[tuple[int, float]] = []
        self._fractional: list[tuple[int, float]] = []
        self._twice: list[tuple[int, int]] = []
        self._count = 0

    def add(
        self, number: int, criterion: str | None, item: str, rater: str, score: float | None
    ) -> None:
        """Take a row."""
        self._count += 1
        columns = self._columns.setdefault(criterion, _Columns())
        first = columns.add(number, item, rater, score)
        if first is not None:
            self._twice.append((first, number))
        if score is None or self._scale.accepts(score):
            return
        (self._fractional if self._scale.contains(score) else self._off).append((number, score))

    def check(self, origin: str) -> None:
        """Refuse what can't be used, all of it in one line."""
        problems: list[str] = []
        hints: list[str] = []
        if self._off:
            scores = _counted(len(self._off), "score is", "scores are")
            problems.append(f"{scores} off the scale {self._scale} ({_lines(self._off)})")
            hints.append("correct them, or declare the scale that was used")
        if self._fractional:
            scores = _counted(len(self._fractional), "score is", "scores are")
            problems.append(f"{scores} fractional ({_lines(self._fractional)})")
            hints.append("use --continuous if the scale has no steps")
        if self._twice:
            ratings = _counted(len(self._twice), "rating is", "ratings are")
            pairs = [f"lines {one} and {other}" for one, other in self._twice]
            problems.append(f"{ratings} given twice by the same rater ({_listed(pairs)})")
            hints.append("keep one of each")
        if problems:
            raise InputError("; ".join(problems), ", and ".join(hints), origin)
        if not any(columns.scores for columns in self._columns.values()):
            problem = "every score is null" if self._count else "there are no ratings"
            raise InputError(problem, f"write rows such as {_EXAMPLE}", origin)

    def ratings(self) -> tuple[Ratings, ...]:
        """Return what was gathered."""
        return tuple(
            columns.ratings(criterion)
            for criterion, columns in self._columns.items()
            if columns.scores
        )


class _Columns:
    """The ratings of one criterion, as they come in."""

    def __init__(self) -> None:
        self.items: dict[str, int] = {}
        self.raters: dict[str, int] = {}
        self.item: list[int] = []
        self.rater: list[int] = []
        self.scores: list[float] = []
        self._seen: dict[tuple[str, str], int] = {}

    def add(self, number: int, item: str, rater: str, score: float | None) -> int | None:
        """Take a rating; return the line where the rater rated the item before."""
        first = self._seen.setdefault((item, rater), number)
        if first != number:
            return first
        place = self.raters.setdefault(rater, len(self.raters))
        if score is not None:
            self.item.append(self.items.setdefault(item, len(self.items)))
            self.rater.append(place)
            self.scores.append(float(score))
        return None

    def ratings(self, criterion: str | None) -> Ratings:
        """Return what was gathered."""
        return Ratings(
            criterion=criterion,
            items=tuple(self.items),
            raters=tuple(self.raters),
            item=tuple(self.item),
            rater=tuple(self.rater),
            score=tuple(self.scores),
        )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _lines(scores: list[tuple[int, float]]) -> str:
    return _listed([f"line {number}: {_shown(score)}" for number, score in scores])


def _listed(entries: list[str]) -> str:
    left = len(entries) - _LISTED
    more = [f"and {left:,} more"] if left > 0 else []
    return ", ".join([*entries[:_LISTED], *more])


def _shown(score: float) -> str:
    text = show_number(score) if abs(score) < 10**15 else f"{score:.6g}"
    return printable(text)[:_LONGEST]
