"""Converts the records of a file to rows."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, cast

import msgspec

from jurybox.datasets.fields import FIELD_OF, FIELDS, Columns, FieldError, Part, fields_of
from jurybox.documents.findings import Findings, Place
from jurybox.sample import Response, Row, Timing, Turn, Usage, emptiness
from jurybox.text_format import as_text, counted, listed, nearest

Record = Mapping[str, object]
"""The columns of one row; None for a missing value."""

Warn = Callable[[str], None]
"""Receives a warning; duplicates count once."""

Values = dict[str, Any]

ANSWERED: Final = fields_of("timing") | fields_of("usage") | {"response"}
"""The fields of a row that belong to its response."""

_MOST_LISTED: Final = 20

_DROPPED: Final = "is read as a recorded response, but the target makes new ones"
_IF_REFERENCE: Final = "; if it is the reference, write `columns: {{reference: {}}}` in the suite"


def field_of(record: Record, *names: str) -> object:
    """Return the first of these fields in a record; without any, the first in its metadata."""
    metadata = record.get("metadata")
    places = [record, cast("Record", metadata)] if isinstance(metadata, dict) else [record]
    found = (place[name] for place in places for name in names if place.get(name) is not None)
    return next(found, None)


class FileContext(Findings):
    """The faults, the warnings and the columns that all readers of a file share.

    ``findings`` may have the faults of several files; the first line of this file is then the line
    after ``start``.
    """

    def __init__(
        self,
        findings: Findings,
        warn: Warn = lambda _: None,
        columns: Columns | None = None,
        start: int = 0,
    ) -> None:
        super().__init__()
        self._findings = findings
        self._start = start
        self.warn = warn
        self.columns = columns or Columns()

    def add(self, place: Place, code: str, problem: str, hint: str) -> None:
        """Note a fault."""
        place = Place(self._start + place.line, place.column)
        self._findings.add(place, code, problem, hint)

    def note(self, line: int, code: str, problem: str, hint: str) -> bool:
        """Note a fault of a row, and return False."""
        self.add(Place(line), code, problem, hint)
        return False


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows are read, and which of them need a response.

    Without ``responses``, recorded responses are dropped, because a target makes new ones. Only the
    first ``limit`` rows need a response. ``recorded_in`` is the file of recorded responses, if any.
    ``filters`` are the allowed values of fields; other rows are left out. If only a part of the
    dataset is read, ``first`` is the number of rows before it.
    """

    responses: bool = False
    limit: int | None = None
    recorded_in: str | None = None
    filters: Mapping[str, Collection[str]] = {}
    first: int | None = None

    def response_of(self, number: int) -> bool:
        """Return whether a row, by its number from 1, needs a response."""
        return self.responses and (self.limit is None or number <= self.limit)


class RowReader:
    """Reads the records of one pass, in order; notes the faults of each.

    Faults of columns are noted once per file, not once per row.
    """

    def __init__(self, context: FileContext, needs: Needs) -> None:
        self._context = context
        self._note = context.note
        self._columns = context.columns
        self._needs = needs
        self._before = needs.first or 0
        self._count = self._chosen = self._before
        # `_unmet`: filter fields that no row has had yet. `_names`: every field seen so far.
        self._unmet = dict.fromkeys(needs.filters)
        self._names: dict[str, None] = {}
        # Fields that rows lack: the first line, its columns (or its id, if a recorded response is
        # missing), and the count.
        self._lacks: dict[str, tuple[int, list[str], int]] = {}
        # Columns that the suite names and no row has had yet, and the columns of the first row.
        self.unseen = dict(context.columns.given)
        self._first: list[str] = []
        # Column names that were checked, and fields with a finding.
        self._other: set[str] = set()
        self._noted: set[str] = set()
        self.has_ids = False

    def read(self, line: int, record: Record) -> Row | None:
        """Return the row; None if it has a fault, or if the filters leave it out."""
        if self.unseen:
            self._first = self._first or list(record)
            self.unseen = {f: name for f, name in self.unseen.items() if name not in record}
        values, extras, given, sound = self._values_of(line, record)
        if extras:
            sound = self._add_extras(line, extras, values) and sound
            if not self._other.issuperset(extras):
                sound = self._check_names(line, extras, given) and sound
        row_id = self._id_of(line, values, has_id="id" in given)
        if "messages" in given and "task" not in given:
            sound = self._split_messages(line, values, given) and sound
        if "task" not in given:
            sound = self._note_absent(line, "task", record)
        if sound and self._needs.filters and not self._passes(row_id, values, given):
            return None
        self._chosen += 1
        if "response" not in given and self._has_empty_response(record):
            values["response"] = ""
        response = self._response_of(values, given)
        needs_one = "response" not in given and self._needs.response_of(self._chosen)
        if response is None and needs_one:
            names = record if self._needs.recorded_in is None else [str(row_id)]
            sound = self._note_absent(line, "response", names)
        if not sound or row_id is None:
            return None
        return self._row(row_id, values, response)

    def _passes(self, row_id: str | None, values: Values, given: dict[str, str]) -> bool:
        """Return whether a row passes all filters."""
        metadata: dict[str, Any] = values.get("metadata", {})
        columns = {column: values[field] for field, column in given.items() if field in values}
        known = {**metadata, **columns, **values, "id": row_id}
        self._names |= dict.fromkeys(known)
        self._unmet = {name: None for name in self._unmet if name not in known}
        return all(
            name in known and as_text(known[name]) in wanted
            for name, wanted in self._needs.filters.items()
        )

    def _note_filters(self) -> None:
        """Note filters on unknown fields; without any, note that no row matches all filters."""
        for name in self._unmet:
            names = [each for each in self._names if each not in {"messages", "metadata"}]
            hint = nearest(name, names, f"rows have {_columns(names)}")
            self._note(1, "unknown-filter", f"no row has a field `{name}`", hint)
        if not self._unmet and not self._chosen:
            given = self._needs.filters.items()
            wanted = " and ".join(f"{name}={' or '.join(values)}" for name, values in given)
            self._note(1, "no-rows", f"no row has {wanted}", "filter by values that rows have")

    def finish(self) -> None:
        """Note which fields rows lack, once per field."""
        if self._needs.filters and self._count:
            self._note_filters()
        # Another part may have the missing fields.
        if self._count and self._needs.first is None:
            for field, column in self.unseen.items():
                self._noted.add(field)
                problem = f"no row has the column `{column}`, which the suite names for `{field}`"
                otherwise = f"the columns are {_columns(self._first)}"
                self._note(1, "missing-column", problem, nearest(column, self._first, otherwise))
        for field, (line, columns, count) in self._lacks.items():
            if field in self._noted:
                continue
            if field == "response" and self._needs.recorded_in is not None:
                more = "" if count == 1 else f", and {count - 1:,} more have none"
                problem = f"the sample `{columns[0]}` has no response in {self._needs.recorded_in}"
                self._note(line, "missing-field", problem + more, "add a row with its id there")
                continue
            rows = "the row has" if count == 1 else f"{counted(count, 'row')} have"
            problem = f"{rows} no `{field}`; the columns are {_columns(columns)}"
            hint = f"name its column with `columns: {{{field}: COLUMN}}` in the suite"
            if field == "response":
                hint += ", or name a `target` there"
            self._note(line, "missing-field", problem, hint)

    def _values_of(self, line: int, record: Record) -> tuple[Values, Values, dict[str, str], bool]:
        """Return fields, other values, each field's column, and whether everything is valid."""
        sound = True
        values: Values = {}
        extras: Values = {}
        given: dict[str, str] = {}
        reader_of = self._columns.reader
        for name, value in record.items():
            if value is None:
                continue
            field, read = reader_of(name)
            kind = type(value)
            if kind is list and field == "task":
                field, read = "messages", FIELDS["messages"].read  # as in Inspect and Langfuse
            try:
                found = read(value, name)
            except FieldError as error:
                sound = self._note(line, error.code, error.problem, error.hint)
                given[field or name] = name
                continue
            if field is None:
                extras[name] = found
            elif field in values:
                sound = self._note_two_names(line, field, given[field], name)
            elif found is not None:
                values[field], given[field] = found, name
        return values, extras, given, sound

    def _row(self, row_id: str, values: Values, response: Response | None) -> Row:
        values["id"], values["response"] = row_id, response
        second: str | None = values.get("response_b")
        if second is not None:
            values["response_b"] = Response(text=second, error=emptiness(second))
        return Row(**values)

    def _id_of(self, line: int, values: Values, *, has_id: bool) -> str | None:
        """Return the row's id: its own if rows have ids, else its number."""
        self._count += 1
        if self._count == self._before + 1:
            self.has_ids = has_id
        if has_id != self.has_ids:
            here, there = ("an", "has none") if has_id else ("no", "has one")
            problem = f"the row has {here} `id`, but the first row {there}"
            self._note(line, "mixed-ids", problem, "give every row an id, or none")
            return None
        return values.get("id") if has_id else str(self._count)

    def _split_messages(self, line: int, values: Values, given: dict[str, str]) -> bool:
        """Take the task, and the response if there is one, from the end of a chat log."""
        name = given["task"] = given["messages"]
        if "messages" not in values:
            given["response"] = name  # the messages are invalid; that has been noted
            return False
        turns: tuple[Turn, ...] = values["messages"]
        if turns and turns[-1].role == "assistant":
            if "response" in given:
                problem = f"`{name}` ends with a response, and `{given['response']}` is one too"
                return self._note(line, "two-names", problem, "remove one of them")
            values["response"], given["response"] = turns[-1].content, name
            turns = turns[:-1]
        if not turns or turns[-1].role != "user" or not turns[-1].content.strip():
            problem = f"`{name}` has no user turn to answer, and the row has no `task`"
            return self._note(line, "missing-field", problem, "add the turn, or a `task`")
        values["task"] = turns[-1].content
        values["messages"] = turns[:-1]
        return True

    def _has_empty_response(self, record: Record) -> bool:
        """Return whether the row has a response column that is empty."""
        if self._needs.recorded_in is not None or not self._needs.responses:
            return False
        return any(self._columns.field(name) == "response" for name in record)

    def _response_of(self, values: Values, given: dict[str, str]) -> Response | None:
        """Return the recorded response; its measurements are removed from the values."""
        timing, usage = _taken(values, "timing"), _taken(values, "usage")
        text: str | None = values.get("response")
        if not self._needs.responses:
            dropped = [given[field] for field in given if field in ANSWERED]
            if dropped:
                hint = "" if "reference" in values else _IF_REFERENCE.format(dropped[0])
                self._context.warn(f"`{dropped[0]}` {_DROPPED}{hint}")
            return None
        if text is None and not timing.get("timed_out"):
            return None
        error = None if timing.get("timed_out") else emptiness(text or "")
        return Response(text=text or "", timing=Timing(**timing), usage=Usage(**usage), error=error)

    def _add_extras(self, line: int, extras: Values, values: Values) -> bool:
        """Keep other columns as metadata."""
        given: dict[str, Any] = values.get("metadata", {})
        both = next((name for name in extras if name in given), None)
        if both is not None:
            problem = f"`{both}` is both a column and a key of `metadata`"
            return self._note(line, "two-names", problem, "remove or rename one of them")
        values["metadata"] = {**extras, **given}
        return True

    def _check_names(self, line: int, extras: Values, given: dict[str, str]) -> bool:
        """Refuse a column whose name is one typo away from a field that the row lacks."""
        sound = True
        for column in extras:
            if column in self._other:
                continue
            name = self._columns.misspelled(column)
            field = None if name is None else FIELD_OF[name]
            if field is None or (field in ANSWERED and not self._needs.responses):
                self._other.add(column)
            elif field not in given:
                self._other.add(column)
                self._noted.add(field)
                problem = f"the column `{column}` is almost `{name}`"
                hint = f"rename it, or write `columns: {{{field}: {column}}}` in the suite"
                sound = self._note(line, "misspelled-column", problem, hint)
        return sound

    def _note_two_names(self, line: int, field: str, first: str, second: str) -> bool:
        if field not in self._noted:
            self._noted.add(field)
            problem = f"`{first}` and `{second}` are both names of `{field}`"
            hint = f"say which is meant with `columns: {{{field}: {first}}}` in the suite"
            self._note(line, "two-names", problem, hint)
        return False

    def _note_absent(self, line: int, field: str, names: Iterable[str]) -> bool:
        first, shown, count = self._lacks.get(field) or (line, list(names), 0)
        self._lacks[field] = first, shown, count + 1
        return False


def _columns(names: list[str]) -> str:
    more = ", ..." if len(names) > _MOST_LISTED else ""
    return (listed(names[:_MOST_LISTED]) or "none") + more


def _taken(values: Values, part: Part) -> Values:
    names = fields_of(part)
    return {} if names.isdisjoint(values) else {n: values.pop(n) for n in names & values.keys()}


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
    given = {name: value for name, value in values.items() if not _is_absent(value)}
    return msgspec.to_builtins(given | texts)


def _is_absent(value: object) -> bool:
    return value is None or value is False or value in ((), {})
