"""A run's samples in a file, one row each, streamed from the store."""

import csv
import importlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, BinaryIO, Final

import msgspec

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.engine.replay import grouped
from jurybox.errors import InputError
from jurybox.reporting.record import Column, Kind, Record, Shape
from jurybox.reporting.stored import damaged, plan_of, procedure_of

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
        hint = "install it with: pip install 'jurybox[parquet]'"
        raise InputError("Parquet needs pyarrow", hint, name) from None


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


Write = Callable[[BinaryIO, Sequence[Column], Iterable[Record]], int]
"""Writes rows with these columns, and returns how many they were."""

_ENCODER: Final = msgspec.json.Encoder()


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows were written, and how many the run will have."""

    rows: int
    planned: int
    finished: bool

    @property
    def complete(self) -> bool:
        """Whether that is the whole run."""
        return self.finished and self.rows == self.planned


def export_writer(name: str) -> Write:
    """Return what writes the format that a file's name asks for.

    Raises:
        InputError: no such format, or what it needs isn't installed.

    """
    ending = PurePath(name).suffix.lower()
    if ending not in _WRITERS:
        problem = f"`{ending}` is no format of rows" if ending else "the name has no ending"
        raise InputError(problem, f"end it with one of {', '.join(_WRITERS)}", name)
    if ending == ".parquet":
        require_pyarrow(name)
    return _WRITERS[ending]


def export_run(
    store: Store, run: RunRow, file: BinaryIO, write: Write, *, raw: bool = False
) -> Exported:
    """Write the samples that a run has; ``raw`` adds every request and its reply.

    Raises:
        IncompleteError: what is stored can't be read.

    """
    plan, procedure = plan_of(run), procedure_of(run)
    shape = Shape(procedure.judging.rubric, rules=procedure.rules is not None, raw=raw)
    rows = write(file, shape.columns, _records(store, run, shape))
    return Exported(rows=rows, planned=plan.samples, finished=run.status == "finished")


def _records(store: Store, run: RunRow, shape: Shape) -> Iterator[Record]:
    try:
        if shape.raw:
            for sample, exchanges in grouped(store, run.id):
                if sample is not None:
                    yield shape.record(sample, exchanges)
        else:
            for sample in store.samples(run.id):
                yield shape.record(sample)
    except (msgspec.DecodeError, LookupError) as error:
        raise damaged(run, error) from None


def write_json_lines(file: BinaryIO, columns: Sequence[Column], records: Iterable[Record]) -> int:
    """Write one JSON object a line."""
    del columns
    rows = 0
    for record in records:
        file.write(_ENCODER.encode(record) + b"\n")
        rows += 1
    return rows


def write_csv(file: BinaryIO, columns: Sequence[Column], records: Iterable[Record]) -> int:
    """Write comma-separated values with a heading; lists and objects are JSON, nulls are empty.

    Texts stay exactly what they are, also where they begin with ``=``, ``+``, ``-`` or ``@``: a
    mark before them would make another text of them. Spreadsheets take such cells for formulas
    unless they are told to import the column as text.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    # With both characters in its ending, the writer also quotes a cell that has only one of them.
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([column.name for column in columns])
    rows = 0
    for record in records:
        writer.writerow([_cell(value) for value in record.values()])
        rows += 1
    # Whoever opened the file also closes it.
    text.detach()
    return rows


def _cell(value: Any) -> str:  # noqa: ANN401 - whatever a row holds
    if value is None:
        return ""
    return value if isinstance(value, str) else _ENCODER.encode(value).decode()


_WRITERS: Final[dict[str, Write]] = {
    ".jsonl": write_json_lines,
    ".csv": write_csv,
    ".parquet": write_parquet,
}
