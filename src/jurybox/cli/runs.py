"""``jurybox runs``."""

from functools import cache
from typing import TYPE_CHECKING, Any

import click
import msgspec

from jurybox.cli.output import json_option, plain, print_json, wide_console
from jurybox.cli.stores import opened, store_option
from jurybox.errors import IncompleteError, JuryboxError

if TYPE_CHECKING:
    from jurybox.running.plan import Plan
    from jurybox.running.records import RunRow
    from jurybox.running.storing import Store


@click.command("runs")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="List only the newest so many.",
)
@store_option
@json_option
def command(limit: int, store_url: str | None, as_json: bool) -> None:
    """List the runs of the store, the newest first.

    \b
    Examples:
      jurybox runs
      jurybox runs --limit 5 --json
      jurybox runs --store postgresql://db.example/runs
    """  # noqa: D301 - click reads \b as "keep these lines"
    with opened(store_url) as store:
        # One more than wanted tells whether there are more.
        rows = store.runs(limit + 1)
        listed = [_look(row, store) for row in rows[:limit]]
    more = len(rows) > limit
    if as_json:
        print_json({"runs": [msgspec.to_builtins(each) for each in listed], "more": more})
    else:
        _print(listed, more=more)


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
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
    dollars: float | None = None
    derived_from: str | None = None


def _look(row: "RunRow", store: "Store") -> _Listed:
    from jurybox.running.plan import read_plan

    known = _Listed(
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


def _unfinished(row: "RunRow", store: "Store") -> dict[str, Any]:
    """Only count: the figures of a stopped run have to be worked out from all its samples."""
    try:
        with store.claim(row.id) as mine:
            status = "stopped" if mine else "running"
    except IncompleteError:
        # Whoever may only read can't find out whether somebody is at work on it.
        status = row.status
    return {"status": status, "samples": sum(1 for _ in store.numbers(row.id))}


def _finished(row: "RunRow", plan: "Plan") -> dict[str, Any]:
    from jurybox.reporting.view import finished_view

    view = finished_view(row)
    figure = _key_figure(plan.rubric.text, plan.rubric.origin)
    return {
        "samples": view.summary["samples"],
        "figure": figure,
        "value": view.summary.get(figure),
        "gates_passed": sum(gate.passed for gate in view.gates) if view.gates else None,
        "gates": len(view.gates) or None,
        "decision": view.conclusion.decision,
        "dollars": view.cost.get("dollars"),
    }


@cache
def _key_figure(text: str, origin: str) -> str:
    from jurybox.reporting.figures import key_figure
    from jurybox.rubric import parse_rubric

    return key_figure(parse_rubric(text, origin))


def _print(listed: list[_Listed], *, more: bool) -> None:
    from rich.table import Table

    if not listed:
        click.echo("the store has no runs; run a suite first")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("run", "suite", "status", "samples", "figure", "verdict", "cost", "began"):
        table.add_column(heading, overflow="fold")
    for each in listed:
        cells = (
            each.run_id,
            each.suite,
            each.status,
            "" if each.planned is None else f"{each.samples} of {each.planned}",
            _figure(each),
            _verdict(each),
            _cost(each),
            each.created_at.partition(".")[0].replace("T", " "),
        )
        table.add_row(*(plain(cell) for cell in cells))
    wide_console().print(table)
    if more:
        click.echo("there are more; --limit N lists them")


def _figure(each: _Listed) -> str:
    from jurybox.reporting.figures import shown

    return "" if each.figure is None else f"{each.figure} {shown(each.value)}"


def _verdict(each: _Listed) -> str:
    parts = [] if each.decision is None else [each.decision]
    if each.gates is not None:
        held = each.gates_passed == each.gates
        parts.append("gates hold" if held else f"{each.gates_passed} of {each.gates} gates hold")
    return ", ".join(parts)


def _cost(each: _Listed) -> str:
    if each.figure is None:
        return ""
    return "unknown" if each.dollars is None else f"${each.dollars:.4f}"
