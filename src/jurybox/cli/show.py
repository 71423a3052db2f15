"""``jurybox show``."""

import click

from jurybox.cli.output import json_option, print_json
from jurybox.cli.stores import opened, run_argument, store_option


@click.command("show")
@run_argument
@click.option("--sample", "sample_id", metavar="ID", help="Show one sample instead of the run.")
@click.option(
    "--repeat",
    type=click.IntRange(0),
    metavar="K",
    help="Which repeat of the sample, counted from 0; the first there is otherwise.",
)
@store_option
@json_option
def command(
    run: str, sample_id: str | None, repeat: int | None, store_url: str | None, as_json: bool
) -> None:
    """Show a RUN: what needs a person first, then the decision, gates, figures and cost.

    RUN is a run's id, the beginning of one, or `last`. Where people have reviewed samples, it tells
    how the judges stand with them so far. With --sample it shows all that is stored of
    one sample: what was asked, what was answered, and every word of the judges.

    \b
    Examples:
      jurybox show last
      jurybox show 20260301-0914 --json
      jurybox show last --sample q17 --repeat 2
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.wiring.stores import find_run

    if repeat is not None and sample_id is None:
        raise click.UsageError("--repeat is of use with --sample only")
    with opened(store_url) as store:
        row = find_run(store, run)
        if sample_id is not None:
            from jurybox.cli.sample_view import print_record
            from jurybox.reporting.sample_record import find_record, record_as_data

            record = find_record(store, row, sample_id, repeat)
            if as_json:
                print_json(record_as_data(record, row))
            else:
                print_record(record, row)
            return
        from jurybox.cli.ending import print_view, view_as_data
        from jurybox.wiring.viewing import view_run

        view = view_run(row, store)
        if as_json:
            print_json(view_as_data(view, store))
        else:
            print_view(view, store, metadata=True)
