"""CSV: a header, then a record of as many cells. An empty cell is nothing."""

import csv
import re
from collections.abc import Callable, Iterator
from itertools import chain

from jurybox.datasets.fields import FIELDS, Cell, FieldError
from jurybox.datasets.json_lines import JsonError, decode, text_of
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import MAX_LINE, Source
from jurybox.documents.findings import Place
from jurybox.text_format import counted

_WHOLE = re.compile(r"[-+]?[0-9]{1,30}")
_DECIMAL = re.compile(
    r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
)
_FLAGS = {"true": True, "false": False}
_QUOTED = re.compile('"[^"]*"')


def read_csv(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every record of a file whose cells are separated by commas, or as its header is."""
    return _CsvFile(source, context, ",;\t|").records()


def read_tsv(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every record of a file whose cells are separated by tabs, or as its header is."""
    return _CsvFile(source, context, "\t,;|").records()


class _EndlessError(Exception):
    """A record goes on for longer than any row; it has been noted."""


class _CsvFile:
    def __init__(self, source: Source, context: FileContext, delimiters: str) -> None:
        self._source = source
        self._columns = context.columns
        self._findings = context.findings
        self._note = context.note
        self._delimiters = delimiters  # the first that the header has is the file's
        # The record under way: where it began, and how much of it has been read.
        self._start = 0
        self._held = 0

    def records(self) -> Iterator[tuple[int, Record]]:
        # The limit is the whole process's, so it is only ever raised; `_texts` has its own.
        if csv.field_size_limit() < 2 * MAX_LINE:
            csv.field_size_limit(2 * MAX_LINE)
        rows = self._rows()
        first = next(rows, None)
        names = () if first is None else self._read_header(*first)
        fields = {name: self._columns.field(name) for name in names}
        kinds = {name: FIELDS[field].cell for name, field in fields.items() if field is not None}
        converted = [(name, _READ[kind]) for name, kind in kinds.items() if kind in _READ]
        for line, cells in rows if names else ():
            if len(cells) != len(names):
                problem = (
                    f"the record has {counted(len(cells), 'cell')}, and the header {len(names)}"
                )
                hint = "put quotes around a cell that holds a separator"
                self._note(line, "wrong-cells", problem, hint)
                continue
            record: dict[str, object] = {
                name: cell or None for name, cell in zip(names, cells, strict=True)
            }
            for name, convert in converted:
                text = record[name]
                if isinstance(text, str):
                    record[name] = self._convert(line, name, text, convert)
            yield line, record

    def _rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of every record with the line that it begins on."""
        texts = self._texts()
        header = next(texts, "")
        names = _QUOTED.sub("", header)
        delimiter = next((each for each in self._delimiters if each in names), ",")
        reader = csv.reader(chain([header], texts), delimiter=delimiter, strict=True)
        while True:
            try:
                cells = next(reader)
            except (StopIteration, _EndlessError):
                return
            except csv.Error as error:
                self._note_syntax(error)
                cells = []
            # A line of nothing, or of a few spaces, is no record.
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield self._start, cells
            self._start = self._held = 0

    def _texts(self) -> Iterator[str]:
        for number, line in self._source.lines(self._findings):
            self._start = self._start or number
            self._held += len(line)
            if self._held > self._source.most:
                problem = f"the record is longer than {self._source.most / 1_000_000:g} MB"
                self._note(self._start, "too-long", problem, "close its last quote")
                raise _EndlessError
            try:
                text = text_of(line)
            except JsonError as fault:
                place = Place(number, fault.column)
                self._findings.add(place, fault.code, fault.problem, fault.hint)
                text = line.decode("utf-8", "replace")
            yield f"{text}\n"

    def _read_header(self, line: int, cells: list[str]) -> tuple[str, ...]:
        """Return the names of the columns; none where they can't be used."""
        names = tuple(cell.strip() for cell in cells)
        sound = True
        seen: set[str] = set()
        for number, name in enumerate(names, start=1):
            if not name:
                problem = f"column {number} of the header has no name"
                sound = self._note(line, "bad-header", problem, "name it, or remove the column")
            elif name in seen:
                problem = f"the header has two columns `{name}`"
                sound = self._note(line, "bad-header", problem, "rename one of them")
            seen.add(name)
        return names if sound else ()

    def _convert(self, line: int, name: str, text: str, convert: Callable[[str], object]) -> object:
        try:
            return convert(text)
        except FieldError as error:
            problem = f"in the cell `{name}`: {error.problem}"
            self._note(line, error.code, problem, error.hint)
            return None

    def _note_syntax(self, error: csv.Error) -> None:
        reason, hint = str(error), "double each quote inside quotes"
        if "new-line character" in reason:
            reason, hint = "a carriage return in a cell", "end lines with a line feed"
        elif "end of data" in reason:
            reason, hint = "a quote is never closed", "close it"
        self._note(self._start or 1, "csv-syntax", f"not valid CSV ({reason})", hint)


def as_number(text: str) -> object:
    """Return the number in a cell; other text is returned unchanged, to be refused later."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


_READ: dict[Cell, Callable[[str], object]] = {
    "number": as_number,
    "count": as_number,
    "flag": lambda text: _FLAGS.get(text.lower(), text),
    "json": lambda text: decode(text.encode()),
}
