"""What a run was meant to do, as it is stored, and what to say where that can't be read."""

import msgspec

from jurybox.engine.plan import Plan, read_plan
from jurybox.engine.records import RunRow
from jurybox.errors import IncompleteError, JuryboxError
from jurybox.rubric import parse_rubric
from jurybox.rubric.model import Rubric
from jurybox.scoring.evaluate_sample import Procedure


def damaged(run: RunRow, why: object) -> IncompleteError:
    """Return the error for a person: which run it is, and who says more."""
    return IncompleteError(f"run {run.id} can't be read ({why}); `jurybox verify` says where")


def plan_of(run: RunRow) -> Plan:
    """Return the plan of a run.

    Raises:
        IncompleteError: it can't be read.

    """
    try:
        return read_plan(run.plan)
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None


def procedure_of(run: RunRow) -> Procedure:
    """Return how every sample of a run was treated.

    Raises:
        IncompleteError: it can't be read.

    """
    plan = plan_of(run)
    try:
        return plan.procedure()
    except JuryboxError as error:
        raise damaged(run, error) from None


def rubric_of(run: RunRow) -> Rubric:
    """Return the rubric by which a run was scored.

    Raises:
        IncompleteError: it can't be read.

    """
    document = plan_of(run).rubric
    try:
        return parse_rubric(document.text, document.origin)
    except JuryboxError as error:
        raise damaged(run, error) from None
