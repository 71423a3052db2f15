"""What commands print: JSON for machines, tables for people, and lines beside them."""

import contextlib
import re
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# What a terminal obeys, and what turns the order of letters around; tabs and line ends are fine.
_COMMANDS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_WIDE: Final = 240

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


def harmless(text: str) -> str:
    """Return text that a terminal shows and doesn't obey: models and datasets may send commands."""
    return _COMMANDS.sub("\ufffd", text)


def plain(text: str, style: str = "") -> "Text":
    """Return harmless text for a table or a console."""
    from rich.text import Text

    return Text(harmless(text), style=style)


def say(line: str) -> None:
    """Say one line beside the result, on standard error."""
    # Python has no standard error at all where it was closed. Not with click, which would write
    # past a progress bar that is being drawn.
    if sys.stderr is not None:
        # Where nobody listens, the work still goes on.
        with contextlib.suppress(OSError):
            print(" ".join(harmless(line).split("\n")), file=sys.stderr, flush=True)  # noqa: T201


def console(*, stderr: bool = False) -> "Console":
    """Return the terminal; rich is slow to import, so only who draws pays for it."""
    from rich.console import Console

    color = "auto" if read_settings().color else None
    return Console(highlight=False, color_system=color, stderr=stderr)


def wide_console() -> "Console":
    """Return the terminal for tables with long names, which a file or a pipe gets unbroken."""
    out = console()
    if not out.is_terminal:
        out.width = _WIDE
    return out
