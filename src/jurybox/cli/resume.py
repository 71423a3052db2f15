"""``jurybox resume``."""

from functools import partial
from typing import Any

import click

from jurybox.app.run_suite import resume_run
from jurybox.cli import options
from jurybox.cli.run import run_and_print
from jurybox.engine.records import RunRow
from jurybox.storage.store import Store


@click.command("resume")
@options.base_url_option
@options.concurrency_option
@options.version_drift_option
@options.option(
    "--retry-failed",
    "Repeat all requests that failed for a transient reason, even in a finished run.",
)
@options.max_cost_option
@options.cluster_options
@options.stored_run
def command(
    store: Store,
    run: RunRow,
    **given: Any,  # noqa: ANN401 - those of `resume_run`
) -> int:
    """Continue a RUN that was stopped.

    RUN is a run's id, its name, a tag, or `last`. Finished samples are neither evaluated nor paid
    for again, unless a request failed for a transient reason (an outage, a timeout, a rate
    limit): it is then repeated, with --retry-failed even in a finished run. The run keeps the
    texts and settings that it started with, even if the suite has changed; a changed dataset is
    refused. Open batches are waited for and read, never submitted again. Exit codes are those of
    `jurybox run`.

    \b
    Examples:
      jurybox resume last
      jurybox resume 20260301-0914 --concurrency 4
      jurybox resume last --retry-failed
    """  # noqa: D301 - click reads \b as "keep these lines"
    return run_and_print({"": partial(resume_run, run, store, **given)}, store)
