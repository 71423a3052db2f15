"""``jurybox export``."""

from pathlib import Path

import click

from jurybox.app.gold_sets import gold_rows
from jurybox.app.review_desk import ReviewDesk
from jurybox.cli.options import option, stored_run
from jurybox.cli.output import check_output, output_file, print_written, say
from jurybox.engine.records import RunRow
from jurybox.errors import InputError
from jurybox.reporting.export_rows import (
    export_parts,
    export_run,
    export_writer,
    write_json_lines,
)
from jurybox.reporting.stored import plan_of
from jurybox.storage.store import Store


@click.command("export")
@option(
    "-o, --output FILE",
    "Where to write: a .jsonl, .csv or .parquet file; FOLDER/ for several Parquet files; - for"
    " JSON Lines on standard output.",
    required=True,
)
@option(
    "--gold", "Write only the reviewed samples, as a dataset with human labels for `calibrate`."
)
@option("--raw", "Add every stored request and reply.")
@stored_run
def command(store: Store, run: RunRow, output: str, gold: bool, raw: bool) -> None:
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
    check_output(output)
    if gold and raw:
        raise click.UsageError("--gold and --raw exclude each other")
    if gold:
        rows = _export_gold(store, run, output)
    elif output.endswith("/"):
        rows = export_parts(store, run, Path(output), raw=raw)
    else:
        write = write_json_lines if output == "-" else export_writer(output)
        with output_file(output) as file:
            rows = export_run(store, run, file, write, raw=raw)
    planned, finished = plan_of(run).samples, run.status == "finished"
    if not gold and (not finished or rows != planned):
        state = "damaged" if finished else "not finished"
        say(f"run {run.id} is {state}: {rows} of {planned} samples are stored")
    print_written(output, rows, "row")


def _export_gold(store: Store, run: RunRow, output: str) -> int:
    """Write the reviewed samples; return how many there are."""
    if output != "-" and not output.lower().endswith(".jsonl"):
        raise InputError("gold is written as JSON Lines", "end the name with .jsonl", output)
    rows, notes = gold_rows(ReviewDesk(store, run))
    with output_file(output) as file:
        write_json_lines(file, {}, rows)
    for note in notes:
        say(note)
    return len(rows)
