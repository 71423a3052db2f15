"""From a record, as a file gives it, to a row."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from jurybox.datasets.fields import (
    FIELD_OF,
    FIELDS,
    FieldError,
    Part,
    fields_of,
    misspelled_field,
    names_of,
    read_extra,
)
from jurybox.documents.findings import Findings, Place
from jurybox.sample import Response, Row, Timing, Usage
from jurybox.text_format import listed

Record = Mapping[str, object]
"""The columns of one row; None is what isn't there."""

Warn = Callable[[str], None]
"""Takes a warning; repeated ones count once."""

Values = dict[str, Any]

Misspellings = dict[str, tuple[str, str]]
"""By field, the column that is probably meant, and the name that it should have."""

DROPPED: Final = "the rows carry responses; the target makes new ones"


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
        self._count = 0
        self.has_ids = False

    def read(self, line: int, record: Record) -> Row | None:
        """Return the row, or None where there is something wrong with it."""
        values, extras, sound = self._values_of(line, record)
        misspelled: Misspellings = {}
        if extras:
            sound = self._add_extras(line, extras, values) and sound
            misspelled = self._misspelled(extras, record)
        row_id = self._id_of(line, record, values)
        if "task" not in values:
            sound = self._note_absent(line, "task", misspelled, record)
        response = self._response_of(values)
        if response is None and self._needs.response_of(self._count):
            sound = self._note_unanswered(line, misspelled, record)
        if not sound or row_id is None:
            return None
        return self._row(row_id, values, response)

    def _values_of(self, line: int, record: Record) -> tuple[Values, Values, bool]:
        """Return the values of fields, those of other columns, and whether all are sound."""
        sound = True
        values: Values = {}
        extras: Values = {}
        for name, value in record.items():
            if value is None:
                continue
            field = FIELD_OF.get(name)
            try:
                found = (
                    read_extra(value, name) if field is None else FIELDS[field].read(value, name)
                )
            except FieldError as error:
                sound = self._note(line, error.code, error.problem, error.hint)
                continue
            if field is None:
                extras[name] = found
            elif field in values:
                sound = self._note_two_names(line, field, record)
            elif found is not None:
                values[field] = found
        return values, extras, sound

    def _row(self, row_id: str, values: Values, response: Response | None) -> Row:
        values["id"], values["response"] = row_id, response
        second = values.get("response_b")
        if second is not None:
            values["response_b"] = Response(text=second)
        return Row(**values)

    def _id_of(self, line: int, record: Record, values: Values) -> str | None:
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

    def _response_of(self, values: Values) -> Response | None:
        """Take what was measured out of the values, and return the recorded response."""
        timing, usage = _taken(values, "timing"), _taken(values, "usage")
        text = values.get("response")
        if not self._needs.responses:
            if text is not None or timing or usage:
                self._warn(DROPPED)
            return None
        if text is None and not timing.get("timed_out"):
            return None
        return Response(text=text or "", timing=Timing(**timing), usage=Usage(**usage))

    def _add_extras(self, line: int, extras: Values, values: Values) -> bool:
        """Keep the columns that are no fields, as metadata."""
        given: dict[str, Any] = values.get("metadata", {})
        both = next((name for name in extras if name in given), None)
        if both is not None:
            problem = f"`{both}` is both a column and a key of `metadata`"
            return self._note(line, "two-names", problem, "remove or rename one of them")
        values["metadata"] = {**extras, **given}
        return True

    def _note(self, line: int, code: str, problem: str, hint: str) -> bool:
        self._findings.add(Place(line), code, problem, hint)
        return False

    def _note_two_names(self, line: int, field: str, record: Record) -> bool:
        problem = f"{listed(_given(field, record))} are names of the same field"
        return self._note(line, "two-names", problem, "keep one of them, or rename the others")

    def _note_unanswered(self, line: int, misspelled: Misspellings, record: Record) -> bool:
        if self._needs.recorded_in is None:
            return self._note_absent(line, "response", misspelled, record)
        if _given("response", record):
            # It was noted for what is wrong with it.
            return False
        given = record.get("id")
        named = "without an id" if given is None else f"`{given}`"
        problem = f"the sample {named} has no response in {self._needs.recorded_in}"
        return self._note(line, "missing-field", problem, "add a row with its id there")

    def _note_absent(self, line: int, field: str, misspelled: Misspellings, record: Record) -> bool:
        """Note a field that isn't there; one that is there was noted for what is wrong with it."""
        if _given(field, record):
            return False
        names = names_of(field)
        if field in misspelled:
            column, name = misspelled[field]
            hint = f"if `{column}` is meant, call it `{name}`"
        elif field == "response":
            hint = f"add it (as {listed(names)}), or name a `target` in the suite"
        else:
            hint = f"add it (as {listed(names)})"
        return self._note(line, "missing-field", f"the row has no `{field}`", hint)

    def _misspelled(self, extras: Iterable[str], record: Record) -> Misspellings:
        """Find unknown columns that look like a slip of a field's name, and warn of them."""
        misspelled: Misspellings = {}
        for column in extras:
            name = misspelled_field(column)
            if name is None or any(FIELD_OF.get(each) == FIELD_OF[name] for each in record):
                continue
            misspelled[FIELD_OF[name]] = (column, name)
            self._warn(f"the column `{column}` is kept as metadata; did you mean `{name}`?")
        return misspelled


def _given(field: str, record: Record) -> list[str]:
    """Return the names that a field goes by in a record."""
    return [name for name in names_of(field) if record.get(name) is not None]


def _taken(values: Values, part: Part) -> Values:
    return {name: values.pop(name) for name in fields_of(part) & values.keys()}


def record_of(row: Row) -> Values:
    """Return a row as a line of a dataset, which reads back as the same row."""
    response = row.response
    parts: dict[Part, object] = {"row": row}
    if response is not None:
        parts |= {"timing": response.timing, "usage": response.usage}
    values = {
        name: getattr(parts[each.part], name) for name, each in FIELDS.items() if each.part in parts
    }
    texts = {name: each.text for name, each in values.items() if isinstance(each, Response)}
    plain: Values = msgspec.to_builtins(values | texts)
    return {name: value for name, value in plain.items() if not _is_absent(value)}


def _is_absent(value: object) -> bool:
    return value is None or value is False or value in ((), {})
