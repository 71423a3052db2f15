"""From a record, as a file gives it, to a row."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from jurybox.datasets.columns import FIELD_OF, ROW_FIELDS, slip_of
from jurybox.datasets.values import READERS, Reader, Refused, read_extra
from jurybox.documents.findings import Findings, Place
from jurybox.sample import Response, Row, Timing, Usage
from jurybox.wording import listed

Record = Mapping[str, object]
"""The columns of one row; None is what isn't there."""

Warn = Callable[[str], None]
"""Takes a warning; told twice, it is told once."""

DROPPED: Final = "the rows carry responses; the target makes new ones"
_RECORDED: Final = frozenset(
    {"latency_e2e_ms", "latency_model_ms", "input_tokens", "output_tokens", "timed_out"}
)
# Rows of one file look alike. Bounds, in case they don't: a key may be anything.
_MOST_SHAPES = 1000
_WIDEST_SHAPE = 200
_MOST_COLUMNS = 1000


class _Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of all records with the same columns in the same order."""

    known: tuple[tuple[str, str, Reader], ...]
    extras: tuple[str, ...]
    recorded: bool
    slips: dict[str, tuple[str, str]]


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows need a response.

    Without ``responses`` a recorded one is dropped: a target makes one. Only the first ``limit``
    rows need one. ``recorded_in`` is the file of recorded responses, where they have one.
    """

    responses: bool
    limit: int | None = None
    recorded_in: str | None = None

    def response_of(self, number: int) -> bool:
        """Whether a row, counted from 1, needs one."""
        return self.responses and (self.limit is None or number <= self.limit)


class RowReader:
    """Reads the records of one pass, in their order; notes what is wrong with each."""

    def __init__(self, findings: Findings, warn: Warn, needs: Needs) -> None:
        self._findings = findings
        self._warn = warn
        self._needs = needs
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._judged: dict[str, str | None] = {}
        self._count = 0
        self.has_ids = False

    def read(self, line: int, record: Record) -> Row | None:
        """Return the row, or None where there is something wrong with it."""
        columns = tuple(record)
        shape = self._shapes.get(columns) or self._shape_of(columns)
        sound = True
        values: dict[str, Any] = {}
        for name, field, read in shape.known:
            value = record[name]
            if value is None:
                continue
            try:
                value = read(value, name)
            except Refused as refused:
                sound = self._note(line, refused.code, refused.problem, refused.mend)
                continue
            if field in values:
                sound = self._note_two_names(line, field, record)
            elif value is not None:
                values[field] = value
        if shape.extras:
            sound = self._add_extras(line, shape.extras, record, values) and sound
        row_id = self._id_of(line, record, values)
        if "task" not in values:
            sound = self._note_absent(line, "task", shape, record)
        response = self._response_of(values, recorded=shape.recorded)
        if response is None and self._needs.response_of(self._count):
            sound = self._note_unanswered(line, shape, record)
        if not sound or row_id is None:
            return None
        return self._row(row_id, values, response)

    def _row(self, row_id: str, values: dict[str, Any], response: Response | None) -> Row:
        response_b = values.get("response_b")
        return Row(
            id=row_id,
            task=values["task"],
            reference=values.get("reference"),
            context=values.get("context"),
            messages=values.get("messages", ()),
            scenario=values.get("scenario"),
            metadata=values.get("metadata") or {},
            response=response,
            response_b=None if response_b is None else Response(text=response_b),
        )

    def _id_of(self, line: int, record: Record, values: dict[str, Any]) -> str | None:
        """Return the row's id: its own where rows have one, else its number."""
        given = record.get("id") is not None
        self._count += 1
        if self._count == 1:
            self.has_ids = given
        if given != self.has_ids:
            here, there = ("an", "has none") if given else ("no", "has one")
            problem = f"the row has {here} `id`, and the first row {there}"
            self._note(line, "mixed-ids", problem, "give every row an id, or none")
            return None
        return values.get("id") if given else str(self._count)

    def _response_of(self, values: dict[str, Any], *, recorded: bool) -> Response | None:
        text = values.get("response")
        if not self._needs.responses:
            if text is not None or (recorded and not _RECORDED.isdisjoint(values)):
                self._warn(DROPPED)
            return None
        if not recorded:
            return None if text is None else Response(text=text)
        timed_out = values.get("timed_out", False)
        if text is None and not timed_out:
            return None
        return Response(
            text=text or "",
            timing=Timing(
                latency_e2e_ms=values.get("latency_e2e_ms"),
                latency_model_ms=values.get("latency_model_ms"),
                timed_out=timed_out,
            ),
            usage=Usage(
                input_tokens=values.get("input_tokens"), output_tokens=values.get("output_tokens")
            ),
        )

    def _add_extras(
        self, line: int, extras: tuple[str, ...], record: Record, values: dict[str, Any]
    ) -> bool:
        """Keep the columns that nobody knows, as metadata."""
        given: dict[str, Any] = values.get("metadata", {})
        kept: dict[str, Any] = {}
        for name in extras:
            value = record[name]
            if value is None:
                continue
            if name in given:
                problem = f"`{name}` is both a column and a key of `metadata`"
                return self._note(line, "two-names", problem, "remove or rename one of them")
            try:
                kept[name] = read_extra(value, name)
            except Refused as refused:
                return self._note(line, refused.code, refused.problem, refused.mend)
        values["metadata"] = {**kept, **given}
        return True

    def _note(self, line: int, code: str, problem: str, mend: str) -> bool:
        self._findings.add(Place(line), code, problem, mend)
        return False

    def _note_two_names(self, line: int, field: str, record: Record) -> bool:
        problem = f"{listed(_given(field, record))} are names of the same field"
        return self._note(line, "two-names", problem, "keep one of them, or rename the others")

    def _note_unanswered(self, line: int, shape: _Shape, record: Record) -> bool:
        if self._needs.recorded_in is None:
            return self._note_absent(line, "response", shape, record)
        if _given("response", record):
            # It was noted for what is wrong with it.
            return False
        given = record.get("id")
        named = "without an id" if given is None else f"`{given}`"
        problem = f"the sample {named} has no response in {self._needs.recorded_in}"
        return self._note(line, "missing-field", problem, "add a row with its id there")

    def _note_absent(self, line: int, field: str, shape: _Shape, record: Record) -> bool:
        """Note a field that isn't there; one that is there was noted for what is wrong with it."""
        if _given(field, record):
            return False
        names = (field, *ROW_FIELDS[field])
        if field in shape.slips:
            column, name = shape.slips[field]
            mend = f"if `{column}` is meant, call it `{name}`"
        elif field == "response":
            mend = f"add it (as {listed(names)}), or name a `target` in the suite"
        else:
            mend = f"add it (as {listed(names)})"
        return self._note(line, "missing-field", f"the row has no `{field}`", mend)

    def _shape_of(self, columns: tuple[str, ...]) -> _Shape:
        known = tuple(
            (name, FIELD_OF[name], READERS[FIELD_OF[name]]) for name in columns if name in FIELD_OF
        )
        fields = {field for _, field, _ in known}
        extras = tuple(name for name in columns if name not in FIELD_OF)
        shape = _Shape(
            known=known,
            extras=extras,
            recorded=not _RECORDED.isdisjoint(fields),
            slips=self._slips(extras, fields),
        )
        if len(self._shapes) < _MOST_SHAPES and len(columns) <= _WIDEST_SHAPE:
            self._shapes[columns] = shape
        return shape

    def _slips(self, extras: tuple[str, ...], present: set[str]) -> dict[str, tuple[str, str]]:
        """Find unknown columns that look like a slip of a field's name, and warn of them."""
        slips: dict[str, tuple[str, str]] = {}
        for column in extras:
            if column not in self._judged and len(self._judged) < _MOST_COLUMNS:
                self._judged[column] = slip_of(column)
            name = self._judged.get(column)
            if name is not None and FIELD_OF[name] not in present:
                slips[FIELD_OF[name]] = (column, name)
                self._warn(f"the column `{column}` is kept as metadata; did you mean `{name}`?")
        return slips


def _given(field: str, record: Record) -> list[str]:
    """Return the names that a field goes by in a record."""
    return [name for name in (field, *ROW_FIELDS[field]) if record.get(name) is not None]
