"""Reads Parquet a few rows at a time; line numbers are row numbers, from 1."""

import importlib
from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, Final

import msgspec

from jurybox.datasets.fields import fields_with
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import Source
from jurybox.datasets.text_rows import JsonError, decode
from jurybox.errors import InputError

Arrow = Any  # The library has no types, and is an optional extra.

# Rows per batch: few, because a single row may be large, and fewer if the largest row group is
# large.
_FEWEST_ROWS, _MOST_ROWS = 16, 512
_MEMORY: Final = 32_000_000
# Text compresses to a tenth of its size; a much higher ratio is probably an attack on memory.
_HARMLESS: Final = 1_000_000
_MOST_PACKED: Final = 1000
_BUFFER: Final = 1 << 18
_PANDAS_INDEX: Final = "__index_level_"
_COUNTS: Final = fields_with("count")
_JSON: Final = fields_with("json")


def require_pyarrow() -> None:
    """Check that Parquet can be read."""
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
    """Yield some rows, counted from 0, with their numbers; other row groups aren't read."""
    yield from islice(_ParquetFile(source, context).records(rows), len(rows))


def group_sizes(path: Path) -> list[int]:
    """Return the number of rows in each row group; reads only the end of the file."""
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
        self._note = context.note
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
            problem = f"not readable as Parquet ({reason})"
            self._note(self._row + 1, "parquet", problem, "write the file again")

    def _read(self, wanted: range | None) -> Iterator[tuple[int, Record]]:
        # Without prefetching, which would read whole row groups.
        file = self._parquet.ParquetFile(
            self._source.file, buffer_size=_BUFFER, pre_buffer=False, memory_map=False
        )
        schema = file.schema_arrow
        rows = self._rows_at_once(file.metadata)
        names = self._columns(schema) if rows else []
        if not names:
            return
        groups, skipped = self._groups(file.metadata, wanted)
        # None means all columns; in a list, a dot in a name would be read as a path.
        columns = None if len(names) == len(schema) else names
        for batch in file.iter_batches(
            batch_size=rows, row_groups=groups, columns=columns, use_threads=False
        ):
            skip = min(skipped, len(batch))
            skipped -= skip
            self._row += skip
            values = [self._values(name, batch.column(name).slice(skip)) for name in names]
            for cells in zip(*values, strict=True):
                self._row += 1
                yield self._row, dict(zip(names, cells, strict=True))

    def _groups(self, metadata: Arrow, rows: range | None) -> tuple[list[int], int]:
        """Return the row groups that contain these rows, and how many rows of the first to skip."""
        groups = [*range(metadata.num_row_groups)]
        if rows is None:
            return groups, 0
        ends = [*accumulate(metadata.row_group(each).num_rows for each in groups)]
        starts = [0, *ends]
        wanted = [at for at in groups if starts[at] < rows.stop and ends[at] > rows.start]
        self._row = starts[wanted[0]] if wanted else 0
        return wanted, rows.start - self._row

    def _rows_at_once(self, metadata: Arrow) -> int:
        """Return how many rows to read at once; 0, with a finding, if they don't fit in memory."""
        # Per row group, not per column: invalid column metadata makes pyarrow abort the process.
        packed = self._source.size
        sizes = [metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups)]
        largest = max(sizes, default=0)
        if largest > max(_HARMLESS, _MOST_PACKED * packed):
            what = f"its {packed:,} bytes unpack to {largest:,}"
            self._note(1, "parquet", what, "write the file without compression")
            return 0
        return min(max(_MEMORY // max(largest, 1), _FEWEST_ROWS), _MOST_ROWS)

    def _columns(self, schema: Arrow) -> list[str]:
        """Return the columns to read; unsupported types are left out or refused."""
        columns: list[str] = []
        sound = True
        for name, kind in zip(schema.names, map(str, schema.types), strict=True):
            if name.startswith(_PANDAS_INDEX):
                continue
            if not name or name in columns:
                problem = f"there are two columns `{name}`" if name else "a column has no name"
                sound = self._note(1, "bad-header", problem, "rename it")
            elif "binary" not in kind:
                columns.append(name)
            elif self._field_of(name) is not None:
                problem = f"the column `{name}` is of type {kind}"
                sound = self._note(1, "wrong-type", problem, "store plain strings and numbers")
            else:
                self._warn(f"the column `{name}` is left out: values of type {kind} can't be kept")
        return columns if sound else []

    def _values(self, name: str, column: Arrow) -> list[Any]:
        """Return the values of a column, with dates and decimals as text, and NaN as None."""
        types, field = self._arrow.types, self._field_of(name)
        if types.is_temporal(column.type) or types.is_decimal(column.type):
            column = column.cast(self._arrow.string())
        values: list[Any] = msgspec.to_builtins(column.to_pylist(maps_as_pydicts="strict"))
        if types.is_floating(column.type):
            if field is None:
                # Some programs write NaN for missing values.
                return [None if value != value else value for value in values]  # noqa: PLR0124
            if field in _COUNTS:
                return [_whole(value) for value in values]
        if field in _JSON and values and all(isinstance(value, str | None) for value in values):
            rows = enumerate(values, start=self._row + 1)
            return [self._decoded(name, text, row) for row, text in rows]
        return values

    def _decoded(self, name: str, text: str | None, row: int) -> object:
        try:
            return decode(text.encode()) if text else None
        except JsonError as fault:
            self._note(row, fault.code, f"in the column `{name}`: {fault.problem}", fault.hint)
            return None


def _whole(value: float | None) -> float | None:
    """Return a whole number as an integer; nulls in a column turn its integers into floats."""
    return int(value) if value is not None and value.is_integer() else value
