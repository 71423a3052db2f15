"""Looking over a whole dataset before the first model is called."""

from array import array
from collections import Counter
from collections.abc import Callable

from jurybox.datasets.dataset import Dataset, DatasetError, Survey
from jurybox.documents.findings import Findings, Place, TooManyError
from jurybox.errors import InputError
from jurybox.sample import Row

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
        findings.add(Place(line), "unusable-row", error.problem, error.mend)


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
