"""Checks the rows of a dataset on the workers of a cluster, so that the driver reads none."""

import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from jurybox.app.row_check import RowCheck
from jurybox.datasets import Dataset, open_dataset
from jurybox.datasets.dataset import PartSurvey, Survey
from jurybox.engine.plan import Plan
from jurybox.errors import InputError
from jurybox.suite.target_spec import HUB

if TYPE_CHECKING:
    from jurybox.integrations.ray_engine import RayCluster

_PARTS_PER_WORKER: Final = 4
_FEWEST: Final = 1000


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan
    unused: Collection[str]
    rows: range


def survey_on(
    cluster: "RayCluster", dataset: Dataset, plan: Plan, unused: Collection[str]
) -> tuple[Survey, set[str | None]] | None:
    """Check all rows on the workers; return the facts found, and the rows' demographics.

    None if the dataset can't be split, or if a worker finds a fault: then the driver has to read
    all rows, and names every fault.

    Raises:
        InputError: a file can't be read.
        IncompleteError: there is no such cluster, or a worker failed.

    """
    slices = dataset.slices()
    if not slices:
        return None
    rows = slices[-1].stop
    with redirect_stdout(sys.stderr):  # Ray prints there that it lost a node
        size = max(_FEWEST, rows // (_PARTS_PER_WORKER * cluster.cpus))
        hashing = cluster.call(hash_dataset, plan)
        parts = [
            cluster.call(_survey_part, _Part(plan=plan, unused=unused, rows=each))
            for each in aligned(slices, size, rows)
        ]
        found = [cluster.result(part) for part in parts]
        sha256, count = cluster.result(hashing)
    sound = [each for each in found if each is not None]
    surveys = [survey for survey, _, _ in sound]
    if len(sound) < len(found) or not _are_unique(surveys):
        return None
    if surveys[0].unseen.intersection(*(each.unseen for each in surveys)):
        return None
    if set[str].intersection(*(missing for _, _, missing in sound)):
        return None
    warnings = dict.fromkeys(text for each in surveys for text in each.warnings)
    demographics = {each for _, seen, _ in sound for each in seen}
    surveyed = Survey(rows=rows, used=rows, sha256=sha256, bytes=count, warnings=(*warnings,))
    return surveyed, demographics


def _are_unique(surveys: list[PartSurvey]) -> bool:
    """Return whether no two ids are equal, and either all rows have their own or none has."""
    import numpy as np

    if len({each for survey in surveys for each in survey.has_ids}) > 1:
        return False
    ids = np.concatenate([np.frombuffer(each.ids, dtype=np.uint64) for each in surveys])
    ids.sort()
    return not (ids[1:] == ids[:-1]).any()


def _survey_part(part: _Part) -> tuple[PartSurvey, set[str | None], set[str]] | None:
    """Check some rows in a worker; return also what its `RowCheck` found; None if one is faulty."""
    check = RowCheck(part.plan.procedure(), part.plan.target, part.unused)
    try:
        found = plan_dataset(part.plan).survey_between(
            part.rows, needs_response=part.plan.target is None, check=check
        )
    except InputError:
        return None
    return found, check.demographics, check.missing


def hash_dataset(plan: Plan) -> tuple[str, int]:
    """Return the hash of a dataset's bytes, and how many these are.

    Raises:
        InputError: a file can't be read.

    """
    return plan_dataset(plan).hashed()


def plan_dataset(plan: Plan) -> Dataset:
    """Open the dataset of a plan; whether it has changed is for the caller to see.

    Raises:
        InputError: it can't be read.

    """
    described = plan.dataset
    pattern = described.id if described.files else ""
    if pattern.startswith(HUB):
        from jurybox.app.hub_dataset import PATTERN

        pattern = PATTERN
    return open_dataset(
        Path(described.path),
        None if described.responses is None else Path(described.responses),
        pattern=pattern,
        limit=described.limit,
        columns=described.columns,
        filters=described.filters,
    )


def aligned(slices: Iterable[range], size: int, used: int) -> Iterator[range]:
    """Join neighboring slices until they have enough rows; split those that have too many."""
    start = 0
    for each in slices:
        end = min(each.stop, used)
        while end - start >= size:
            piece = range(start, end if end - start <= 2 * size else start + size)
            yield piece
            start = piece.stop
    if start < used:
        yield range(start, used)
