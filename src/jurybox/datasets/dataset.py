"""A dataset: a file that is read in passes, each from its first row to its last."""

from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from jurybox.datasets.fields import Columns
from jurybox.datasets.row_reader import FileContext, Needs, Record, RowReader
from jurybox.datasets.source import Source, open_source
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.errors import DocumentError, IncompleteError, InputError
from jurybox.sample import Row
from jurybox.text_format import printable

Format = Callable[[Source, FileContext], Iterator[tuple[int, Record]]]
"""Reads the records of a file, each with its line; notes those that can't be read, and goes on."""

_MOST_WARNINGS: Final = 20
_LONGEST_WARNING: Final = 300


_NO_NEEDS: Final = Needs()


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """The responses of a file by the ids of their rows, and the hash of its bytes."""

    origin: str
    sha256: str
    answers: Mapping[str, Record]


class DatasetError(DocumentError):
    """A dataset is refused."""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What one pass over a whole dataset tells.

    Attributes:
        rows: how many rows the file has.
        used: how many of them a run uses, from the first; a limit may leave some out.
        sha256: the hash of the file's bytes.
        bytes: how many these are.
        warnings: what is no fault, but may not be meant.

    """

    rows: int
    used: int
    sha256: str
    bytes: int
    warnings: tuple[str, ...] = ()


class Pass:
    """One pass over a dataset; its hash is the file's once all rows were taken."""

    def __init__(
        self, source: Source, read: Format, findings: Findings, columns: Columns, needs: Needs
    ) -> None:
        self._source = source
        self._warnings: dict[str, None] = {}
        context = FileContext(findings, self._warn, columns)
        self._records = read(source, context)
        self._reader = RowReader(context, needs)

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        """Yield every sound row with its line; what is wrong with the others is noted."""
        read = self._reader.read
        for line, record in self._records:
            row = read(line, record)
            if row is not None:
                yield line, row
        self._reader.finish()

    @property
    def has_ids(self) -> bool:
        """Whether the rows have ids of their own."""
        return self._reader.has_ids

    @property
    def sha256(self) -> str:
        """The hash of the bytes read."""
        return self._source.sha256

    @property
    def size(self) -> int:
        """How many bytes the file had when the pass began."""
        return self._source.size

    @property
    def bytes(self) -> int:
        """How many bytes were read."""
        return self._source.bytes

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings so far, each once."""
        return tuple(self._warnings)

    def _warn(self, text: str) -> None:
        if len(self._warnings) < _MOST_WARNINGS:
            # It may quote what a file calls its columns.
            self._warnings[printable(text)[:_LONGEST_WARNING]] = None


class Dataset:
    """A file of rows; it is opened anew for every pass."""

    def __init__(
        self,
        path: Path,
        read: Format,
        *,
        unit: str = "line",
        recorded: Recorded | None = None,
        columns: Mapping[str, str] | None = None,
        needs: Needs = _NO_NEEDS,
    ) -> None:
        """Read ``path`` with a reader; ``unit`` is what its numbers count.

        ``recorded`` are the responses that the reader joins to the rows, where it does.
        ``columns`` are by field. ``needs`` says which rows there are and which need a response.
        """
        self.path = path
        self.recorded = None if recorded is None else recorded.sha256
        self.origin = printable(str(path))
        self.unit = unit
        self._read = read
        self._needs = needs
        self._columns = columns

    @contextmanager
    def begin(self, findings: Findings, *, needs_response: bool) -> Generator[Pass]:
        """Open the file for one pass.

        Raises:
            InputError: it can't be read.

        """
        with open_source(self.path) as source:
            needs = msgspec.structs.replace(self._needs, responses=needs_response)
            yield Pass(source, self._read, findings, Columns(self._columns), needs)

    def rows(
        self, *, needs_response: bool, expected: Survey | None = None
    ) -> Iterator[tuple[int, Row]]:
        """Yield every row with its line.

        Who stops early has nothing checked; who takes all rows learns at the end whether they were
        the ones that were surveyed.

        Raises:
            InputError: the file can't be read.
            DatasetError: a row has a fault; it is the first one.
            IncompleteError: the file isn't ``expected`` any more.

        """
        findings = _FirstFault()
        with self.begin(findings, needs_response=needs_response) as going:
            if expected is not None and going.size != expected.bytes:
                raise self._changed("its size is another")
            try:
                yield from going
            except TooManyError:
                fault = findings.in_order()[0]
                if expected is None:
                    raise DatasetError(self.origin, (fault,)) from None
                raise self._changed(f"{self.unit} {fault.line}: {fault.problem}") from None
            if expected is not None and going.sha256 != expected.sha256:
                raise self._changed("its SHA-256 is another")

    def _changed(self, how: str) -> IncompleteError:
        return IncompleteError(
            f"{self.origin}: the dataset changed while the run was going ({how}); "
            "leave the file alone and start a new run"
        )


class _FirstFault(Findings):
    """Ends reading at the first fault."""

    def add(self, place: Place, code: str, problem: str, hint: str) -> None:
        super().add(place, code, problem, hint)
        raise TooManyError


# A set of a million ids' hashes takes 76 MB, more than all else of a run by rules (54 MB). So eight
# bytes per id are kept in arrays, and only one of these at a time is looked through.
_BUCKETS = 256


Check = Callable[[Row], None]
"""Raises an `InputError` for a row that the run can't use."""


def survey(
    dataset: Dataset,
    *,
    needs_response: bool,
    limit: int | None = None,
    check: Check | None = None,
) -> Survey:
    """Read every row, whatever the limit: the hash is the whole file's.

    Args:
        dataset: what to read.
        needs_response: whether the rows must carry the responses; else a target makes them.
        limit: how many rows a run will use.
        check: sees to it that a row can be used by the run.

    Raises:
        InputError: the file can't be read.
        DatasetError: it has faults; the error holds up to a hundred of them.

    """
    findings = Findings()
    try:
        found = _survey(dataset, findings, needs_response=needs_response, limit=limit, check=check)
    except TooManyError:
        found = None
    faults = findings.in_order()
    if found is None or faults:
        raise DatasetError(dataset.origin, faults)
    return found


def _survey(
    dataset: Dataset,
    findings: Findings,
    *,
    needs_response: bool,
    limit: int | None,
    check: Check | None,
) -> Survey:
    seen = [array("q") for _ in range(_BUCKETS)]
    rows = 0
    with dataset.begin(findings, needs_response=needs_response) as going:
        for line, row in going:
            rows += 1
            if check is not None:
                _note_unusable(check, row, line, findings)
            if going.has_ids:
                hashed = hash(row.id)
                seen[hashed % _BUCKETS].append(hashed)
    suspects = {each for bucket in seen for each, times in Counter(bucket).items() if times > 1}
    if suspects:
        _note_repeats(dataset, suspects, findings, needs_response=needs_response)
    if not rows and not findings.in_order():
        problem = "the dataset has no rows"
        findings.add(Place(1), "no-rows", problem, "give it at least one")
    return Survey(
        rows=rows,
        used=rows if limit is None else min(rows, limit),
        sha256=going.sha256,
        bytes=going.bytes,
        warnings=going.warnings,
    )


def _note_unusable(check: Check, row: Row, line: int, findings: Findings) -> None:
    try:
        check(row)
    except InputError as error:
        findings.add(Place(line), "unusable-row", error.problem, error.hint)


def _note_repeats(
    dataset: Dataset, suspects: set[int], findings: Findings, *, needs_response: bool
) -> None:
    """Read once more to name both lines; two ids that only share their hash are no fault."""
    lines: dict[str, int] = {}
    with dataset.begin(Findings(), needs_response=needs_response) as going:
        for line, row in going:
            if hash(row.id) not in suspects:
                continue
            first = lines.setdefault(row.id, line)
            if first != line:
                problem = f"the id `{row.id}` is given twice (first on {dataset.unit} {first})"
                findings.add(Place(line), "duplicate-id", problem, "give every row its own")
