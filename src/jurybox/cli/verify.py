"""``jurybox verify``."""

from typing import Any

import click
import msgspec

from jurybox.cli.options import stored_run
from jurybox.cli.output import harmless, print_result
from jurybox.cli.signals import FINE, INCOMPLETE, fail
from jurybox.engine.records import RunRow
from jurybox.storage.audit import Audit, audit
from jurybox.storage.store import Store


@click.command("verify")
@stored_run
def command(store: Store, run: RunRow) -> int:
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
    found = audit(store, run)
    problem = None if found.difference is None else f"run {run.id} differs: {found.difference}"
    data: dict[str, Any] = msgspec.to_builtins(found)
    data = {"verified": problem is None, **data, "error": problem}
    print_result(data, lambda: None if problem else click.echo(_line(found)))
    return FINE if problem is None else fail(harmless(problem), INCOMPLETE)


def _line(found: Audit) -> str:
    counts = f"{found.samples} samples, {found.exchanges} exchanges"
    if found.complete:
        return f"verified: {counts}, digest {found.digest}"
    return f"verified so far: {counts}; the run isn't finished, so it has no metrics to check yet"
