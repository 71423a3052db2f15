"""Rows of JSON lines and of CSV files."""

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final, NoReturn, cast

from jurybox.datasets.fields import FIELDS, Cell, FieldError, kind_of
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import MAX_LINE, SAVE_AS_UTF8, Source
from jurybox.documents.findings import Lines, Place
from jurybox.text_format import counted


class JsonError(FieldError):
    """JSON can't be read; ``column`` says where, counted in characters from 1."""

    def __init__(self, column: int, code: str, problem: str, hint: str) -> None:
        super().__init__(code, problem, hint)
        self.column = column


def decode(data: bytes) -> object:
    """Read JSON.

    Raises:
        JsonError: it has a fault.

    """
    text = text_of(data)
    try:
        value = cast("object", _READER.decode(text))
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _located(text, error) from None
    except UnicodeEncodeError:
        problem = "a string contains half a character (a lone surrogate)"
        raise JsonError(1, "json-syntax", problem, "remove it") from None
    except RecursionError:
        problem = "the JSON is nested too deeply"
        raise JsonError(1, "too-deep", problem, "reduce its nesting") from None
    except ValueError:
        problem = "a number has too many digits"
        raise JsonError(1, "json-syntax", problem, "write it as a string") from None
    return value


def text_of(data: bytes) -> str:
    """Return bytes as text.

    Raises:
        JsonError: they aren't UTF-8, or have NUL characters.

    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        column = len(data[: error.start].decode("utf-8", "replace")) + 1
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise JsonError(column, "encoding", problem, SAVE_AS_UTF8) from None
    if "\0" in text:
        problem = "the line contains NUL characters, as in UTF-16"
        raise JsonError(text.index("\0") + 1, "encoding", problem, SAVE_AS_UTF8)
    return text


def _located(text: str, error: json.JSONDecodeError) -> JsonError:
    if error.msg == "Extra data":
        problem = "something follows the JSON value"
        return JsonError(error.pos + 1, "json-syntax", problem, "give each row a line of its own")
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        problem = f"the JSON breaks off ({_reason(error)})"
        return JsonError(error.pos + 1, "json-syntax", problem, "complete it, on one line")
    problem = f"not valid JSON ({_reason(error)})"
    return JsonError(error.pos + 1, "json-syntax", problem, "correct it here")


def _reason(error: json.JSONDecodeError) -> str:
    reason = error.msg.removesuffix(" starting at").removesuffix(" at")
    return reason[:1].lower() + reason[1:]


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        problem = f"the key `{twice}` is given twice"
        raise JsonError(1, "duplicate-key", problem, "remove one of them")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonError(1, "json-syntax", "a number is too large", "write it as a string")
    return number


def _no_constant(name: str) -> NoReturn:
    raise JsonError(1, "json-syntax", f"{name} is not a JSON number", "use null, or leave it out")


_READER: Final = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_constant=_no_constant
)


def read_json_lines(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every object with the number of its line."""
    first = True
    for number, line in source.lines(context):
        try:
            value = decode(line)
        except JsonError as fault:
            if not line.strip():
                continue
            if first and line.lstrip().startswith(b"["):
                context.note(number, "wrong-type", "the file is a JSON list", _HOW_LISTS)
                return
            context.add(Place(number, fault.column), fault.code, fault.problem, fault.hint)
            value = None
        else:
            if type(value) is dict:
                yield number, cast("Record", value)
            elif first and type(value) is list:
                context.note(number, "wrong-type", "the file is a JSON list", _HOW_LISTS)
                return
            else:
                problem = f"the line is {kind_of(value)}, not an object"
                context.note(number, "wrong-type", problem, "write an object, `{...}`")
        first = False


_HOW_LISTS: Final = (
    "call the file `.json`, or write each object on a line of its own, without commas"
)


def read_json_list(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every object of a list with its number; loads the whole file."""
    data = b"\n".join(line for _, line in source.lines(context))
    try:
        value = decode(data)
    except JsonError as fault:
        place = Lines(data.decode("utf-8", "replace"), Place(1)).place(fault.column - 1)
        context.add(place, fault.code, fault.problem, fault.hint)
        return
    if type(value) is not list:
        hint = "write `[{...}, {...}]`, or one object per line and call the file `.jsonl`"
        context.note(1, "wrong-type", f"the file is {kind_of(value)}, not a list", hint)
        return
    for number, each in enumerate(cast("list[object]", value), start=1):
        if type(each) is dict:
            yield number, cast("Record", each)
        else:
            problem = f"row {number} is {kind_of(each)}, not an object"
            context.note(number, "wrong-type", problem, "write an object, `{...}`")


_WHOLE = re.compile(r"[-+]?[0-9]{1,30}")
_DECIMAL = re.compile(
    r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?"
)
_FLAGS = {"true": True, "false": False}
_QUOTED = re.compile('"[^"]*"')


def read_csv(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every record; if the header has no comma, another separator in it is used."""
    return _CsvFile(source, context, ",;\t|").records()


def read_tsv(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every record; if the header has no tab, another separator in it is used."""
    return _CsvFile(source, context, "\t,;|").records()


class _EndlessError(Exception):
    """A record is longer than any row; the fault has been noted."""


class _CsvFile:
    def __init__(self, source: Source, context: FileContext, delimiters: str) -> None:
        self._source = source
        self._columns = context.columns
        self._context = context
        self._note = context.note
        self._delimiters = delimiters  # the first of them that the header contains is used
        # The current record: where it began, and how much of it has been read.
        self._start = 0
        self._held = 0

    def records(self) -> Iterator[tuple[int, Record]]:
        # This limit is global in Python, so it is only raised; `_texts` enforces the actual limit.
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
                    f"the record has {counted(len(cells), 'cell')}, but the header has {len(names)}"
                )
                hint = "put quotes around a cell that contains a separator"
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
            # An empty line, or one of spaces, isn't a record.
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield self._start, cells
            self._start = self._held = 0

    def _texts(self) -> Iterator[str]:
        for number, line in self._source.lines(self._context):
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
                self._context.add(place, fault.code, fault.problem, fault.hint)
                text = line.decode("utf-8", "replace")
            yield f"{text}\n"

    def _read_header(self, line: int, cells: list[str]) -> tuple[str, ...]:
        """Return the names of the columns; none if they are invalid."""
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
