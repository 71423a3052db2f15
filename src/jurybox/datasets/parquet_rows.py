"""Parquet, read a few rows at a time; lines are row numbers here, counted from 1."""

import importlib
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from jurybox.datasets.fields import fields_with
from jurybox.datasets.json_lines import JsonError, decode
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import Source
from jurybox.documents.findings import Place
from jurybox.errors import InputError

Arrow = Any  # The library comes without types, and only with an extra.
Convert = Callable[[Arrow], list[Any]]

# Rows at once: few, because a single row may hold a whole book, and fewer still where all of them
# may repeat one that takes up most of a group of rows.
_FEWEST_ROWS, _MOST_ROWS = 16, 512
_MEMORY: Final = 32_000_000
# Text is packed to a tenth of its size; a file that unpacks to far more is made to fill memory.
_HARMLESS: Final = 1_000_000
_MOST_PACKED: Final = 1000
_BUFFER: Final = 1 << 18
_PANDAS_INDEX: Final = "__index_level_"
_COUNTS: Final = fields_with("count")
_JSON: Final = fields_with("json")
_SIMPLE: Final = (
    "is_null",
    "is_boolean",
    "is_integer",
    "is_float32",
    "is_float64",
    "is_string",
    "is_large_string",
)
_LISTS: Final = ("is_list", "is_large_list", "is_fixed_size_list")


def require_pyarrow() -> None:
    """See that Parquet can be read.

    Raises:
        InputError: the extra isn't installed.

    """
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        hint = "install it with: pip install 'jurybox[parquet]'"
        raise InputError("Parquet needs pyarrow", hint) from None


def read_parquet(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield every row with its number, and hash the file once all are read."""
    require_pyarrow()
    yield from _ParquetFile(source, context).records()
    source.read_whole()


def read_between(source: Source, context: FileContext, rows: range) -> Iterator[tuple[int, Record]]:
    """Yield some rows, counted from 0, with their numbers; other groups of rows aren't read."""
    yield from islice(_ParquetFile(source, context).records(rows), len(rows))


def group_sizes(path: Path) -> list[int]:
    """Return how many rows each group of rows has, which takes only the end of the file.

    Raises:
        InputError: the file can't be read.

    """
    require_pyarrow()
    parquet: Arrow = importlib.import_module("pyarrow.parquet")
    try:
        metadata = parquet.read_metadata(path)
    except (OSError, ValueError) as error:
        raise InputError(f"can't be read ({error})", "check the file", str(path)) from None
    return [metadata.row_group(each).num_rows for each in range(metadata.num_row_groups)]


class _ParquetFile:
    def __init__(self, source: Source, context: FileContext) -> None:
        self._source = source
        self._findings = context.findings
        self._warn = context.warn
        self._field_of = context.columns.field
        self._arrow: Arrow = importlib.import_module("pyarrow")
        self._parquet: Arrow = importlib.import_module("pyarrow.parquet")
        self._row = 0

    def records(self, rows: range | None = None) -> Iterator[tuple[int, Record]]:
        try:
            yield from self._read(rows)
        except (OSError, ValueError, KeyError, self._arrow.ArrowException) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            problem = f"not Parquet that can be read ({reason})"
            self._findings.add(Place(self._row + 1), "parquet", problem, "write the file anew")

    def _read(self, wanted_rows: range | None) -> Iterator[tuple[int, Record]]:
        # Without reading ahead, which would fetch whole groups of rows.
        file = self._parquet.ParquetFile(
            self._source.file, buffer_size=_BUFFER, pre_buffer=False, memory_map=False
        )
        schema = file.schema_arrow
        rows = self._rows_at_once(file.metadata)
        if not rows:
            return
        columns = self._columns(schema)
        # None is all of them; a list would take a dot in a name for a path.
        wanted = None if len(columns) == len(schema) else list(columns)
        texts = [name for name in columns if self._holds_json(name, schema.field(name).type)]
        groups = range(file.metadata.num_row_groups)
        skipped = 0
        if wanted_rows is not None:
            groups, skipped = self._groups(file.metadata, wanted_rows)
        for batch in file.iter_batches(
            batch_size=rows, row_groups=groups, columns=wanted, use_threads=False
        ):
            if skipped >= len(batch):
                skipped -= len(batch)
                self._row += len(batch)
                continue
            values = [
                self._values(batch.column(name), convert) for name, convert in columns.items()
            ]
            for cells in zip(*values, strict=True):
                self._row += 1
                if skipped:
                    skipped -= 1
                    continue
                record = dict(zip(columns, cells, strict=True))
                for name in texts:
                    record[name] = self._decoded(name, record[name])
                yield self._row, record

    def _groups(self, metadata: Arrow, rows: range) -> tuple[list[int], int]:
        """Return the groups that have rows, and how many rows of the first come before them."""
        groups: list[int] = []
        start = 0
        for group in range(metadata.num_row_groups):
            end = start + metadata.row_group(group).num_rows
            if start < rows.stop and end > rows.start:
                if not groups:
                    self._row = start
                groups.append(group)
            start = end
        return groups, rows.start - self._row

    def _rows_at_once(self, metadata: Arrow) -> int:
        """Return how many rows to read at once; 0, with a finding, for a file that fills memory."""
        # Not by columns: pyarrow ends the whole process where it can't read what is said of one.
        packed = self._source.size
        sizes = [metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups)]
        largest = max(sizes, default=0)
        if largest > max(_HARMLESS, _MOST_PACKED * packed):
            what = f"its {packed:,} bytes unpack to {largest:,}"
            self._note("parquet", what, "write the file without compression")
            return 0
        return min(max(_MEMORY // max(largest, 1), _FEWEST_ROWS), _MOST_ROWS)

    def _columns(self, schema: Arrow) -> dict[str, Convert]:
        """Choose how to read each column; what can't be kept is left out, or refused."""
        columns: dict[str, Convert] = {}
        sound = True
        for field in schema:
            name: str = field.name
            if name.startswith(_PANDAS_INDEX):
                continue
            if not name or name in columns:
                problem = f"there are two columns `{name}`" if name else "a column has no name"
                sound = self._note("bad-header", problem, "rename it")
            elif self._is_plain(field.type):
                columns[name] = self._convert_plain(self._field_of(name), field.type)
            elif self._field_of(name) is not None:
                problem = f"the column `{name}` is of type {field.type}"
                sound = self._note("wrong-type", problem, "store plain texts and numbers")
            elif self._has_text(field.type):
                columns[name] = self._as_text
            else:
                reason = f"values of type {field.type} can't be kept"
                self._warn(f"the column `{name}` is left out: {reason}")
        return columns if sound else {}

    def _note(self, code: str, problem: str, hint: str) -> bool:
        self._findings.add(Place(self._row or 1), code, problem, hint)
        return False

    def _convert_plain(self, field: str | None, kind: Arrow) -> Convert:
        if self._is(kind, "is_float32", "is_float64"):
            if field is None:
                return lambda column: [_known(value) for value in _plain(column)]
            if field in _COUNTS:
                return lambda column: [_whole(value) for value in _plain(column)]
        return _plain

    def _as_text(self, column: Arrow) -> list[Any]:
        return _plain(column.cast(self._arrow.string()))

    def _values(self, column: Arrow, convert: Convert) -> list[Any]:
        """Convert a column of a few rows; where that fails, find the row."""
        try:
            return convert(column)
        except (ValueError, KeyError, self._arrow.ArrowException):
            for index in range(len(column)):
                convert(column.slice(index, 1))
                self._row += 1
            raise

    def _holds_json(self, name: str, kind: Arrow) -> bool:
        return self._field_of(name) in _JSON and self._is(kind, "is_string", "is_large_string")

    def _decoded(self, name: str, text: str | None) -> object:
        try:
            return decode(text.encode()) if text else None
        except JsonError as fault:
            self._note(fault.code, f"in the column `{name}`: {fault.problem}", fault.hint)
            return None

    def _is(self, kind: Arrow, *tests: str) -> bool:
        return any(getattr(self._arrow.types, test)(kind) for test in tests)

    def _is_plain(self, kind: Arrow) -> bool:
        """Tell whether JSON has values of this type."""
        if self._is(kind, *_SIMPLE):
            return True
        if self._is(kind, "is_dictionary", *_LISTS):
            return self._is_plain(kind.value_type)
        if self._is(kind, "is_map"):
            return self._is(kind.key_type, "is_string") and self._is_plain(kind.item_type)
        if self._is(kind, "is_struct"):
            return all(self._is_plain(field.type) for field in kind)
        return False

    def _has_text(self, kind: Arrow) -> bool:
        """Tell whether values, such as dates, have a text that says the same."""
        if not self._is(kind, "is_temporal", "is_decimal"):
            return False
        try:
            self._arrow.array([], kind).cast(self._arrow.string())
        except self._arrow.ArrowException:
            return False
        return True


def _plain(column: Arrow) -> list[Any]:
    return column.to_pylist(maps_as_pydicts="strict")


def _known(value: float | None) -> float | None:
    """Return a number, or None for the NaN that some programs write where they know nothing."""
    return value if value == value else None  # noqa: PLR0124 - only NaN differs from itself


def _whole(value: float | None) -> float | None:
    """Return a count that became a fraction because other rows have none."""
    return int(value) if value is not None and value.is_integer() else value
