"""``jurybox resume``."""

import click

from jurybox.cli.options import concurrency_option
from jurybox.cli.output import json_option
from jurybox.cli.stores import opened, run_argument, store_option


@click.command("resume")
@run_argument
@click.option(
    "--base-url",
    metavar="URL",
    help="The address of an OpenAI-compatible endpoint, where it has changed.",
)
@concurrency_option
@click.option(
    "--forget-batches",
    "forget",
    is_flag=True,
    help="Ask again, and pay again, what open batches were asked; for batches that can't be read"
    " any more.",
)
@store_option
@json_option
def command(
    run: str,
    base_url: str | None,
    concurrency: int | None,
    forget: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Go on with a RUN that was stopped, where it was stopped.

    RUN is a run's id, the beginning of one, or `last`. Finished samples are neither done nor paid
    for again. The run uses the words and settings that it began with, whatever the suite says by
    now; where the dataset has changed since, it is refused. Batches that it left open are waited
    for and read, never submitted again. Exit codes are those of `jurybox run`.

    \b
    Examples:
      jurybox resume last
      jurybox resume 20260301-0914 --concurrency 4
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.run_suite import forget_batches, resume_run
    from jurybox.cli.run_job import work
    from jurybox.wiring import find_run

    with opened(store_url) as store:
        row = find_run(store, run)
        if forget:
            forget_batches(row, store)
        return work(
            lambda show, on_start: resume_run(
                row,
                store,
                base_url=base_url,
                concurrency=concurrency,
                on_progress=show,
                on_start=on_start,
            ),
            store,
            store_url,
            as_json=as_json,
        )
