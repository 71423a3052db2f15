"""``jurybox export``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jurybox.cli.output import json_option, print_json, say
from jurybox.cli.stores import opened, run_argument, store_option
from jurybox.errors import InputError

if TYPE_CHECKING:
    from jurybox.reporting.export_rows import Exported


@click.command("export")
@run_argument
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="Where to write, as .jsonl, .csv or .parquet; - for JSON Lines on standard output.",
)
@click.option(
    "--gold",
    is_flag=True,
    help="Write only what people have reviewed, as a dataset with their labels, for calibrate.",
)
@click.option("--raw", is_flag=True, help="Add every request and reply, as they are stored.")
@store_option
@json_option
def command(
    run: str, output: str, gold: bool, raw: bool, store_url: str | None, as_json: bool
) -> None:
    """Write the samples of a RUN to a file, one row a sample and repeat.

    RUN is a run's id, the beginning of one, or `last`. A row has the sample's texts, its scores and
    measures, what the judges said, flags, and the hash of its record. In CSV and Parquet, lists and
    objects are JSON texts; in CSV, nulls are empty cells. Parquet needs the extra jurybox[parquet].
    A run that isn't finished is written as far as it is. A file that is there is replaced.

    Texts are written exactly as they are. A cell of a CSV file may begin with = + - or @, and a
    spreadsheet would take it for a formula: import such columns as text.

    With --gold it is a dataset of the samples that people have reviewed, as JSON Lines, with `gold`
    or `gold_winner` by reviewer. `jurybox calibrate --gold` reads it.

    \b
    Examples:
      jurybox export last -o samples.jsonl
      jurybox export last --gold -o gold.jsonl
      jurybox export 20260301-0914 -o samples.parquet --raw
      jurybox export last -o - | jq 'select(.passed == false) | .id'
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.reporting.export_rows import export_run, export_writer, write_json_lines
    from jurybox.reporting.output_file import whole_file
    from jurybox.wiring import find_run

    to_stdout = output == "-"
    if to_stdout and as_json:
        raise click.UsageError("--json and --output - exclude each other")
    if gold and raw:
        raise click.UsageError("--gold and --raw exclude each other")
    if gold:
        _export_gold(run, output, store_url, as_json=as_json)
        return
    write = write_json_lines if to_stdout else export_writer(output)
    with opened(store_url) as store:
        row = find_run(store, run)
        if to_stdout:
            exported = export_run(store, row, sys.stdout.buffer, write, raw=raw)
        else:
            with whole_file(Path(output)) as file:
                exported = export_run(store, row, file, write, raw=raw)
    if not exported.complete:
        say(_what_is_missing(row.id, exported))
    if as_json:
        print_json({"written": output, "rows": exported.rows})
    elif not to_stdout:
        say(f"wrote {output}: {exported.rows} {'row' if exported.rows == 1 else 'rows'}")


def _export_gold(run: str, output: str, store_url: str | None, *, as_json: bool) -> None:
    from jurybox.app.gold_sets import gold_rows
    from jurybox.app.review_desk import ReviewDesk
    from jurybox.reporting.export_rows import write_json_lines
    from jurybox.reporting.output_file import whole_file
    from jurybox.wiring import find_run

    to_stdout = output == "-"
    if not to_stdout and not output.lower().endswith(".jsonl"):
        raise InputError("gold is written as JSON Lines", "end the name with .jsonl", output)
    with opened(store_url) as store:
        found = gold_rows(ReviewDesk(store, find_run(store, run)))
    if to_stdout:
        write_json_lines(sys.stdout.buffer, (), found.rows)
    else:
        with whole_file(Path(output)) as file:
            write_json_lines(file, (), found.rows)
    for count, what in (
        (found.open, "made with the judges' verdict in sight"),
        (found.unlabeled, "that no reviewer could judge"),
        (found.unanswered, "without a response"),
    ):
        if count:
            one = "review" if what.startswith("made") else "sample"
            say(f"left out: {count} {one if count == 1 else f'{one}s'} {what}")
    rows = len(found.rows)
    if as_json:
        print_json({"written": output, "rows": rows})
    elif not to_stdout:
        say(f"wrote {output}: {rows} {'row' if rows == 1 else 'rows'}")


def _what_is_missing(run_id: str, exported: "Exported") -> str:
    head = f"run {run_id} is not finished" if not exported.finished else f"run {run_id} is damaged"
    return f"{head}: {exported.rows} of {exported.planned} samples are there"
