"""Verdicts on pairs of models, one a row: the input of a ranking."""

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from jurybox.datasets.dataset import take_all
from jurybox.datasets.fields import FieldError
from jurybox.datasets.open_dataset import reader_or_lines
from jurybox.datasets.row_reader import FileContext, Record, field_of
from jurybox.datasets.source import open_or_stdin
from jurybox.documents.findings import Findings
from jurybox.errors import InputError
from jurybox.statistics.davidson import PairVerdict, WinningSide

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
    """The verdicts of a file, and how many of its rows have none: their winner is null."""

    rows: tuple[PairVerdict, ...]
    without: int


def read_verdicts(path: Path) -> Verdicts:
    """Read ``{"a": NAME, "b": NAME, "winner": "a" | "b" | "tie", "item"?, "judge"?}`` rows.

    The path's ending names the format, JSON lines where it is unknown; ``-`` is standard input.

    Raises:
        InputError: the file can't be read or holds no verdicts.
        DatasetError: rows have faults.

    """
    findings = Findings()
    with open_or_stdin(path, "verdicts") as source:
        records = reader_or_lines(path)(source, FileContext(findings))
        return _verdicts(records, source.origin, findings)


def run_verdicts(rows: Iterable[Record], origin: str, names: tuple[str, str]) -> Verdicts:
    """Return the verdicts of a run's exported rows; ``names`` are for rows that name no models.

    Raises:
        InputError: the run has no pairs, or none with a winner.

    """
    a, b = names
    records = (
        (number, {"a": a, "b": b, **row} if field_of(row, "a", "model_a") is None else row)
        for number, row in enumerate(rows, start=1)
    )
    return _verdicts(records, origin, Findings())


def _verdicts(records: Iterable[tuple[int, Record]], origin: str, findings: Findings) -> Verdicts:
    rows: list[PairVerdict] = []
    without = 0

    def take(line: int, record: Record) -> None:
        nonlocal without
        del line
        verdicts = _verdicts_of(record)
        rows.extend(verdicts)
        without += not verdicts

    take_all(records, take, findings, origin)
    if not rows:
        problem = "no row has a winner" if without else "there are no rows"
        hint = 'write rows such as `{"a": NAME, "b": NAME, "winner": "a"}`'
        raise InputError(problem, hint, origin)
    return Verdicts(rows=tuple(rows), without=without)


def _verdicts_of(record: Record) -> list[PairVerdict]:
    """Return a row's verdict, or every vote of an exported pair; none without a winner."""
    a, b = _names(record)
    item = _item(record)
    winner = _winner(record, [a, b])
    sides = (_votes(record) or [winner]) if winner is not None else []
    given = record.get("judge")
    judge = given if isinstance(given, str) else None
    return [PairVerdict(a=a, b=b, winner=side, item=item, judge=judge) for side in sides]


def _votes(record: Record) -> list[WinningSide]:
    """Return the votes on an exported pair, so that their mean counts and not the majority (E9)."""
    votes = record.get("winner_votes")
    with contextlib.suppress(msgspec.DecodeError, TypeError, AttributeError, LookupError):
        sides: Any = msgspec.json.decode(votes) if isinstance(votes, str) else votes
        return [_SIDES[side.lower()] for side in sides]
    return []


def _item(record: Record) -> str | float | None:
    # An exported row has the id of its sample, and what both models answered in its metadata.
    item = field_of(record, "item")
    item = field_of(record, "id") if item is None else item
    if isinstance(item, dict | list):
        problem = "`item` is neither a text nor a number"
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
    # A model may be called `b` and stand on the other side.
    if by_name and by_side and by_name != by_side:
        problem = f"{shown} is a side and the other side's model"
        raise FieldError("wrong-type", problem, "rename the models")
    side = by_name or by_side
    if side is None:
        raise FieldError("wrong-type", f"{shown} is none of the two models and no tie", _HINT)
    return side


def _winner_by_votes(record: Record) -> WinningSide | None:
    """Return the winner by the mean votes of an exported pair (E9); None for any other row."""
    responses = record.get("responses")
    with contextlib.suppress(msgspec.DecodeError, TypeError, ValueError, LookupError):
        sides: Any = msgspec.json.decode(responses) if isinstance(responses, str) else responses
        a, b = (float(sides[side]["overall_by_votes"]) for side in ("A", "B"))
        return "tie" if a == b else "a" if a > b else "b"
    return None


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
