"""``jurybox model list``."""

from typing import TYPE_CHECKING, Any

import click

from jurybox.cli.output import json_option, print_json, wide_console
from jurybox.models.local.files import InstalledModel, default_judge, format_bytes, installed
from jurybox.wiring import models_folder

if TYPE_CHECKING:
    from pathlib import Path


@click.command("list")
@json_option
def command(as_json: bool) -> None:
    """List the models of the catalog, and what there is of each on this machine.

    \b
    Examples:
      jurybox model list
      jurybox model list --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    folder = models_folder()
    kept = installed(folder)
    if as_json:
        print_json({"folder": str(folder), "models": [_as_data(each) for each in kept]})
    else:
        _print(kept, folder)


def _as_data(kept: InstalledModel) -> dict[str, Any]:
    entry = kept.entry
    return {
        "name": entry.name,
        "aliases": list(entry.aliases),
        "bytes": entry.bytes,
        "sha256": entry.sha256,
        "license": entry.license,
        "good_for": entry.good_for,
        "judge": entry.judge,
        "default": entry == default_judge(),
        "state": kept.state,
        "file": None if kept.state == "absent" else str(kept.path),
        "bytes_here": kept.bytes,
    }


def _print(kept: tuple[InstalledModel, ...], folder: "Path") -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("model", "size", "here", "license", "good for"):
        table.add_column(heading, overflow="fold")
    for each in kept:
        entry = each.entry
        here = _shown_state(each)
        size = format_bytes(entry.bytes)
        cells = [entry.name, size, here, entry.license, entry.good_for]
        table.add_row(*(Text(cell) for cell in cells))
    wide_console().print(table)
    click.echo(f"\nkept in {folder}")


def _shown_state(kept: InstalledModel) -> str:
    match kept.state:
        case "ready":
            return "yes"
        case "unchecked":
            return "yes, unchecked"
        case "partial":
            return f"{format_bytes(kept.bytes)} of it"
        case "damaged":
            return "damaged"
        case "absent":
            return "no"
