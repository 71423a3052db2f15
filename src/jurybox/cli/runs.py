"""``jurybox runs``."""

from typing import TYPE_CHECKING

import click
import msgspec

from jurybox.cli.options import json_option, opened, store_option
from jurybox.cli.output import add_row, print_json, table, wide_console

if TYPE_CHECKING:
    from jurybox.reporting.view import ListedRun


@click.command("runs")
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="List only the newest N runs.",
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
    from jurybox.reporting.view import listed_run

    with opened(store_url) as store:
        # One more than wanted, to know whether there are more.
        rows = store.runs(limit + 1)
        listed = [listed_run(row, store) for row in rows[:limit]]
    more = len(rows) > limit
    if as_json:
        print_json({"runs": [msgspec.to_builtins(each) for each in listed], "more": more})
    else:
        _print(listed, more=more)


def _print(listed: "list[ListedRun]", *, more: bool) -> None:
    from jurybox.reporting.metric_text import shown

    if not listed:
        click.echo("the store has no runs; run a suite first")
        return
    made = table("run", "suite", "status", "samples", "metric", "verdict", "cost", "started")
    for each in listed:
        add_row(
            made,
            each.run_id,
            each.suite,
            each.status,
            "" if each.planned is None else f"{each.samples} of {each.planned}",
            "" if each.figure is None else f"{each.figure} {shown(each.value)}",
            _verdict(each),
            _cost(each),
            each.created_at.partition(".")[0].replace("T", " "),
        )
    wide_console().print(made)
    if more:
        click.echo("there are more; --limit N lists them")


def _verdict(each: "ListedRun") -> str:
    parts = [] if each.decision is None else [each.decision]
    if each.gates is not None:
        passed = each.gates_passed == each.gates
        parts.append("gates pass" if passed else f"{each.gates_passed} of {each.gates} gates pass")
    return ", ".join(parts)


def _cost(each: "ListedRun") -> str:
    if each.figure is None:
        return ""
    return "unknown" if each.dollars is None else f"${each.dollars:.4f}"
