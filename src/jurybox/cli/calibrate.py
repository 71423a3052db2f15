"""``jurybox calibrate``."""

import click

from jurybox.cli.calling import base_url_option, concurrency_option, unpinned_option
from jurybox.cli.output import json_option, print_json, say
from jurybox.cli.stores import opened, store_option
from jurybox.cli.sureness import level_option


@click.command("calibrate")
@click.option("--rubric", metavar="RUBRIC", help="A rubric's name or path.")
@click.option(
    "--gold",
    metavar="FILE",
    help="A dataset whose rows say what people think: `gold` with scores by criterion, or"
    " `gold_winner`.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="A model that judges; give it more than once for a mixed jury.",
)
@click.option(
    "--votes",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How many votes a sample gets; else as the rubric says.",
)
@click.option(
    "--rounds",
    type=click.IntRange(0, 100),
    default=0,
    metavar="K",
    help="Try so many changes to the rubric, and keep what helps on rows that it was not made"
    " from; none without it.",
)
@click.option(
    "--proposer", metavar="MODEL", help="A model that thinks of the change in every second round."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where a new version of the rubric is written; else its id and version, in this folder.",
)
@click.option(
    "--cluster",
    metavar="FIELD",
    help="The field of rows that belong together, such as `scenario`: they are kept in one part,"
    " and counted as one for intervals.",
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="Use only the first so many rows."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="What the split and the intervals are drawn by.",
)
@level_option
@base_url_option
@concurrency_option
@unpinned_option
@click.option(
    "--show",
    "shown",
    metavar="ID",
    help="Show a stored calibration again, by its id or as `last`; nothing is judged.",
)
@store_option
@json_option
def command(  # noqa: PLR0917 - click passes them by name
    rubric: str | None,
    gold: str | None,
    judges: tuple[str, ...],
    votes: int | None,
    rounds: int,
    proposer: str | None,
    output: str | None,
    cluster: str | None,
    limit: int | None,
    seed: int,
    level: float,
    base_url: str | None,
    concurrency: int | None,
    allow_unpinned: bool,
    shown: str | None,
    store_url: str | None,
    as_json: bool,
) -> None:
    """Hold a judge against people: how far they agree, beside how far people agree themselves.

    The rows of --gold carry responses and what people say of them. They are judged in a run of the
    store, and the record of what comes of it is shown by `jurybox run` from then on, until the
    rubric, the judge or its words change.

    With --rounds the gold is divided in three. Changes to the rubric are made from the first part
    and kept only where they help on the second, beyond noise; what was kept is reported on once, on
    the third, and written as a new version of the rubric. The old one is never touched.

    Low agreement is a finding and no failure: the exit code is 0. It is 3 when the judge is out of
    reach; the same command then goes on, and pays for nothing twice.

    \b
    Examples:
      jurybox calibrate --rubric general --gold people.jsonl --judge openai/gpt-4.1-2025-04-14
      jurybox calibrate --rubric general --gold people.jsonl --rounds 3 -o general-1.1.0.md
      jurybox calibrate --show last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.cli.calibrate_view import print_calibration
    from jurybox.wiring.calibrations import as_data, find_calibration

    if shown is not None:
        if rubric is not None or gold is not None:
            raise click.UsageError("--show judges nothing; leave --rubric and --gold out")
        with opened(store_url) as store:
            made = find_calibration(store, shown)
    else:
        if rubric is None or gold is None:
            missing = "--rubric" if rubric is None else "--gold"
            raise click.UsageError(f"missing option '{missing}'")
        from jurybox.cli.working import watched
        from jurybox.wiring.calibrating import calibrate, ready
        from jurybox.wiring.calibration_bench import CalibrateOptions

        readied = ready(
            CalibrateOptions(
                rubric=rubric,
                gold=gold,
                judges=tuple(dict.fromkeys(judges)),
                votes=votes,
                rounds=rounds,
                limit=limit,
                cluster=cluster,
                seed=seed,
                level=level,
                proposer=proposer,
                output=output,
                base_url=base_url,
                concurrency=concurrency,
                allow_unpinned=allow_unpinned,
            )
        )
        for warning in readied.warnings:
            say(f"warning: {warning}")
        with opened(store_url, create=True) as store:
            made = calibrate(
                readied, store, store_url, lambda start: watched(start, store_url), say
            )
    if as_json:
        print_json(as_data(made))
    else:
        print_calibration(made)
