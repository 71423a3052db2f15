"""Files of ratings and of verdicts on pairs."""

import contextlib
from collections.abc import Hashable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import numpy as np

from jurybox.datasets.dataset import take_all
from jurybox.datasets.fields import FieldError, kind_of
from jurybox.datasets.open_dataset import reader_or_lines
from jurybox.datasets.row_reader import FileContext, Record, field_of
from jurybox.datasets.source import open_or_stdin
from jurybox.datasets.text_rows import as_number, read_csv, read_tsv
from jurybox.documents.findings import Findings
from jurybox.errors import InputError, ParseError
from jurybox.rubric.scale import Scale
from jurybox.statistics.agreement import Ratings
from jurybox.statistics.davidson import PairVerdict, WinningSide
from jurybox.text_format import closest, listed

FIELDS: Final = ("item", "rater", "score", "criterion")
_EXAMPLE: Final = '`{"item": "1", "rater": "anna", "score": 4}`'


class RatingScale(msgspec.Struct, frozen=True, kw_only=True):
    """The scale of ratings; labels, lowest first, represent the scores 1, 2 and so on."""

    scale: Scale
    labels: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the scale as text, with the labels of its scores."""
        named = (f"{number} {label}" for number, label in enumerate(self.labels, start=1))
        return f"{self.scale} ({', '.join(named)})" if self.labels else str(self.scale)


def labeled_scale(text: str) -> RatingScale:
    """Read labels such as ``bad, fair, good``, lowest first."""
    labels = tuple(label.strip() for label in text.split(","))
    if len(labels) == 1 or not all(labels) or len({*labels}) < len(labels):
        hint = "write two different labels or more, lowest first, such as `bad,fair,good`"
        raise ParseError(f"`{text}` isn't a list of labels", hint)
    return RatingScale(scale=Scale(low=1, high=len(labels)), labels=labels)


class _Reading:
    """The scores and clusters read so far, with their lines."""

    def __init__(self, declared: RatingScale, cluster: str | None, *, cells: bool) -> None:
        self._declared = declared
        self._cluster = cluster
        self._cells = cells
        # By criterion, item and rater; a missing score is None.
        self.scores: dict[tuple[str | None, str, str], tuple[float | None, int]] = {}
        self.clusters: dict[str, tuple[str, int]] = {}

    def take(self, line: int, record: Record) -> None:
        """Add a row; raise FieldError if it can't be used."""
        item, rater = _name(record, "item"), _name(record, "rater")
        criterion = None if record.get("criterion") is None else _name(record, "criterion")
        score = self._score(record)
        _, first = self.scores.setdefault((criterion, item, rater), (score, line))
        if first != line:
            problem = f"`{rater}` has already rated `{item}` (on line {first})"
            raise FieldError("duplicate-id", problem, "keep one of the two")
        value = None if self._cluster is None else field_of(record, self._cluster)
        if value is None:
            return
        named = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        other, first = self.clusters.setdefault(item, (named, line))
        if other != named:
            problem = f"`{item}` has a different `{self._cluster}` on line {first}"
            raise FieldError("two-clusters", problem, "give each item one value")

    def _score(self, record: Record) -> float | None:
        """Return the score, or the position of its label; a CSV cell may be a number."""
        value, scale, labels = record.get("score"), self._declared.scale, self._declared.labels
        if "score" not in record:
            raise _missing(record, "score")
        if labels and value is not None:
            label = value.strip() if isinstance(value, str) else msgspec.json.encode(value).decode()
            value = labels.index(label) + 1 if label in labels else str(value)
        elif self._cells and isinstance(value, str):
            value = as_number(value.strip())
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            hint = "give it as a number, or as null if it is missing"
            if isinstance(value, str):
                hint += "; if scores are labels, list them, lowest first: --scale bad,fair,good"
            if labels:
                hint = f"give one of {listed(labels)}, or null if it is missing"
            raise FieldError("wrong-type", f"`score` is {kind_of(value)}", hint)
        if value is not None and not scale.accepts(value):
            hint = "correct it, or declare the scale that was used"
            if scale.contains(value):
                hint = "use --continuous if the scale has no steps"
            problem = f"`score` is {kind_of(value)}, which is not on the scale {scale}"
            raise FieldError("wrong-type", problem, hint)
        return value

    def of_criterion(self, criterion: str | None) -> Ratings:
        """Return the ratings of a criterion as a table."""
        own = {
            (item, rater): score
            for (each, item, rater), (score, _) in self.scores.items()
            if each == criterion
        }
        items = dict.fromkeys(item for (item, _), score in own.items() if score is not None)
        raters = tuple(dict.fromkeys(rater for _, rater in own))
        # An item without a cluster is its own cluster, with a name that no other has.
        clusters: tuple[Hashable, ...] = tuple(
            self.clusters[item][0] if item in self.clusters else ("", item) for item in items
        )
        scores = [[own.get((item, rater)) for rater in raters] for item in items]
        return Ratings(
            criterion=criterion,
            raters=raters,
            table=np.array(scores, dtype=np.float64).reshape(len(items), len(raters)),
            clusters=None if self._cluster is None else clusters,
        )


def read_ratings(
    path: Path, declared: RatingScale, *, cluster: str | None = None
) -> tuple[Ratings, ...]:
    """Read the ratings of every criterion, in file order; ``-`` is standard input.

    A score of ``null`` or an empty cell is a missing rating. Rows without a criterion belong to the
    criterion ``None``. ``cluster`` is a field of the rows: items with the same value form a
    cluster, and an item without a value is its own cluster.
    """
    findings = Findings()
    read = reader_or_lines(path)
    reading = _Reading(declared, cluster, cells=read in {read_csv, read_tsv})
    with open_or_stdin(path, "ratings") as source:
        take_all(read(source, FileContext(findings)), reading.take, findings, source.origin)
    scored = [key for key, (score, _) in reading.scores.items() if score is not None]
    if not scored:
        problem = "every score is null" if reading.scores else "there are no ratings"
        raise InputError(problem, f"write rows such as {_EXAMPLE}", source.origin)
    if cluster is not None and not reading.clusters:
        problem = f"no row has a field `{cluster}` to cluster by"
        raise InputError(problem, "name a column of the ratings", source.origin)
    return tuple(map(reading.of_criterion, dict.fromkeys(criterion for criterion, _, _ in scored)))


def _name(record: Record, field: str) -> str:
    if field not in record:
        raise _missing(record, field)
    value = record[field]
    if not (value if isinstance(value, str) else type(value) is int):
        problem = f"`{field}` is {kind_of(value)}"
        raise FieldError("wrong-type", problem, "give it as a string or a whole number")
    return str(value)


def _missing(record: Record, field: str) -> FieldError:
    meant = closest(field, [key for key in record if key not in FIELDS])
    hint = f"add it, such as {_EXAMPLE}"
    hint = hint if meant is None else f"if `{meant}` is meant, call it `{field}`"
    return FieldError("missing-field", f"the row has no `{field}`", hint)


_SIDES: Final[dict[str, WinningSide]] = {
    "a": "a",
    "model_a": "a",
    "b": "b",
    "model_b": "b",
    "tie": "tie",
    "draw": "tie",
    "tie (bothbad)": "tie",
}
_LONGEST: Final = 60
_HINT: Final = 'write "a", "b", "tie" or a model\'s name as `winner`'


class Verdicts(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts of a file, and the number of rows with a null winner."""

    rows: tuple[PairVerdict, ...]
    without: int


def read_verdicts(path: Path) -> Verdicts:
    """Read ``{"a": NAME, "b": NAME, "winner": "a" | "b" | "tie", "item"?, "judge"?}`` rows.

    The extension determines the format, by default JSON lines; ``-`` is standard input.
    """
    findings = Findings()
    with open_or_stdin(path, "verdicts") as source:
        records = reader_or_lines(path)(source, FileContext(findings))
        return _verdicts(records, source.origin, findings)


def run_verdicts(rows: Iterable[Record], origin: str, names: tuple[str, str]) -> Verdicts:
    """Return the verdicts of a run's exported rows; ``names`` are the default model names."""
    a, b = names
    records = (
        (number, {"a": a, "b": b, **row} if field_of(row, "a", "model_a") is None else row)
        for number, row in enumerate(rows, start=1)
    )
    return _verdicts(records, origin, Findings())


def _verdicts(records: Iterable[tuple[int, Record]], origin: str, findings: Findings) -> Verdicts:
    found = take_all(records, lambda _, record: verdicts_of(record), findings, origin)
    rows = tuple(chain.from_iterable(found))
    without = sum(not each for each in found)
    if not rows:
        problem = "no row has a winner" if without else "there are no rows"
        hint = 'write rows such as `{"a": NAME, "b": NAME, "winner": "a"}`'
        raise InputError(problem, hint, origin)
    return Verdicts(rows=rows, without=without)


def verdicts_of(record: Record) -> list[PairVerdict]:
    """Return a row's verdict, or every vote of an exported pair; empty without a winner."""
    a, b = _names(record)
    item = _item(record)
    winner = _winner(record, [a, b])
    sides = (_votes(record) or [winner]) if winner is not None else []
    given = record.get("judge")
    judge = given if isinstance(given, str) else None
    return [PairVerdict(a=a, b=b, winner=side, item=item, judge=judge) for side in sides]


def _votes(record: Record) -> list[WinningSide]:
    """Return the votes on an exported pair, whose mean counts instead of the majority."""
    votes = record.get("winner_votes")
    with contextlib.suppress(msgspec.DecodeError, TypeError, AttributeError, LookupError):
        sides: Any = msgspec.json.decode(votes) if isinstance(votes, str) else votes
        return [_SIDES[side.lower()] for side in sides]
    return []


def _item(record: Record) -> str | float | None:
    # An exported row has its sample's id, and may have the `item` in its metadata.
    item = field_of(record, "item")
    item = field_of(record, "id") if item is None else item
    if isinstance(item, dict | list):
        problem = "`item` is neither a string nor a number"
        raise FieldError("wrong-type", problem, "write the id of the sample")
    return cast("str | float | None", item)


def _names(record: Record) -> tuple[str, str]:
    names: list[str] = []
    for side in ("a", "b"):
        name = field_of(record, side, f"model_{side}")
        if not isinstance(name, str) or not name.strip():
            what = "has no" if name is None else "has no text as"
            problem = f"the row {what} `{side}`, the name of a model"
            raise FieldError("missing-field", problem, f'add `"{side}": NAME`')
        names.append(name)
    if names[0] == names[1]:
        problem = f"`{_short(names[0])}` is compared with itself"
        raise FieldError("wrong-type", problem, "name two models")
    return names[0], names[1]


def _winner(record: Record, names: list[str]) -> WinningSide | None:
    if "winner" not in record:
        raise FieldError("missing-field", "the row has no `winner`", _HINT)
    winner = record["winner"]
    if winner is None:
        return None
    by_votes = _winner_by_votes(record)
    if by_votes is not None:
        return by_votes
    text = winner if isinstance(winner, str) else ""
    own: dict[str, WinningSide] = {names[0]: "a", names[1]: "b"}
    by_name, by_side = own.get(text), _SIDES.get(text.strip().lower())
    shown = f"the winner {_short(str(winner))!r}"
    # A model may be called `b` and be on the other side.
    if by_name and by_side and by_name != by_side:
        problem = f"{shown} is ambiguous: it names one side, and the model on the other side"
        raise FieldError("wrong-type", problem, "rename the models")
    side = by_name or by_side
    if side is None:
        raise FieldError("wrong-type", f"{shown} is neither one of the two models nor a tie", _HINT)
    return side


def _winner_by_votes(record: Record) -> WinningSide | None:
    """Return the winner by the mean votes of an exported pair; None for any other row."""
    responses = record.get("responses")
    with contextlib.suppress(msgspec.DecodeError, TypeError, ValueError, LookupError):
        sides: Any = msgspec.json.decode(responses) if isinstance(responses, str) else responses
        a, b = (float(sides[side]["overall_by_votes"]) for side in ("A", "B"))
        return "tie" if a == b else "a" if a > b else "b"
    return None


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
