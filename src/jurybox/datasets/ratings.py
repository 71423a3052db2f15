"""Ratings: the rater, the item, and the score or label, one per row."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Final, NamedTuple, cast

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
from jurybox.text_format import closest, counted, listed, printable

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


class _Rating(NamedTuple):
    line: int
    criterion: str | None
    item: str
    rater: str
    score: float | None
    cluster: str | None


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
    ratings: list[_Rating] = []
    read = reader_or_lines(path)
    with open_or_stdin(path, "ratings") as source:
        with contextlib.suppress(TooManyError):
            for number, record in read(source, FileContext(findings)):
                score = _score(record, declared.labels, cells=read in {read_csv, read_tsv})
                faults = [*_faults(record, score, declared.labels)]
                for code, problem, hint in faults:
                    findings.add(Place(number), code, problem, hint)
                if not faults:
                    ratings.append(_rating(number, record, cast("float | None", score), cluster))
        if faults := findings.in_order():
            raise DatasetError(source.origin, faults)
        problems = [*_problems(ratings, declared.scale, cluster)]
        if problems:
            hints = ", and ".join(hint for _, hint in problems)
            raise InputError("; ".join(problem for problem, _ in problems), hints, source.origin)
    criteria = dict.fromkeys(each.criterion for each in ratings if each.score is not None)
    clusters = {each.item: each.cluster for each in ratings if each.cluster is not None}
    return tuple(
        _of_criterion(each, ratings, None if cluster is None else clusters) for each in criteria
    )


def _rating(line: int, record: Record, score: float | None, cluster: str | None) -> _Rating:
    criterion = record.get("criterion")
    return _Rating(
        line=line,
        criterion=None if criterion is None else str(criterion),
        item=str(record["item"]),
        rater=str(record["rater"]),
        score=score,
        cluster=None if cluster is None else _cluster_of(record, cluster),
    )


def _cluster_of(record: Record, field: str) -> str | None:
    metadata = record.get("metadata")
    inside: Record = cast("Record", metadata) if isinstance(metadata, dict) else {}
    value = inside.get(field) if record.get(field) is None else record[field]
    return value if isinstance(value, str | None) else msgspec.json.encode(value).decode()


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
    for name in ("item", "rater", "criterion"):
        value = record.get(name)
        named = bool(value) if isinstance(value, str) else type(value) is int
        if name in record and not named and not (name == "criterion" and value is None):
            problem = f"`{name}` is {kind_of(value)}"
            yield "wrong-type", problem, "give it as a text or a whole number"
    if isinstance(score, bool) or not isinstance(score, int | float | None):
        hint = "give it as a number, or as null where it is missing"
        if isinstance(score, str):
            hint += "; for labels name them, lowest first: --scale bad,fair,good"
        if labels:
            hint = f"give one of {listed(labels)}, or null where it is missing"
        yield "wrong-type", f"`score` is {kind_of(score)}", hint


def _problems(
    ratings: Sequence[_Rating], scale: Scale, cluster: str | None
) -> Iterator[tuple[str, str]]:
    """Yield the problems that make the ratings unusable, each with a fix."""
    scored = [(each.line, each.score) for each in ratings if each.score is not None]
    off = [(line, score) for line, score in scored if not scale.contains(score)]
    if off:
        hint = "correct them, or declare the scale that was used"
        yield f"{_are(len(off), 'score')} off the scale {scale} ({_lines(off)})", hint
    between = [(line, score) for line, score in scored if scale.contains(score)]
    between = [(line, score) for line, score in between if not scale.accepts(score)]
    if between:
        hint = "use --continuous if the scale has no steps"
        yield f"{_are(len(between), 'score')} fractional ({_lines(between)})", hint
    first: dict[tuple[str | None, str, str], int] = {}
    rated = [((each.criterion, each.item, each.rater), each.line) for each in ratings]
    pairs = [(first.setdefault(key, line), line) for key, line in rated]
    twice = [f"lines {one} and {other}" for one, other in pairs if one != other]
    if twice:
        problem = f"{_are(len(twice), 'rating')} given twice by the same rater ({_few(twice)})"
        yield problem, "keep one of each"
    if not scored:
        problem = "every score is null" if ratings else "there are no ratings"
        yield problem, f"write rows such as {_EXAMPLE}"
    elif cluster is not None:
        yield from _cluster_problems(ratings, cluster)


def _cluster_problems(ratings: Sequence[_Rating], field: str) -> Iterator[tuple[str, str]]:
    named = [each for each in ratings if each.cluster is not None]
    if not named:
        yield f"no row has a field `{field}` to cluster by", "name a column of the ratings"
    first: dict[str, _Rating] = {}
    pairs = [(first.setdefault(each.item, each), each) for each in named]
    differ = [(one.line, other.line) for one, other in pairs if one.cluster != other.cluster]
    if differ:
        lines = _few([f"lines {one} and {other}" for one, other in differ])
        yield f"an item has two values of `{field}` ({lines})", "give each item one"


def _of_criterion(
    criterion: str | None, ratings: Sequence[_Rating], clusters: Mapping[str, str] | None
) -> Ratings:
    own = [each for each in ratings if each.criterion == criterion]
    scored = [(each.item, each.rater, each.score) for each in own if each.score is not None]
    items = {item: at for at, item in enumerate(dict.fromkeys(item for item, _, _ in scored))}
    raters = {rater: at for at, rater in enumerate(dict.fromkeys(each.rater for each in own))}
    # An item without a cluster is one of its own, whatever the others are called.
    named = None if clusters is None else tuple(clusters.get(item, ("", item)) for item in items)
    return Ratings(
        criterion=criterion,
        items=tuple(items),
        raters=tuple(raters),
        item=tuple(items[item] for item, _, _ in scored),
        rater=tuple(raters[rater] for _, rater, _ in scored),
        score=tuple(float(score) for _, _, score in scored),
        clusters=named,
    )


def _are(count: int, noun: str) -> str:
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'}"


def _lines(scores: list[tuple[int, float]]) -> str:
    return _few([f"line {number}: {_shown(score)}" for number, score in scores])


def _few(entries: list[str]) -> str:
    left = len(entries) - _LISTED
    more = [f"and {left:,} more"] if left > 0 else []
    return ", ".join([*entries[:_LISTED], *more])


def _shown(score: float) -> str:
    # A whole number may be larger than any float.
    text = show_number(score) if abs(score) < 10**15 else f"{Decimal(score):.6g}"
    return printable(text)[:_LONGEST]
