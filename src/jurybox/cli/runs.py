"""``jurybox runs``."""

import sys
from collections.abc import Mapping
from typing import Final

import click
import msgspec

from jurybox.app.run_suite import delete_run
from jurybox.app.view_run import review_doubt
from jurybox.cli.options import json_option, opened, opened_run, option, store_option
from jurybox.cli.output import (
    console,
    plain,
    print_line,
    print_result,
    print_table,
    say,
    wants_json,
)
from jurybox.documents.numbers import metric_value
from jurybox.reporting.view import ListedRun, finished_view, listed_run

_WIDE: Final = 160
"""The minimum width at which each value has its own column."""


@click.command("runs")
@option("--limit N", "List only the newest N runs.", type=click.IntRange(1), default=20)
@option("--delete RUN", "Delete a run and all its stored data.")
@option("--yes", "Delete without asking.")
@store_option
@json_option
def command(limit: int, delete: str | None, yes: bool) -> None:
    """List the runs in the store, newest first, or delete one.

    Deleting permanently removes a run's samples, replies and reviews, after confirmation or with
    --yes. A run in progress is not deleted.

    \b
    Examples:
      jurybox runs
      jurybox runs --delete 20260301-0914 --yes
      jurybox runs --limit 5 --json
      jurybox runs --store postgresql://db.example/runs
    """  # noqa: D301 - click reads \b as "keep these lines"
    if delete is not None:
        _delete(delete, yes=yes)
        return
    with opened() as store:
        # One more than the limit, to know whether there are further runs.
        rows = store.runs(limit + 1)
        listed = [listed_run(row, store) for row in rows[:limit]]
        # Most runs have no reviews and needn't be read twice.
        doubts = {
            row.id: review_doubt(finished_view(row, store), store)
            for row, each in zip(rows, listed, strict=False)
            if each.metric is not None and (each.derived_from or store.review_state(row.id))
        }
    more = len(rows) > limit
    runs = [
        {**msgspec.to_builtins(each), "review_doubt": doubts.get(each.run_id) or None}
        for each in listed
    ]
    print_result({"runs": runs, "more": more}, lambda: _print(listed, doubts, more=more))


def _delete(name: str, *, yes: bool) -> None:
    with opened_run(name) as (store, row):
        if not yes:
            if wants_json() or not sys.stdin.isatty():
                raise click.UsageError("--delete needs --yes without a terminal")
            click.confirm(f"delete run {row.id} of {row.suite}, with all its samples?", abort=True)
        delete_run(row, store)
    print_result({"deleted": row.id}, lambda: say(f"deleted run {row.id}"))


def _print(listed: list[ListedRun], doubts: Mapping[str, str], *, more: bool) -> None:
    if not listed:
        click.echo("the store has no runs; run a suite first")
        return
    cells = [_cells(each, doubts.get(each.run_id, "")) for each in listed]
    if console().width >= _WIDE:
        print_table([*cells[0]], (each.values() for each in cells))
    else:
        for each in cells:
            run, suite, *rest = filter(None, each.values())
            print_line(plain(run, "bold"), f"  {suite}  {', '.join(rest)}")
    if more:
        click.echo("there are more; --limit N lists them")


def _cells(each: ListedRun, doubt: str) -> dict[str, str]:
    """Return the columns of a run in the list, by heading."""
    return {
        "run": each.run_id,
        "suite": each.suite,
        "name": each.name or "",
        "tags": " ".join(each.tags),
        "status": each.status,
        "samples": "" if each.planned is None else f"{each.samples} of {each.planned}",
        "metric": f"{each.metric} {metric_value(each.metric, each.value)}" if each.metric else "",
        "verdict": ", ".join(filter(None, (_verdict(each), doubt))),
        "dataset": each.dataset or "",
        "target": each.target or "",
        "judge": each.judge or "",
        "cost": "" if each.metric is None else each.cost or "",
        "started": each.created_at.partition(".")[0].replace("T", " "),
    }


def _verdict(each: ListedRun) -> str:
    parts = [part for part in (each.decision, each.unconfirmed) if part]
    if each.gates is not None:
        passed = each.gates_passed == each.gates
        whole = passed and not each.blockers
        parts.append("gates pass" if whole else f"{each.gates_passed} of {each.gates} gates pass")
    return ", ".join((*parts, *each.blockers))
