"""``jurybox diff``."""

from typing import Final

import click

from jurybox.cli.exits import FAILED, FINE
from jurybox.cli.output import json_option, print_json
from jurybox.cli.stores import opened, store_option
from jurybox.cli.sureness import cluster_option, level_option, seed_option

_LIMIT: Final = 20


@click.command("diff")
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="RUN_B")
@click.option("--all", "everything", is_flag=True, help="List all samples, also those that agree.")
@click.option(
    "--limit",
    type=click.IntRange(0),
    metavar="N",
    help=f"List at most N changed samples; {_LIMIT} where nothing is said, with --json all.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["regression"]),
    help="Exit with 1 where a figure of B is worse than A's by more than chance.",
)
@cluster_option
@level_option
@seed_option
@store_option
@json_option
def command(  # noqa: PLR0917 - click passes them by name
    run_a: str,
    run_b: str,
    everything: bool,
    limit: int | None,
    fail_on: str | None,
    cluster: str | None,
    level: float,
    seed: int,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Compare two runs: what they were made of, their figures, and every sample that changed.

    A run is named by its id, the beginning of one, or `last`. Samples are matched by id and repeat.
    Each figure that both runs have is tested over these pairs: the difference with its interval,
    and a p value with Holm's correction over all of them. B is said to be higher or lower only
    where both leave no doubt. Samples that changed are listed, another verdict (passed, winner,
    scored, flagged) before another score, larger differences before smaller ones. Latency is shown,
    and neither counts as a change nor is tested. The exit code is 0 whether or not the runs differ,
    unless --fail-on says otherwise.

    \b
    Examples:
      jurybox diff 20260301-0914 last
      jurybox diff 20260301-0914 last --fail-on regression
      jurybox diff 20260301-0914 last --cluster conversation --limit 100
      jurybox diff 20260301-0914 last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.cli.diff_view import print_diff
    from jurybox.reporting.comparing import Side, Wish, compare
    from jurybox.statistics.bootstrap import Resampling
    from jurybox.wiring.stores import find_run
    from jurybox.wiring.viewing import view_run

    if everything and limit is not None:
        raise click.UsageError("--all and --limit exclude each other")
    unbounded = everything or (as_json and limit is None)
    wish = Wish(
        limit=None if unbounded else _LIMIT if limit is None else limit,
        same=everything,
        cluster=cluster,
        resampling=Resampling(seed=seed, level=level),
    )
    with opened(store_url) as store:
        rows = [find_run(store, run) for run in (run_a, run_b)]
        one, other = [Side(row=row, view=view_run(row, store)) for row in rows]
        diff = compare(store, one, other, wish)
    if as_json:
        print_json(diff.as_data())
    else:
        print_diff(diff)
    return FAILED if fail_on and diff.regressions else FINE
