"""``jurybox report``."""

import click

from jurybox.app.view_run import report_parts, view_run
from jurybox.cli.options import at_store, option, stored_run
from jurybox.cli.output import check_output, output_file, print_written, say
from jurybox.engine.records import RunRow
from jurybox.reporting.reports import report_format, write_report
from jurybox.storage.store import Store


@click.command("report")
@option(
    "-o, --output FILE",
    "Where to write, as .html, .md, .json or .junit.xml; - for Markdown on standard output.",
    required=True,
)
@stored_run
def command(store: Store, run: RunRow, output: str) -> None:
    """Write a report on a RUN: the verdict first, then why, then what to look at.

    RUN is a run's id, its name, a tag, or `last`. The HTML report is one file for any browser:
    it loads nothing else, contains the samples, is searchable, and prints well. In JUnit XML every
    gate and every sample is a test case, for a build server. A report on an unfinished run says so.
    An existing file is replaced. The exit code is always 0; use `jurybox gate` to fail a build.

    \b
    Examples:
      jurybox report last -o report.html
      jurybox report last -o report.md
      jurybox report 20260301-0914 -o results.junit.xml
      jurybox report last -o -
    """  # noqa: D301 - click reads \b as "keep these lines"
    check_output(output)
    form = "md" if output == "-" else report_format(output)
    view = view_run(run, store)
    more = report_parts(view, store, form)
    with output_file(output) as file:
        written = write_report(file, form, view, store, more)
    have = view.summary["samples"]
    if view.status != "finished":
        say(f"run {run.id} is not finished: {have} of {view.planned} samples are stored")
    if written < have:
        say(f"only the worst {written:,} of {have:,} samples fit into one file that browsers open")
        serve, export = (f"`jurybox {each}{at_store()}`" for each in ("serve", f"export {run.id}"))
        say(f"{serve} shows all of them, and {export} with `-o FILE` writes them")
    print_written(output, written, "sample")
