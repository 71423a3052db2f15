"""A dataset: files that are read in passes, each from the first row to the last."""

import hashlib
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Final

import msgspec

from jurybox.datasets.fields import Columns, FieldError
from jurybox.datasets.parquet_rows import group_sizes, read_between
from jurybox.datasets.row_reader import FileContext, Needs, Record, RowReader
from jurybox.datasets.source import Source, open_source, open_whole
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.errors import DocumentError, Finding, IncompleteError, InputError
from jurybox.sample import Row
from jurybox.text_format import printable

Format = Callable[[Source, FileContext], Iterator[tuple[int, Record]]]
"""Reads the records of a file, each with its line; notes invalid records and continues."""

_MOST_WARNINGS: Final = 20
_LONGEST_WARNING: Final = 300


_NO_NEEDS: Final = Needs()


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A file's recorded responses, by the ids of their rows, and the hash of the file."""

    origin: str
    sha256: str
    answers: Mapping[str, Record]


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
    take: Callable[[int, Record], None],
    findings: Findings,
    origin: str,
) -> None:
    """Pass records and their lines to ``take``, which raises FieldError for an unusable record."""
    with suppress(TooManyError):
        for line, record in records:
            try:
                take(line, record)
            except FieldError as error:
                findings.add(Place(line), error.code, error.problem, error.hint)
    if faults := findings.in_order():
        raise DatasetError(origin, faults)


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


class Pass:
    """One pass over a dataset; its hash is complete after the last row."""

    def __init__(
        self, source: Source, read: Format, findings: Findings, columns: Columns, needs: Needs
    ) -> None:
        self.source = source
        self._warnings: dict[str, None] = {}
        context = FileContext(findings, self._warn, columns)
        self._records = read(source, context)
        self.reader = RowReader(context, needs)

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        """Yield every valid row with its line; note the faults of the others."""
        read = self.reader.read
        for line, record in self._records:
            row = read(line, record)
            if row is not None:
                yield line, row
        self.reader.finish()

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
        read: Format,
        *,
        files: Mapping[str, Path] | None = None,
        recorded: Recorded | None = None,
        columns: Mapping[str, str] | None = None,
        needs: Needs = _NO_NEEDS,
    ) -> None:
        """Set the file to read; if ``path`` is a pattern, ``files`` are its matches by name.

        ``recorded`` are the responses that the reader joins to the rows, if any. ``columns`` maps
        fields to column names. ``needs`` says which rows to read and which need a response.
        """
        self.path = path
        self.recorded = None if recorded is None else recorded.sha256
        self.files = tuple(files or ())
        self.origin = printable(str(path))
        self._paths = [*files.values()] if files else [path]
        self._read = read
        self._needs = needs
        self._columns = columns
        self._kept: tuple[str, bool, list[tuple[int, Row]]] | None = None

    @contextmanager
    def begin(self, findings: Findings, *, needs_response: bool) -> Generator[Pass]:
        """Open the files for one pass."""
        several = open_whole(self._paths, self.origin) if self.files else None
        with several or open_source(self.path) as source:
            needs = msgspec.structs.replace(self._needs, responses=needs_response)
            yield Pass(source, self._read, findings, Columns(self._columns), needs)

    def rows(
        self, *, needs_response: bool, expected: Survey | None = None
    ) -> Iterator[tuple[int, Row]]:
        """Yield every row with its line; rows of a small file come from the survey.

        The file's size is compared with the survey's at the start. Its hash is compared after the
        last row, so it isn't checked if iteration stops earlier.
        """
        if self._kept and expected and self._kept[:2] == (expected.sha256, needs_response):
            yield from self._kept[2]
            return
        findings = _FirstFault()
        with self.begin(findings, needs_response=needs_response) as going:
            if expected is not None and going.source.size != expected.bytes:
                raise self.changed("its size differs")
            try:
                yield from going
            except TooManyError:
                fault = findings.in_order()[0]
                if expected is None:
                    raise self.refused((fault,)) from None
                raise self.changed(f"{self.where(fault.line)}: {fault.problem}") from None
            except InputError as error:
                if expected is None:
                    raise
                raise self.changed(f"{error.where}: {error.problem}") from None
            if expected is not None and going.source.sha256 != expected.sha256:
                raise self.changed("its SHA-256 differs")

    def slices(self) -> list[range] | None:
        """Return the range of rows, from 0, of each row group in Parquet files.

        None if rows can be found only by reading all rows before them.
        """
        sliced = all(path.suffix.lower() == ".parquet" for path in self._paths)
        if not sliced or self.recorded is not None or self._needs.filters:
            return None
        sizes = chain.from_iterable(map(group_sizes, self._paths))
        ends = [0, *accumulate(sizes)]
        return [range(start, end) for start, end in pairwise(ends) if end > start]

    def rows_between(self, rows: range, *, needs_response: bool) -> Iterator[Row]:
        """Yield a range of rows, counted from 0, without reading others; see `slices`."""
        for each in self._files_of(rows, needs_response=needs_response):
            with self._reading(*each) as going:
                yield from (row for _, row in going)

    def survey_between(self, rows: range, *, needs_response: bool, check: "Check") -> "PartSurvey":
        """Check a range of rows, counted from 0, without reading others; see `slices`."""
        ids = bytearray()
        has_ids: set[bool] = set()
        unseen = set(self._columns or ())
        warnings: dict[str, None] = {}
        for each in self._files_of(rows, needs_response=needs_response):
            with self._reading(*each) as going:
                for _, row in going:
                    check(row)
                    # Not `hash`, which differs between processes.
                    ids += hashlib.blake2b(row.id.encode(), digest_size=8).digest()
                has_ids.add(going.reader.has_ids)
                unseen &= going.reader.unseen.keys()
                warnings |= dict.fromkeys(going.warnings)
        return PartSurvey(ids=bytes(ids), has_ids=has_ids, unseen=unseen, warnings=(*warnings,))

    def _files_of(self, rows: range, *, needs_response: bool) -> Iterator[tuple[int, range, Needs]]:
        """Yield the index of each file with some of the rows, their range in it, and its needs."""
        before = 0
        for index, path in enumerate(self._paths):
            size = sum(group_sizes(path))
            wanted = range(max(0, rows.start - before), min(size, rows.stop - before))
            if wanted:
                first = before + wanted.start
                yield (
                    index,
                    wanted,
                    msgspec.structs.replace(self._needs, responses=needs_response, first=first),
                )
            before += size

    @contextmanager
    def _reading(self, index: int, rows: range, needs: Needs) -> Generator[Pass]:
        findings = _FirstFault()
        read = partial(read_between, rows=rows)
        with open_source(self._paths[index]) as source:
            try:
                yield Pass(source, read, findings, Columns(self._columns), needs)
            except TooManyError:
                fault = findings.in_order()[0]
                line = index * FILE_LINES + fault.line
                raise self.refused([msgspec.structs.replace(fault, line=line)]) from None

    def keep(self, sha256: str, rows: list[tuple[int, Row]], *, needs_response: bool) -> None:
        """Keep the rows of a survey, so that a run needn't read them again."""
        self._kept = (sha256, needs_response, rows)

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
        return printable(str(self._paths[index])), line

    def hashed(self) -> tuple[str, int]:
        """Return the hash and size of the files' bytes, without reading rows."""
        with open_whole(self._paths, self.origin) as whole:
            for path in self._paths:
                with open_source(path, whole) as part:
                    part.read_whole()
            return whole.sha256, whole.size

    def changed(self, how: str) -> IncompleteError:
        """Return the error for files that have changed since the survey."""
        return IncompleteError(
            f"{self.origin}: the dataset changed during the run ({how}); don't change the file,"
            " and start a new run"
        )


class _FirstFault(Findings):
    """Ends reading at the first fault."""

    def add(self, place: Place, code: str, problem: str, hint: str) -> None:
        super().add(place, code, problem, hint)
        raise TooManyError


# Bytes. The run reads larger files again, so that memory doesn't grow with a dataset.
_SMALL: Final = 1_000_000

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
    kept: list[tuple[int, Row]] = []
    # Reading stops if there are too many findings.
    with dataset.begin(findings, needs_response=needs_response) as going, suppress(TooManyError):
        for line, row in going:
            rows += 1
            if going.source.size <= _SMALL:
                kept.append((line, row))
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
    if kept:
        dataset.keep(going.source.sha256, kept, needs_response=needs_response)
    return Survey(
        rows=rows,
        sha256=going.source.sha256,
        bytes=going.source.bytes,
        warnings=going.warnings,
    )


def _note_repeats(
    dataset: Dataset, suspects: set[int], findings: Findings, *, needs_response: bool
) -> None:
    """Read again to report both lines of a duplicate id; equal hashes alone aren't a fault."""
    lines: dict[str, int] = {}
    with dataset.begin(Findings(), needs_response=needs_response) as going:
        for line, row in going:
            if hash(row.id) not in suspects:
                continue
            first = lines.setdefault(row.id, line)
            if first != line:
                problem = f"the id `{row.id}` is given twice (first on {dataset.where(first)})"
                findings.add(Place(line), "duplicate-id", problem, "give every row its own")
