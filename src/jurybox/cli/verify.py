"""``jurybox verify``."""

from typing import Any

import click
import msgspec

from jurybox.cli.options import json_option, opened_run, run_argument, store_option
from jurybox.cli.output import harmless, print_json
from jurybox.cli.signals import FINE, INCOMPLETE, fail
from jurybox.storage.audit import Audit, audit


@click.command("verify")
@run_argument
@store_option
@json_option
def command(run: str, as_json: bool) -> int:
    """Verify that a RUN follows from its models' replies, and was not changed.

    RUN is a run's id, its name, a tag, or `last`. Every judge's conversation is replayed over
    the stored replies, without a model; scores, metrics, gates and the digest are derived again and
    compared. The first record that differs is named, and the exit code is then 3. A user with write
    access could replace the whole run; only the digest, if you noted it elsewhere, reveals that.

    \b
    Examples:
      jurybox verify last
      jurybox verify 20260301-0914
      jurybox verify last --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    with opened_run(run) as (store, row):
        found = audit(store, row)
    problem = None if found.difference is None else f"run {row.id} differs: {found.difference}"
    if as_json:
        data: dict[str, Any] = msgspec.to_builtins(found)
        print_json({"verified": problem is None, **data, "error": problem})
    elif problem is None:
        click.echo(_line(found))
    return FINE if problem is None else fail(harmless(problem), INCOMPLETE)


def _line(found: Audit) -> str:
    counts = f"{found.samples} samples, {found.exchanges} exchanges"
    if found.complete:
        return f"verified: {counts}, digest {found.digest}"
    return f"verified so far: {counts}; the run isn't finished, so it has no metrics to check yet"
