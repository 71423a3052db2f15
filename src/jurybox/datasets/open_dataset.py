"""Opens datasets: chooses the reader by extension, and joins recorded responses by id."""

import os
from collections.abc import Iterator, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Final

from jurybox.datasets.dataset import Dataset, Format, Recorded, take_all
from jurybox.datasets.fields import FIELDS, Columns, FieldError, read_id
from jurybox.datasets.parquet_rows import read_parquet, require_pyarrow
from jurybox.datasets.row_reader import ANSWERED, FileContext, Needs, Record
from jurybox.datasets.source import Source, open_source
from jurybox.datasets.text_rows import read_csv, read_json_lines, read_json_list, read_tsv
from jurybox.documents.field_reader import kind_of
from jurybox.documents.findings import Findings, Place, decode
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml, value_of
from jurybox.errors import InputError
from jurybox.text_format import listed, printable


def read_recorded(path: Path, read: Format) -> Recorded:
    """Read a file of recorded responses: `id`, `response` and measurements."""
    findings, columns = Findings(), Columns()
    answers: dict[str, Record] = {}
    lines: dict[str, int] = {}

    def take(line: int, record: Record) -> None:
        fields = {columns.field(name): value for name, value in record.items() if value is not None}
        if "id" not in fields:
            hint = "give the id of the sample that it answers"
            raise FieldError("missing-field", "the response has no `id`", hint)
        row_id = read_id(fields["id"], "id")
        if not fields.keys() & {"response", "timed_out"}:
            hint = "add it, or rename one of its columns"
            raise FieldError("missing-field", "the row has no `response`", hint)
        first = lines.setdefault(row_id, line)
        if first != line:
            problem = f"the id `{row_id}` is given twice (first on line {first})"
            raise FieldError("duplicate-id", problem, "give each sample one response")
        answers[row_id] = {field: fields[field] for field in ANSWERED if field in fields}

    with open_source(path) as source:
        records = read(source, FileContext(findings, columns=columns))
        take_all(records, take, findings, source.origin)
    return Recorded(origin=source.origin, sha256=source.sha256, answers=answers)


def _matching(folder: Path, pattern: str) -> dict[str, Path]:
    """Return the files of a folder that match a pattern, by name, sorted as in the C locale."""
    # Path.glob would also find hidden files, and refuse absolute patterns.
    found = {*glob(pattern, root_dir=folder, recursive=True)}  # noqa: PTH207
    files = {name: folder / name for name in sorted(found, key=os.fsencode)}
    if not files:
        raise InputError("no file matches", "check the pattern", printable(str(folder / pattern)))
    for name, path in files.items():
        if name != printable(name):
            problem = "the file's name has characters that can't be printed"
            raise InputError(problem, "rename it", printable(str(path)))
    return files


def read_yaml_rows(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield each mapping with its first line number; loads the entire file into memory."""
    data = b"\n".join(line for _, line in source.lines(context))
    text = decode(data, context)
    node = None if text is None else read_yaml(text, Place(1), context)
    if isinstance(node, Pairs):
        node = next((value for key, value in node.pairs if key.text == "rows"), node)
    if node is not None and not isinstance(node, Items):
        problem = f"the rows are {kind_of(node)}, not a list"
        context.note(node.place.line, "wrong-type", problem, "write `- task: ...` for each row")
    for each in node.items if isinstance(node, Items) else ():
        if isinstance(each, Pairs):
            yield (
                each.place.line,
                {key.text: _cell(key.text, value, context) for key, value in each.pairs},
            )
        else:
            problem = f"a row must be a mapping, not {kind_of(each)}"
            context.note(each.place.line, "wrong-type", problem, "write its fields as `task: ...`")


def _cell(column: str, node: Node, context: FileContext) -> object:
    """Return the value of a column; in a text field, even `5` is text."""
    field = context.columns.field(column)
    is_text = field is not None and FIELDS[field].cell == "text"
    if is_text and isinstance(node, Scalar) and node.text not in {"", "~", "null"}:
        return node.text
    return value_of(node)


FORMATS: Final[dict[str, Format]] = {
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json_list,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
    ".yaml": read_yaml_rows,
    ".yml": read_yaml_rows,
}
_PACKED = frozenset({".gz", ".bz2", ".xz", ".zip", ".zst"})


def open_dataset(
    path: Path,
    responses: Path | None = None,
    *,
    pattern: str = "",
    limit: int | None = None,
    columns: Mapping[str, str] | None = None,
    filters: Sequence[str] = (),
) -> Dataset:
    """Find the reader for a file, and check that the file can be read.

    With a ``pattern``, ``path`` is a folder, and all its files that match the pattern are read.
    ``responses`` is a file of recorded responses, joined to the rows by id. If only the first
    ``limit`` rows are used, the others need no response. ``columns`` maps fields to column names,
    and ``filters`` select rows by ``FIELD=VALUE``.
    """
    files = _matching(path, pattern) if pattern else {}
    paths = [*files.values()] or [path]
    parts = [(index, each, reader_of(each)) for index, each in enumerate(paths)]
    recorded = None if responses is None else read_recorded(responses, reader_of(responses))
    wanted: dict[str, set[str]] = {}
    for field, _, value in (each.partition("=") for each in filters):
        wanted.setdefault(field, set()).add(value)
    recorded_in = None if recorded is None else recorded.origin
    needs = Needs(limit=limit, recorded_in=recorded_in, filters=wanted)
    opened = path / pattern
    return Dataset(opened, parts, names=files, recorded=recorded, columns=columns, needs=needs)


def names_file(name: str) -> bool:
    """Return whether a name refers to a file rather than a run; ``-`` is standard input."""
    path = Path(name)
    return name == "-" or path.suffix.lower() in FORMATS or path.exists()


def reader_or_lines(path: Path) -> Format:
    """Return the reader for a file's records, chosen by extension; JSON Lines by default."""
    return FORMATS.get(path.suffix.lower(), read_json_lines)


def reader_of(path: Path) -> Format:
    """Return the reader of a file's records."""
    # Opened first, so that a folder is reported as such and not as a file without an extension.
    with open_source(path):
        ending = path.suffix.lower()
    read = FORMATS.get(ending)
    if read is None:
        what = f"a `{printable(ending)}` file" if ending else "a file without an extension"
        hint = "unpack it first" if ending in _PACKED else f"use one of {listed(FORMATS)}"
        raise InputError(f"{what} can't be a dataset", hint, printable(str(path)))
    if read is read_parquet:
        require_pyarrow()
    return read
