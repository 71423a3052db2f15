"""Checks that a run can use all rows of a dataset, here or on the workers of a cluster."""

import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

from jurybox.app.evaluate_once import check_checks
from jurybox.app.remote_inputs import PATTERN
from jurybox.datasets import Dataset, open_dataset, survey
from jurybox.datasets.dataset import PartSurvey, Survey
from jurybox.datasets.fields import FIELD_OF
from jurybox.engine.plan import Plan
from jurybox.errors import InputError
from jurybox.integrations.ray_engine import RayCluster
from jurybox.judging.protocol import gives_evidence
from jurybox.rubric.checks import ROW_CHECKS, row_parts
from jurybox.rubric.template import Template
from jurybox.sample import Response, Row
from jurybox.scoring.by_rules import part_of_row
from jurybox.scoring.evaluate_sample import demographic_of
from jurybox.suite.target_spec import HUB
from jurybox.text_format import nearest

_BRACES: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
Fault = tuple[str, str]
"""What is wrong with a row, and how to fix it."""


class RowCheck:
    """Refuses rows that a run can't use; each fault is reported once, at the first such row.

    ``demographics`` are those of the rows so far; ``missing`` are the fields that checks need but
    no row has had so far.
    """

    def __init__(self, plan: Plan, unused: Collection[str]) -> None:
        """Set what rows are checked against; the prompt may omit the fields in ``unused``."""
        procedure, target = plan.procedure(), plan.target
        self._judging = procedure.judging
        self._asks = not all(map(gives_evidence, procedure.judges))
        checked = self._judging.rubric.checked
        self.demographics: set[str | None] = set()
        self.missing = {name for one in checked for each in one.checks for name in row_parts(each)}
        prompt = None if target is None else target.prompt
        shown = frozenset[str]() if prompt is None else Template(text=prompt).parts()
        fields = {} if target is None else target.columns
        self._drops = prompt is not None and "context" not in {*shown, *fields.values(), *unused}
        self._columns = sorted(shown - {"task", "context", "messages", *fields})
        system = "" if target is None else target.system or ""
        unread = {name for name in _BRACES.findall(prompt or "") if not name.isidentifier()}
        self._unfilled = (*_BRACES.findall(system), *unread)
        self._reported: set[str] = set()

    def __call__(self, row: Row) -> None:
        """Check one row."""
        self.demographics.add(demographic_of(row))
        self.missing -= {name for name in self.missing if part_of_row(row, name) is not None}
        for problem, hint in (*self._of_rubric(row), *self._of_prompt(row)):
            if problem not in self._reported:
                self._reported.add(problem)
                raise InputError(problem, hint)
        if self._asks:
            self._judging.check(row.sample(row.response or Response(text="")))

    def _of_rubric(self, row: Row) -> Iterator[Fault]:
        """Yield the faults of a pair, and of a row's own checks that no criterion uses."""
        rubric, pair = self._judging.rubric, row.response_b is not None
        check_checks(rubric, judges=False, pair=pair)
        placed = (each.kind == ROW_CHECKS for one in rubric.checked for each in one.checks)
        if row.checks and not any(placed):
            hint = f'put `- "{ROW_CHECKS}"` into the `yaml checks` block of a criterion'
            yield f"the row has `checks`, but no criterion of `{rubric.id}` uses them", hint
        if pair and rubric.pass_rules:
            rules = f"the `pass` rules of `{rubric.id}` are for single responses"
            hint = 'extend it with `pass: []` and `gates: ["win_rate >= 0.5"]`'
            yield f"the row is a pair, but {rules}", hint

    def _of_prompt(self, row: Row) -> Iterator[Fault]:
        """Yield the faults of the target's prompt that appear only when a row fills it."""
        for text in self._unfilled:
            name = text.partition("|")[0].strip()
            if name in row.metadata or name in FIELD_OF:
                hint = "remove it; only `prompt` may have placeholders (letters, digits and `_`)"
                yield f"`{{{{{text}}}}}` would be sent unfilled", hint
        for name in self._columns:
            if name not in row.metadata:
                hint = nearest(name, row.metadata, "show `{{task}}` or a column that all rows have")
                yield f"the prompt shows `{name}`, but the row has no such column", hint
        if self._drops and row.context:
            hint = "put `{{context}}` into the prompt, or `unused: [context]` into the suite"
            yield "the target's prompt drops the rows' `context`", hint


def survey_rows(
    dataset: Dataset, plan: Plan, unused: Collection[str], cluster: RayCluster | None
) -> tuple[Survey, set[str | None]]:
    """Check all rows, and return their survey and demographics."""
    checked = None if cluster is None else _survey_on(cluster, dataset, plan, unused)
    if checked is not None:
        return checked
    check = RowCheck(plan, unused)
    found = survey(dataset, needs_response=plan.target is None, check=check)
    for name in sorted(check.missing) if plan.dataset.is_whole else ():
        problem = f"a check of the rubric needs `{name}`, but no row has it"
        raise InputError(problem, "add it to the rows, or correct the name", dataset.origin)
    return found, check.demographics


_PARTS_PER_WORKER: Final = 4
_FEWEST: Final = 1000


def _survey_on(
    cluster: RayCluster, dataset: Dataset, plan: Plan, unused: Collection[str]
) -> tuple[Survey, set[str | None]] | None:
    """Check all rows on the workers; return their survey and demographics.

    None if the dataset can't be split, or if a worker finds a fault; the driver then reads all rows
    and reports every fault.
    """
    slices = dataset.slices()
    if not slices:
        return None
    rows = slices[-1].stop
    with redirect_stdout(sys.stderr):  # Ray reports lost nodes on stdout
        size = max(_FEWEST, rows // (_PARTS_PER_WORKER * cluster.cpus))
        hashing = cluster.call(hash_dataset, plan)
        parts = [
            cluster.call(_survey_part, plan, unused, each) for each in aligned(slices, size, rows)
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
    surveyed = Survey(rows=rows, sha256=sha256, bytes=count, warnings=(*warnings,))
    return surveyed, demographics


def _are_unique(surveys: list[PartSurvey]) -> bool:
    """Return whether ids are unique, and no row lacks an id if another row has one."""
    import numpy as np

    if len({each for survey in surveys for each in survey.has_ids}) > 1:
        return False
    ids = np.concatenate([np.frombuffer(each.ids, dtype=np.uint64) for each in surveys])
    ids.sort()
    return not (ids[1:] == ids[:-1]).any()


def _survey_part(
    plan: Plan, unused: Collection[str], rows: range
) -> tuple[PartSurvey, set[str | None], set[str]] | None:
    """Check some rows in a worker, and return their survey; None if a row is invalid."""
    check = RowCheck(plan, unused)
    try:
        found = plan_dataset(plan).survey_between(
            rows, needs_response=plan.target is None, check=check
        )
    except InputError:
        return None
    return found, check.demographics, check.missing


def hash_dataset(plan: Plan) -> tuple[str, int]:
    """Return the hash and size of a dataset's bytes."""
    return plan_dataset(plan).hashed()


def plan_dataset(plan: Plan) -> Dataset:
    """Open the dataset of a plan; the caller checks whether it has changed."""
    described = plan.dataset
    pattern = described.id if described.files else ""
    if pattern.startswith(HUB):
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
