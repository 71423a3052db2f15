"""Rows as Parquet, written in groups of bounded size."""

import importlib
from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO, Final

import msgspec

from jurybox.errors import InputError
from jurybox.reporting.record import Column, Kind, Record

Arrow = Any  # The library comes without types, and only with an extra.

# A group is held in memory until it is written, and a single row may hold a whole book.
_MOST_ROWS: Final = 5000
_MOST_CHARACTERS: Final = 16_000_000

_TYPES: Final[dict[Kind, str]] = {
    "text": "string",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool_",
    "json": "string",
}


def require_pyarrow(name: str) -> None:
    """See that Parquet can be written.

    Raises:
        InputError: the extra isn't installed.

    """
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        mend = "install it with: pip install 'jurybox[parquet]'"
        raise InputError("Parquet needs pyarrow", mend, name) from None


def write_parquet(file: BinaryIO, columns: Sequence[Column], records: Iterable[Record]) -> int:
    """Write rows with fixed types; lists and objects are JSON texts."""
    parquet: Arrow = importlib.import_module("pyarrow.parquet")
    with parquet.ParquetWriter(file, _schema(columns)) as writer:
        table = _Table(columns, writer)
        for record in records:
            table.add(record)
        table.flush()
    return table.rows


def _schema(columns: Sequence[Column]) -> Arrow:
    arrow: Arrow = importlib.import_module("pyarrow")
    return arrow.schema(
        [(column.name, getattr(arrow, _TYPES[column.kind])()) for column in columns]
    )


class _Table:
    """The rows of a group until it is large enough to be written."""

    def __init__(self, columns: Sequence[Column], writer: Arrow) -> None:
        self._columns = columns
        self._writer = writer
        self._values: dict[str, list[Any]] = {column.name: [] for column in columns}
        self._waiting = self._characters = 0
        self.rows = 0

    def add(self, record: Record) -> None:
        for column in self._columns:
            value = record[column.name]
            if column.kind == "json" and value is not None:
                value = msgspec.json.encode(value).decode()
            if isinstance(value, str):
                self._characters += len(value)
            self._values[column.name].append(value)
        self.rows += 1
        self._waiting += 1
        if self._waiting >= _MOST_ROWS or self._characters >= _MOST_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        arrow: Arrow = importlib.import_module("pyarrow")
        self._writer.write_table(arrow.table(self._values, schema=self._writer.schema))
        self._values = {column.name: [] for column in self._columns}
        self._waiting = self._characters = 0
