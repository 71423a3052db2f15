"""``jurybox run``."""

import click

from jurybox.cli.options import base_url_option, concurrency_option, unpinned_option
from jurybox.cli.output import json_option, say
from jurybox.cli.stores import opened, store_option


@click.command("run")
@click.argument("suite", metavar="SUITE.yaml")
@click.option("--rubric", metavar="RUBRIC", help="A rubric's name or path, instead of the suite's.")
@click.option("--target", metavar="MODEL", help="The model that answers, instead of the suite's.")
@click.option(
    "--prompt", metavar="FILE", help="The prompt of the target, with {{task}} where the task goes."
)
@click.option("--system", metavar="FILE", help="The system prompt of the target.")
@click.option(
    "--responses",
    metavar="FILE",
    help="Recorded responses, rows of id and response, instead of a target; bundled suites have"
    " some by name.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Run every sample so often; else as the suite says.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="Use only the first so many rows of the dataset.",
)
@concurrency_option
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="A model that judges, in place of the suite's; give it more than once for a mixed jury.",
)
@base_url_option
@unpinned_option
@click.option(
    "--cache/--no-cache",
    default=None,
    help="Reuse what models answered to equal requests in earlier runs, or never do.",
)
@click.option(
    "--batch/--no-batch",
    default=None,
    help="Ask judges in their providers' batches, for about half the price and within a day, or"
    " directly; else as the suite says.",
)
@store_option
@json_option
def command(  # noqa: PLR0917 - click passes them by name
    suite: str,
    rubric: str | None,
    target: str | None,
    prompt: str | None,
    system: str | None,
    responses: str | None,
    repeats: int | None,
    limit: int | None,
    concurrency: int | None,
    judges: tuple[str, ...],
    base_url: str | None,
    allow_unpinned: bool,
    cache: bool | None,
    batch: bool | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Run a suite: have every sample answered and judged, and print summary, gates and decision.

    A suite is given by the path of its file, or by its name where it is bundled, such as
    companion-scenarios.

    Everything is stored as it comes in. Ctrl-C finishes the samples that are under way and stops; a
    second Ctrl-C stops at once. Nothing finished is lost or paid for twice: `jurybox resume` goes
    on. With --batch, Ctrl-C stops waiting: what was submitted goes on at the provider, and
    `jurybox resume` reads it. The exit code is 1 when a gate of the rubric fails, and 3 when
    the run was stopped or no sample could be scored.

    \b
    Examples:
      jurybox run suite.yaml
      jurybox run suite.yaml --limit 20 --judge openai/gpt-4.1-2025-04-14
      jurybox run companion-scenarios --responses good
      jurybox run companion-scenarios --target openai/gpt-4.1-2025-04-14 --system penpal-v2.md
      jurybox run suite.yaml --judge openai/gpt-4.1-2025-04-14 --batch
      jurybox run suite.yaml --repeats 3 --store postgresql://db.example/runs --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.prepare import RunOptions, prepare
    from jurybox.app.run_suite import start_run
    from jurybox.cli.run_job import work

    options = RunOptions(
        rubric=rubric,
        target=target,
        prompt=prompt,
        system=system,
        responses=responses,
        judges=judges,
        repeats=repeats,
        limit=limit,
        concurrency=concurrency,
        base_url=base_url,
        allow_unpinned=allow_unpinned,
        cache=cache,
        batch=batch,
    )
    prepared = prepare(suite, options)
    for warning in prepared.warnings:
        say(f"warning: {warning}")
    with opened(store_url, create=True) as store:
        return work(
            lambda show, on_start: start_run(
                prepared, store, base_url=base_url, on_progress=show, on_start=on_start
            ),
            store,
            store_url,
            as_json=as_json,
        )
