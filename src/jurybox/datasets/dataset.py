"""A dataset: files that are read in passes, each from the first row to the last."""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from jurybox.datasets.fields import Columns, FieldError
from jurybox.datasets.parquet_rows import group_sizes, read_between
from jurybox.datasets.row_reader import ANSWERED, FileContext, Needs, Record, RowReader
from jurybox.datasets.source import Source, open_source
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.errors import DocumentError, Finding, IncompleteError, InputError
from jurybox.sample import Row
from jurybox.text_format import listed, printable

T = TypeVar("T")

Format = Callable[[Source, FileContext], Iterator[tuple[int, Record]]]
"""Reads the records of a file, each with its line; notes invalid records and continues."""

_MOST_WARNINGS: Final = 20
_LONGEST_WARNING: Final = 300
_NAMED: Final = 5


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A file's recorded responses, by the ids of their rows, and the hash of the file."""

    origin: str
    sha256: str
    answers: Mapping[str, Record]

    def joined(
        self, records: Iterable[tuple[int, Record]], context: FileContext
    ) -> Iterator[tuple[int, Record]]:
        """Yield records with these responses in place of their own."""
        columns = context.columns
        left = dict.fromkeys(self.answers)
        for number, (line, record) in enumerate(records, start=1):
            given = next((record[name] for name in record if columns.field(name) == "id"), None)
            row_id = str(number if given is None else given)
            # If a row has no recorded response, the row reader decides whether it needs one.
            answer = self.answers.get(row_id, {})
            left.pop(row_id, None)
            asked = {n: value for n, value in record.items() if columns.field(n) not in ANSWERED}
            yield line, asked | {columns.column(field): answer[field] for field in answer}
        if left:
            names = listed([*left][:_NAMED]) + (" and more" if len(left) > _NAMED else "")
            context.warn(f"responses in {self.origin} answer no sample: {names}")


FILE_LINES: Final = 1 << 40
"""The line numbers reserved per file: line 3 of the second file is ``FILE_LINES + 3``."""

_COUNTED: Final = (".parquet", ".json")


class DatasetError(DocumentError):
    """A dataset is refused; ``files`` lists the file of each finding."""

    def __init__(self, origin: str, findings: Sequence[Finding], files: Sequence[str] = ()) -> None:
        """Refuse the dataset named ``origin``."""
        super().__init__(origin, findings)
        self.files = tuple(files) or (origin,) * len(findings)

    def __str__(self) -> str:
        """Return a line for each finding."""
        lines = zip(self.files, self.findings, strict=True)
        return "\n".join(f"{file}:{finding}" for file, finding in lines)


def take_all(
    records: Iterable[tuple[int, Record]],
    take: Callable[[int, Record], T],
    findings: Findings,
    origin: str,
) -> list[T]:
    """Apply ``take`` to every record; raise all its FieldErrors together as a DatasetError."""
    taken: list[T] = []
    with suppress(TooManyError):
        for line, record in records:
            try:
                taken.append(take(line, record))
            except FieldError as error:
                findings.add(Place(line), error.code, error.problem, error.hint)
    if faults := findings.in_order():
        raise DatasetError(origin, faults)
    return taken


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The facts found in one pass over a dataset."""

    rows: int  # how many rows the file has; with filters, how many match
    sha256: str  # the hash of the file's bytes
    bytes: int  # the number of bytes
    warnings: tuple[str, ...] = ()  # warnings about probable mistakes


class PartSurvey(msgspec.Struct, frozen=True, kw_only=True):
    """The facts found in some rows of a dataset."""

    ids: bytes  # hashes of the rows' ids, eight bytes each
    has_ids: set[bool]  # True: rows have ids; False: numbers are used; both if files differ
    unseen: set[str]  # the fields for which the suite names a column that no row has
    warnings: tuple[str, ...]  # warnings about probable mistakes


Part = tuple[int, Path, Format]
"""A file of a dataset: its index, its path and its reader."""


class Pass:
    """One pass over files; its hash is complete after the last row."""

    def __init__(
        self, parts: Sequence[Part], findings: Findings, dataset: "Dataset", needs: Needs
    ) -> None:
        self.bytes = self.size = 0
        for _, path, _ in parts:
            with open_source(path) as part:
                self.size += part.size
        self._parts = parts
        self._digest = hashlib.sha256()
        self._warnings: dict[str, None] = {}
        self._recorded = dataset.answers
        self._context = FileContext(findings, self._warn, Columns(dataset.columns))
        self.reader = RowReader(self._context, needs)

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        """Yield every valid row with its line; note the faults of the others."""
        records, read = self._records(), self.reader.read
        if self._recorded is not None:
            records = self._recorded.joined(records, self._context)
        for line, record in records:
            row = read(line, record)
            if row is not None:
                yield line, row
        self.reader.finish()

    def _records(self) -> Iterator[tuple[int, Record]]:
        for index, path, read in self._parts:
            start = index * FILE_LINES
            context = FileContext(self._context, self._warn, self._context.columns, start)
            with open_source(path, self._digest) as part:
                for line, record in read(part, context):
                    yield start + line, record
                self.bytes += part.bytes

    @property
    def sha256(self) -> str:
        """The hash of all bytes read so far."""
        return self._digest.hexdigest()

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings so far, each once."""
        return tuple(self._warnings)

    def _warn(self, text: str) -> None:
        if len(self._warnings) < _MOST_WARNINGS:
            # A warning may quote column names from a file.
            self._warnings[printable(text)[:_LONGEST_WARNING]] = None


class Dataset:
    """A file of rows, or several in a folder; they are reopened for every pass."""

    def __init__(
        self,
        path: Path,
        parts: Sequence[Part],
        *,
        names: Iterable[str] = (),
        recorded: Recorded | None = None,
        columns: Mapping[str, str] | None = None,
        needs: Needs | None = None,
    ) -> None:
        """Set the files to read; if ``path`` is a pattern, ``names`` are those of its matches.

        ``recorded`` are the responses that are joined to the rows, if any. ``columns`` maps fields
        to column names. ``needs`` says which rows to read and which need a response.
        """
        self.path = path
        self.answers = recorded
        self.recorded = None if recorded is None else recorded.sha256
        self.files = tuple(names)
        self.columns = columns
        self.origin = printable(str(path))
        self._parts = parts
        self._needs = needs or Needs()

    def begin(self, findings: Findings, *, needs_response: bool) -> Pass:
        """Return a pass over all files."""
        needs = msgspec.structs.replace(self._needs, responses=needs_response)
        return Pass(self._parts, findings, self, needs)

    def rows(
        self, *, needs_response: bool, expected: Survey | None = None
    ) -> Iterator[tuple[int, Row]]:
        """Yield every row with its line.

        The file's size is compared with the survey's at the start. Its hash is compared after the
        last row, so it isn't checked if iteration stops earlier.
        """
        going = self.begin(_FirstFault(self), needs_response=needs_response)
        if expected is not None and going.size != expected.bytes:
            raise self.changed("its size differs")
        try:
            yield from going
        except InputError as error:
            if expected is None:
                raise
            raise self.changed(str(error).partition("; ")[0]) from None
        if expected is not None and going.sha256 != expected.sha256:
            raise self.changed("its SHA-256 differs")

    def slices(self) -> list[range] | None:
        """Return the range of rows, from 0, of each row group in Parquet files.

        None if rows can be found only by reading all rows before them.
        """
        paths = [path for _, path, _ in self._parts]
        sliced = all(path.suffix.lower() == ".parquet" for path in paths)
        if not sliced or self.recorded is not None or self._needs.filters:
            return None
        sizes = chain.from_iterable(map(group_sizes, paths))
        ends = [0, *accumulate(sizes)]
        return [range(start, end) for start, end in pairwise(ends) if end > start]

    def rows_between(self, rows: range, *, needs_response: bool) -> Iterator[Row]:
        """Yield a range of rows, counted from 0, without reading others; see `slices`."""
        for going in self._passes(rows, needs_response=needs_response):
            yield from (row for _, row in going)

    def survey_between(self, rows: range, *, needs_response: bool, check: "Check") -> "PartSurvey":
        """Check a range of rows, counted from 0, without reading others; see `slices`."""
        ids = bytearray()
        has_ids: set[bool] = set()
        unseen = set(self.columns or ())
        warnings: dict[str, None] = {}
        for going in self._passes(rows, needs_response=needs_response):
            for _, row in going:
                check(row)
                # Not `hash`, which differs between processes.
                ids += hashlib.blake2b(row.id.encode(), digest_size=8).digest()
            has_ids.add(going.reader.has_ids)
            unseen &= going.reader.unseen.keys()
            warnings |= dict.fromkeys(going.warnings)
        return PartSurvey(ids=bytes(ids), has_ids=has_ids, unseen=unseen, warnings=(*warnings,))

    def _passes(self, rows: range, *, needs_response: bool) -> Iterator[Pass]:
        """Yield a pass over each file's share of the rows."""
        before = 0
        for index, path, _ in self._parts:
            size = sum(group_sizes(path))
            wanted = range(max(0, rows.start - before), min(size, rows.stop - before))
            if wanted:
                part = (index, path, partial(read_between, rows=wanted))
                first = before + wanted.start
                needs = msgspec.structs.replace(self._needs, responses=needs_response, first=first)
                yield Pass([part], _FirstFault(self), self, needs)
            before += size

    def refused(self, faults: Sequence[Finding]) -> DatasetError:
        """Return the error for faults, each with its file and its line there."""
        places = [self._located(fault.line) for fault in faults]
        found = [
            msgspec.structs.replace(fault, line=line)
            for fault, (_, line) in zip(faults, places, strict=True)
        ]
        return DatasetError(self.origin, found, [file for file, _ in places])

    def where(self, number: int) -> str:
        """Return where a row is: `line 3`, or with several files `data/b.jsonl, line 3`."""
        return self.shown(*self._located(number))

    def shown(self, file: str, line: int) -> str:
        """Describe where a line of a file is."""
        unit = "row" if file.lower().endswith(_COUNTED) else "line"
        return f"{file}, {unit} {line}" if self.files else f"{unit} {line}"

    def _located(self, number: int) -> tuple[str, int]:
        """Return the file that a row's number belongs to, and the line in that file."""
        index, line = divmod(number, FILE_LINES)
        return printable(str(self._parts[index][1])), line

    def hashed(self) -> tuple[str, int]:
        """Return the hash and size of the files' bytes, without reading rows."""
        digest, size = hashlib.sha256(), 0
        for _, path, _ in self._parts:
            with open_source(path, digest) as part:
                part.read_whole()
                size += part.bytes
        return digest.hexdigest(), size

    def changed(self, how: str) -> IncompleteError:
        """Return the error for files that have changed since the survey."""
        return IncompleteError(
            f"{self.origin}: the dataset changed during the run ({how}); don't change the file,"
            " and start a new run"
        )


class _FirstFault(Findings):
    """Refuses a dataset at its first fault."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__()
        self._dataset = dataset

    def add(self, place: Place, code: str, problem: str, hint: str) -> None:
        super().add(place, code, problem, hint)
        raise self._dataset.refused(self.in_order())


Check = Callable[[Row], None]
"""Raises an `InputError` for a row that the run can't use."""


def survey(dataset: Dataset, *, needs_response: bool, check: Check | None = None) -> Survey:
    """Read every row, regardless of a run's limit, because the hash covers the whole file.

    Args:
        dataset: the dataset.
        needs_response: whether the rows must have responses; otherwise a target generates them.
        check: raises an error if the run can't use a row.
    """
    findings = Findings()
    seen = array("q")  # eight bytes per id; a set of a million takes 76 MB
    rows = 0
    going = dataset.begin(findings, needs_response=needs_response)
    # Reading stops if there are too many findings.
    with suppress(TooManyError):
        for line, row in going:
            rows += 1
            try:
                if check is not None:
                    check(row)
            except InputError as error:
                findings.add(Place(line), "unusable-row", error.problem, error.hint)
            if going.reader.has_ids:
                seen.append(hash(row.id))
        suspects = {one for one, other in pairwise(sorted(seen)) if one == other}
        if suspects:
            _note_repeats(dataset, suspects, findings, needs_response=needs_response)
        if not rows and not findings.in_order():
            problem = "the dataset has no rows"
            findings.add(Place(1), "no-rows", problem, "give it at least one")
    if faults := findings.in_order():
        raise dataset.refused(faults)
    return Survey(rows=rows, sha256=going.sha256, bytes=going.bytes, warnings=going.warnings)


def _note_repeats(
    dataset: Dataset, suspects: set[int], findings: Findings, *, needs_response: bool
) -> None:
    """Read again to report both lines of a duplicate id; equal hashes alone aren't a fault."""
    lines: dict[str, int] = {}
    for line, row in dataset.begin(Findings(), needs_response=needs_response):
        if hash(row.id) not in suspects:
            continue
        first = lines.setdefault(row.id, line)
        if first != line:
            problem = f"the id `{row.id}` is given twice (first on {dataset.where(first)})"
            findings.add(Place(line), "duplicate-id", problem, "give every row its own")
