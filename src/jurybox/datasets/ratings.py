"""Ratings: who gave which item which score or label, one a row."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import msgspec

from jurybox.datasets.csv_rows import as_number, read_csv, read_tsv
from jurybox.datasets.dataset import DatasetError
from jurybox.datasets.fields import kind_of
from jurybox.datasets.open_dataset import reader_or_lines
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import open_or_stdin
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.documents.numbers import show_number
from jurybox.errors import InputError, Unreadable
from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement import Ratings
from jurybox.text_format import closest, listed, printable

FIELDS: Final = ("item", "rater", "score", "criterion")
_EXAMPLE: Final = '`{"item": "1", "rater": "anna", "score": 4}`'
_LISTED: Final = 10
_LONGEST: Final = 40


class RatingScale(msgspec.Struct, frozen=True, kw_only=True):
    """The scale of ratings; labels, lowest first, stand for the scores 1, 2 and so on."""

    scale: Scale
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the scale as people read it, with what its scores stand for."""
        named = (f"{number} {label}" for number, label in enumerate(self.labels, start=1))
        return f"{self.scale} ({', '.join(named)})" if self.labels else str(self.scale)


def labeled_scale(text: str) -> RatingScale:
    """Read labels such as ``bad, fair, good``, lowest first.

    Raises:
        Unreadable: fewer than two labels, an empty one, or the same one twice.

    """
    labels = tuple(label.strip() for label in text.split(","))
    if len(labels) == 1 or not all(labels) or len({*labels}) < len(labels):
        hint = "write two different labels or more, lowest first, such as `bad,fair,good`"
        raise Unreadable(f"`{text}` are no labels", hint)
    return RatingScale(scale=Scale(low=1, high=len(labels)), labels=labels)


def read_ratings(
    path: Path, declared: RatingScale, *, cluster: str | None = None
) -> tuple[Ratings, ...]:
    """Read the ratings of every criterion, in the order in which they come; ``-`` is stdin.

    A score of ``null``, or an empty cell, is a rating that is missing. Rows without a criterion
    belong to the criterion ``None``. ``cluster`` is a field of the rows: items with the same value
    of it belong together, and an item without one is a cluster of its own.

    Raises:
        InputError: the file can't be read, holds no rating, a score is not on the scale, a rater
            scored an item twice, or no item has a cluster or one has two.
        DatasetError: rows have faults.

    """
    findings = Findings()
    rows = _Rows(declared.scale)
    clusters = None if cluster is None else _Clusters(cluster)
    read = reader_or_lines(path)
    with open_or_stdin(path, "ratings") as source:
        with contextlib.suppress(TooManyError):
            for number, record in read(source, FileContext(findings)):
                score = _score(record, declared.labels, cells=read in {read_csv, read_tsv})
                faults = [*_faults(record, score, declared.labels)]
                for code, problem, hint in faults:
                    findings.add(Place(number), code, problem, hint)
                if faults:
                    continue
                criterion, item = record.get("criterion"), str(record["item"])
                named = None if criterion is None else str(criterion)
                rows.add(number, named, item, str(record["rater"]), cast("float | None", score))
                if clusters is not None:
                    clusters.add(number, item, record)
        faults = findings.in_order()
        if faults:
            raise DatasetError(source.origin, faults)
        rows.check(source.origin)
        if clusters is not None:
            clusters.check(source.origin)
    return rows.ratings(None if clusters is None else clusters.named)


def _score(record: Record, labels: tuple[str, ...], *, cells: bool) -> object:
    """Return the score, or the place of its label; a cell of CSV may be a number."""
    value = record.get("score")
    if labels and value is not None:
        label = value.strip() if isinstance(value, str) else msgspec.json.encode(value).decode()
        return labels.index(label) + 1 if label in labels else str(value)
    return as_number(value.strip()) if cells and isinstance(value, str) else value


def _faults(
    record: Record, score: object, labels: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    for name in ("item", "rater", "score"):
        if name not in record:
            meant = closest(name, [key for key in record if key not in FIELDS])
            hint = f"add it, such as {_EXAMPLE}"
            hint = hint if meant is None else f"if `{meant}` is meant, call it `{name}`"
            yield "missing-field", f"the row has no `{name}`", hint
        elif name != "score" and not _names(record[name]):
            problem = f"`{name}` is {kind_of(record[name])}"
            yield "wrong-type", problem, "give it as a text or a whole number"
    if isinstance(score, bool) or not isinstance(score, int | float | None):
        hint = "give it as a number, or as null where it is missing"
        if isinstance(score, str):
            hint += "; for labels name them, lowest first: --scale bad,fair,good"
        if labels:
            hint = f"give one of {listed(labels)}, or null where it is missing"
        yield "wrong-type", f"`score` is {kind_of(score)}", hint
    criterion = record.get("criterion")
    if criterion is not None and not _names(criterion):
        yield "wrong-type", f"`criterion` is {kind_of(criterion)}", "give it as a text"


def _names(value: object) -> bool:
    """Tell whether a value names something: a text that isn't empty, or a whole number."""
    return bool(value) if isinstance(value, str) else type(value) is int


class _Clusters:
    """Which items belong together, by a field of their rows or of the rows' metadata."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._lines: dict[str, int] = {}
        self._twice: list[str] = []
        self.named: dict[str, str] = {}

    def add(self, number: int, item: str, record: Record) -> None:
        """Take the cluster of an item; a row without one leaves it to the item's other rows."""
        value = record.get(self._field)
        metadata = record.get("metadata")
        if value is None and isinstance(metadata, dict):
            value = cast("Mapping[str, object]", metadata).get(self._field)
        if value is None:
            return
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        first = self._lines.setdefault(item, number)
        if self.named.setdefault(item, text) != text:
            self._twice.append(f"lines {first} and {number}")

    def check(self, origin: str) -> None:
        """Refuse a field that no row has, and items with two values of it."""
        if not self.named:
            problem = f"no row has a field `{self._field}` to cluster by"
            raise InputError(problem, "name a column of the ratings", origin)
        if self._twice:
            problem = f"an item has two values of `{self._field}` ({_listed(self._twice)})"
            raise InputError(problem, "give each item one", origin)


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

    def ratings(self, clusters: Mapping[str, str] | None) -> tuple[Ratings, ...]:
        """Return what was gathered."""
        return tuple(
            columns.ratings(criterion, clusters)
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

    def ratings(self, criterion: str | None, clusters: Mapping[str, str] | None) -> Ratings:
        """Return what was gathered."""
        # An item without a cluster is one of its own, whatever the others are called.
        named = None
        if clusters is not None:
            named = tuple(clusters.get(item, ("", item)) for item in self.items)
        return Ratings(
            criterion=criterion,
            items=tuple(self.items),
            raters=tuple(self.raters),
            item=tuple(self.item),
            rater=tuple(self.rater),
            score=tuple(self.scores),
            clusters=named,
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
