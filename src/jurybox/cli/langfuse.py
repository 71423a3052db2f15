"""``jurybox langfuse``: deliver runs to Langfuse, and read people's scores back."""

from collections.abc import Sequence

import click

from jurybox.app.delivery import OutboxState, pull, push, states
from jurybox.cli.options import CommandGroup, json_option, opened, option, store_option, stored_run
from jurybox.cli.output import print_result, print_table, say
from jurybox.cli.signals import FINE, INCOMPLETE
from jurybox.engine.records import RunRow
from jurybox.storage.store import Store
from jurybox.text_format import counted
from jurybox.wiring import find_run


@click.group(cls=CommandGroup)
def command() -> None:
    """Deliver runs to Langfuse, and read people's scores back.

    LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY select the project, LANGFUSE_BASE_URL the server.

    \b
    Examples:
      jurybox langfuse push last --queue to-review
      jurybox langfuse status
      jurybox langfuse pull last
    """  # noqa: D301 - click reads \b as "keep these lines"


@command.command("status", short_help="Show how much of each run was delivered.")
@store_option
@json_option
def show_status() -> None:
    """Show how much of each run was delivered, is waiting, or was rejected.

    Only the store is read.

    \b
    Examples:
      jurybox langfuse status
      jurybox langfuse status --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    with opened() as store:
        found = states(store)
    print_result({"runs": found}, lambda: _print_states(found))


def _print_states(found: Sequence[OutboxState]) -> None:
    if not found:
        click.echo("no run was scheduled for delivery")
        return
    print_table(
        ("run", "sent", "waiting", "rejected", "why"),
        (
            (
                *(each.run_id, *map(str, (each.sent, each.pending, each.rejected))),
                each.error or ("the run isn't finished" if each.unfinished else ""),
            )
            for each in found
        ),
    )


@command.command("push", short_help="Deliver a run, or everything pending.")
@click.argument("run", metavar="[RUN]", required=False)
@option("--queue NAME", "Add flagged samples to this annotation queue.")
@store_option
@json_option
def push_run(run: str | None, queue: str | None) -> int:
    """Deliver RUN, or everything pending: traces, scores, dataset runs, flagged samples.

    Parts that can't be delivered or are rejected are kept for the next push. Every part has a
    unique id, so that nothing is delivered twice. Exit code 3: some parts weren't delivered.

    \b
    Examples:
      jurybox langfuse push last
      jurybox langfuse push last --queue to-review
      jurybox langfuse push
    """  # noqa: D301 - click reads \b as "keep these lines"
    if queue is not None and run is None:
        raise click.UsageError("--queue needs a RUN")
    with opened() as store:
        row = None if run is None else find_run(store, run)
        done = push(store, row, queue=queue)
    print_result(done, lambda: [say(line) for line in done.lines()])
    return FINE if done.complete else INCOMPLETE


@command.command("pull", short_help="Read people's scores from Langfuse as reviews.")
@stored_run
def pull_reviews(store: Store, run: RunRow) -> None:
    """Read human scores of RUN's traces from Langfuse, and store them as reviews.

    A score counts if it has the name of a criterion; a person's scores of one trace form one
    review. Nothing is stored twice.

    \b
    Examples:
      jurybox langfuse pull last
    """  # noqa: D301 - click reads \b as "keep these lines"
    done = pull(store, run)
    for line in done.skipped:
        say(f"skipped: {line}")
    line = f"{counted(done.reviews, 'new review')}, {done.unchanged} already known"
    print_result(done, lambda: click.echo(line))
