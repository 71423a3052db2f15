"""The checks of a rubric, run on one response (D4)."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final, cast

import msgspec

from jurybox.rubric.check_kinds import CheckedAnswer
from jurybox.rubric.checks import ROW_CHECKS, Check, CheckOutcome, read_check, run_check
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.sample import Row
from jurybox.scoring.rules import AutomatedReport, CheckedCriterion, overall_score

_DECIMALS: Final = 6
_NOTHING: Final = AutomatedReport(criteria=(), overall=None, band=None, measures={})


def with_checks(
    rubric: Rubric, row: Row, answer: CheckedAnswer, automated: AutomatedReport | None
) -> AutomatedReport:
    """Return the scores of the rules together with those of the checks."""
    report = msgspec.structs.replace(
        automated or _NOTHING,
        checked=tuple(_checked(each, row, answer) for each in rubric.checked),
    )
    overall = overall_score(rubric, report.scores)
    band = None if overall is None else rubric.band(overall)
    return msgspec.structs.replace(
        report, overall=overall, band=None if band is None else band.label
    )


def _checked(criterion: Criterion, row: Row, answer: CheckedAnswer) -> CheckedCriterion:
    checks = _with_own(criterion.checks, row)
    outcomes = tuple(run_check(each, partial(_part_of, row), answer) for each in checks)
    score = _score(criterion, outcomes)
    level = None if score is None else criterion.band(score)
    return CheckedCriterion(
        id=criterion.id,
        score=score,
        band=(level.label or None) if level else None,
        checks=outcomes,
    )


def _with_own(checks: tuple[Check, ...], row: Row) -> Iterator[Check]:
    """Yield the checks, the row's own in their place."""
    for check in checks:
        if check.kind != ROW_CHECKS:
            yield check
            continue
        for entry in () if row.checks is msgspec.UNSET else row.checks:
            own, _ = read_check(entry)
            if own is not None:  # faults are refused where the row is read
                yield own


def _score(criterion: Criterion, outcomes: tuple[CheckOutcome, ...]) -> float | None:
    """Return the share of checks that passed; on a scale of whole numbers, all or nothing."""
    passed = [each.passed for each in outcomes]
    if None in passed or not passed:
        return None
    scale = criterion.scale
    share = passed.count(True) / len(passed) if scale.continuous else float(all(passed))
    return round(scale.low + share * (scale.high - scale.low), _DECIMALS)


def _part_of(row: Row, name: str) -> object:
    """Return a part of a row by its name, `metadata.author.name` included."""
    first, *keys = name.split(".")
    value: object = getattr(row, first)
    for key in keys:
        value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
    return value
