"""A run in a list: as much of it as is told without reading its samples."""

from functools import lru_cache
from typing import Any

import msgspec

from jurybox.engine.plan import Plan, read_plan
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.errors import JuryboxError
from jurybox.reporting.at_work import is_at_work
from jurybox.reporting.metric_text import key_figure
from jurybox.reporting.view import finished_view
from jurybox.rubric import parse_rubric


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the list; without ``planned`` it can't be read."""

    run_id: str
    suite: str
    status: str
    created_at: str
    finished_at: str | None
    planned: int | None = None
    samples: int | None = None
    figure: str | None = None
    value: float | None = None
    gates_passed: int | None = None
    gates: int | None = None
    decision: str | None = None
    queued: int | None = None
    dollars: float | None = None
    derived_from: str | None = None


def listed_run(row: RunRow, store: Store) -> ListedRun:
    """Return a run as lists show it; one that is damaged says so.

    Raises:
        IncompleteError: the store is in trouble.

    """
    known = ListedRun(
        run_id=row.id,
        suite=row.suite,
        status=row.status,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )
    try:
        plan = read_plan(row.plan)
        told = _unfinished(row, store) if row.status != "finished" else _finished(row, plan)
    except (msgspec.DecodeError, JuryboxError):
        # One damaged run must not hide the others.
        return msgspec.structs.replace(known, status="damaged")
    told |= {"planned": plan.samples, "derived_from": plan.derived_from}
    return msgspec.structs.replace(known, **told)


def _unfinished(row: RunRow, store: Store) -> dict[str, Any]:
    """Only count: the figures of a stopped run have to be worked out from all its samples."""
    # Whoever may only read can't find out whether somebody is at work on it.
    status = {True: "running", False: "stopped", None: row.status}[is_at_work(row, store)]
    return {"status": status, "samples": sum(1 for _ in store.numbers(row.id))}


def _finished(row: RunRow, plan: Plan) -> dict[str, Any]:
    view = finished_view(row)
    figure = _key_figure(plan.rubric.text, plan.rubric.origin)
    return {
        "samples": view.summary["samples"],
        "figure": figure,
        "value": view.summary.get(figure),
        "gates_passed": sum(gate.passed for gate in view.gates) if view.gates else None,
        "gates": len(view.gates) or None,
        "decision": view.conclusion.decision,
        "queued": view.conclusion.review["queued"],
        "dollars": view.cost.get("dollars"),
    }


@lru_cache(maxsize=64)
def _key_figure(text: str, origin: str) -> str:
    return key_figure(parse_rubric(text, origin))
