"""What commands print: JSON for machines, tables for people."""

import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from rich.console import Console

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output, and nothing else there."
)


def print_json(data: object) -> None:
    """Print data as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(data), indent=2))


def on_terminal() -> bool:
    """Tell whether a person is looking at standard output."""
    return sys.stdout.isatty()


def styled(text: str, **style: Any) -> str:  # noqa: ANN401 - whatever click.style takes
    """Return text with colours for a terminal, unless the user wants none."""
    return click.style(text, **style) if read_settings().color else text


def console() -> "Console":
    """Return the terminal; rich is slow to import, so only who draws pays for it."""
    from rich.console import Console

    color = "auto" if read_settings().color else None
    return Console(highlight=False, color_system=color)
