"""``jurybox export``."""

from pathlib import Path

import click

from jurybox.app.gold_sets import gold_rows
from jurybox.app.review_desk import ReviewDesk
from jurybox.cli.options import json_option, opened_run, run_argument, store_option
from jurybox.cli.output import output_file, print_json, say
from jurybox.errors import InputError
from jurybox.reporting.export_rows import (
    export_parts,
    export_run,
    export_writer,
    write_json_lines,
)
from jurybox.reporting.stored import plan_of
from jurybox.text_format import counted


@click.command("export")
@run_argument
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FILE",
    help="Where to write: a .jsonl, .csv or .parquet file; FOLDER/ for several Parquet files; - for"
    " JSON Lines on standard output.",
)
@click.option(
    "--gold",
    is_flag=True,
    help="Write only the reviewed samples, as a dataset with human labels for `calibrate`.",
)
@click.option("--raw", is_flag=True, help="Add every stored request and reply.")
@store_option
@json_option
def command(run: str, output: str, gold: bool, raw: bool, as_json: bool) -> None:
    """Write the samples of a RUN to a file, one row per sample and repeat.

    RUN is a run's id, its name, a tag, or `last`. A row has the sample's texts, its scores and
    measures, the judges' replies, flags, and the hash of its record. In CSV and Parquet, lists and
    objects are JSON strings; in CSV, nulls are empty cells. Parquet needs the extra
    jurybox[parquet]. For an unfinished run, only finished samples are written. An existing file is
    replaced.

    Texts are written unchanged; JSON Lines escape invisible characters, which any reader decodes.
    In CSV only, text that a spreadsheet would read as a formula gets an apostrophe before it.

    With --gold the file is a dataset of the reviewed samples, as JSON Lines, with `gold` or
    `gold_winner` by reviewer. `jurybox calibrate --gold` reads it.

    \b
    Examples:
      jurybox export last -o samples.jsonl
      jurybox export last --gold -o gold.jsonl
      jurybox export 20260301-0914 -o samples.parquet --raw
      jurybox export last -o samples/
      jurybox export last -o - | jq 'select(.passed == false) | .id'
    """  # noqa: D301 - click reads \b as "keep these lines"
    to_stdout = output == "-"
    if to_stdout and as_json:
        raise click.UsageError("--json and --output - exclude each other")
    if gold and raw:
        raise click.UsageError("--gold and --raw exclude each other")
    if gold:
        _export_gold(run, output, as_json=as_json)
        return
    to_folder = output.endswith("/")
    write = write_json_lines if to_stdout or to_folder else export_writer(output)
    with opened_run(run) as (store, row):
        if to_folder:
            rows = export_parts(store, row, Path(output), raw=raw)
        else:
            with output_file(output) as file:
                rows = export_run(store, row, file, write, raw=raw)
    planned, finished = plan_of(row).samples, row.status == "finished"
    if not finished or rows != planned:
        state = "damaged" if finished else "not finished"
        say(f"run {row.id} is {state}: {rows} of {planned} samples are stored")
    _report_written(output, rows, as_json=as_json)


def _report_written(output: str, rows: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"written": output, "rows": rows})
    elif output != "-":
        say(f"wrote {output}: {counted(rows, 'row')}")


def _export_gold(run: str, output: str, *, as_json: bool) -> None:
    if output != "-" and not output.lower().endswith(".jsonl"):
        raise InputError("gold is written as JSON Lines", "end the name with .jsonl", output)
    with opened_run(run) as (store, row):
        found = gold_rows(ReviewDesk(store, row))
    with output_file(output) as file:
        write_json_lines(file, {}, found.rows)
    for count, noun, why in (
        (found.open, "review", "made after seeing the judges' verdict"),
        (found.unlabeled, "sample", "that no reviewer could judge"),
        (found.unanswered, "sample", "without a response"),
    ):
        if count:
            say(f"left out: {counted(count, noun)} {why}")
    _report_written(output, len(found.rows), as_json=as_json)
