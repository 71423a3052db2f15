"""Which reader a file needs, by its ending."""

from pathlib import Path
from typing import Final

from jurybox.datasets.csv_table import read_csv, read_tsv
from jurybox.datasets.dataset import Dataset, Format
from jurybox.datasets.joining import joined, read_recorded
from jurybox.datasets.json_lines import read_json_lines
from jurybox.datasets.parquet_table import read_parquet, require_pyarrow
from jurybox.datasets.source import open_source
from jurybox.errors import InputError
from jurybox.wording import listed, printable

FORMATS: Final[dict[str, Format]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
}
_PACKED = frozenset({".gz", ".bz2", ".xz", ".zip", ".zst"})


def open_dataset(path: Path, responses: Path | None = None, *, limit: int | None = None) -> Dataset:
    """Find the reader for a file, and see that it can be read.

    ``responses`` is a file of recorded responses, joined to the rows by their ids. Where only the
    first ``limit`` rows are used, the others need no response.

    Raises:
        InputError: it is of no known kind, it can't be read, or its reader isn't installed.
        DatasetError: the recorded responses have faults.

    """
    read = reader_of(path)
    recorded = None
    if responses is not None:
        recorded = read_recorded(responses, reader_of(responses))
        read = joined(read, recorded)
    unit = "row" if path.suffix.lower() == ".parquet" else "line"
    return Dataset(path, read, unit=unit, recorded=recorded, limit=limit)


def reader_of(path: Path) -> Format:
    """Return what reads a file's records.

    Raises:
        InputError: it is of no known kind, it can't be read, or its reader isn't installed.

    """
    # Before its ending is looked at: a folder has none either.
    with open_source(path):
        ending = path.suffix.lower()
    read = FORMATS.get(ending)
    if read is None:
        what = f"a `{printable(ending)}` file" if ending else "a file without an ending"
        raise InputError(f"{what} can't be a dataset", _mend(ending), printable(str(path)))
    if read is read_parquet:
        require_pyarrow()
    return read


def _mend(ending: str) -> str:
    if ending == ".json":
        return "write one JSON object a line and call it `.jsonl`"
    if ending in _PACKED:
        return "unpack it first"
    return f"use one of {listed(FORMATS)}"
