"""``jurybox resume``."""

from functools import partial
from typing import Any

import click

from jurybox.cli.options import (
    address_option,
    base_url_option,
    cluster_of,
    concurrency_option,
    engine_option,
    json_option,
    max_cost_option,
    opened_run,
    run_argument,
    store_option,
    version_drift_option,
)


@click.command("resume")
@run_argument
@base_url_option
@concurrency_option
@version_drift_option
@click.option(
    "--forget-batches",
    "forget",
    is_flag=True,
    help="Send the requests of open batches again, and pay again, if they can no longer be read.",
)
@click.option(
    "--retry-failed",
    is_flag=True,
    help="Ask again for everything that failed for a transient reason, also in a finished run.",
)
@max_cost_option
@engine_option
@address_option
@store_option
@json_option
def command(
    run: str,
    forget: bool,
    engine: str,
    address: str | None,
    store_url: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - those of `resume_run`
) -> int:
    """Continue a RUN that was stopped.

    RUN is a run's id, its name, a tag, or `last`. Finished samples are neither evaluated nor paid
    for again, except if a request failed for a transient reason (an outage, a timeout, a rate
    limit): it is then repeated, and with --retry-failed in a finished run too. The run keeps the
    texts and settings that it started with, even if the suite has changed; a changed dataset is
    refused. Open batches are waited for and read, never submitted again. Exit codes are those of
    `jurybox run`.

    \b
    Examples:
      jurybox resume last
      jurybox resume 20260301-0914 --concurrency 4
      jurybox resume last --retry-failed
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.run_suite import forget_batches, resume_run
    from jurybox.cli.run import run_and_print

    with cluster_of(engine, address) as cluster, opened_run(run, store_url) as (store, row):
        if forget:
            forget_batches(row, store)
        start = partial(resume_run, row, store, cluster=cluster, **options)
        return run_and_print({"": start}, store, store_url, as_json=as_json)
