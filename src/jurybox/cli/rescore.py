"""``jurybox rescore``."""

import click

from jurybox.app.rescore_run import rescore_run
from jurybox.cli.options import option, stored_run
from jurybox.cli.run import print_ended
from jurybox.engine.records import RunRow
from jurybox.storage.store import Store


@click.command("rescore")
@option("--rubric RUBRIC", "A rubric's name or path.", required=True)
@stored_run
def command(store: Store, run: RunRow, rubric: str) -> int:
    """Score the stored replies of a RUN under another version of its rubric.

    RUN is a run's id, its name, a tag, or `last`. No model is called. The result is stored as
    a new run; the old one stays as it is. A rubric that asks the judges different questions is
    refused, because the replies don't answer them. Exit codes are those of `jurybox run`.

    \b
    Examples:
      jurybox rescore last --rubric answer-quality-v2.md
      jurybox rescore 20260301-0914 --rubric stricter-gates.md --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    return print_ended([rescore_run(run, rubric, store)], store)
