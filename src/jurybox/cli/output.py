"""The output of commands: JSON for programs, tables for users, lines on standard error."""

import contextlib
import sys
from collections.abc import Container, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click
import msgspec

from jurybox.errors import InputError
from jurybox.text_format import visible, visible_json
from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_WIDE: Final = 240


def print_json(data: object) -> None:
    """Print data as indented JSON; characters that can't be seen are written as escapes."""
    text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    click.echo(visible_json(text))


@contextlib.contextmanager
def output_file(name: str) -> "Generator[BinaryIO]":
    """Open the file to write, which is replaced when complete; ``-`` is standard output."""
    from jurybox.reporting.output_file import whole_file

    if name == "-":
        yield sys.stdout.buffer
    else:
        with whole_file(Path(name)) as file:
            yield file


def write_new_files(place: Path, texts: Mapping[str, str]) -> None:
    """Write all files, by their names in a folder, or none if one is there with another text."""
    written: list[Path] = []
    try:
        there = {name: (place / name).read_bytes() for name in texts if (place / name).exists()}
        other = [str(place / name) for name, data in there.items() if data != texts[name].encode()]
        if other:
            problem = "the file exists" if len(other) == 1 else "the files exist"
            raise InputError(problem, "name another place", ", ".join(other))
        place.mkdir(parents=True, exist_ok=True)
        for name in texts.keys() - there.keys():
            # "x", because a file may have appeared in the meantime.
            with (place / name).open("x", encoding="utf-8", newline="") as file:
                written.append(place / name)
                file.write(texts[name])
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        reason = (error.strerror or str(error)).lower()
        where = str(error.filename or place)
        raise InputError(f"can't be written ({reason})", "choose another place", where) from None


def say(line: str) -> None:
    """Print one line on standard error, next to the result."""
    # Python has no standard error at all where it was closed. Not with click, which would write
    # past a progress bar that is being drawn.
    if sys.stderr is not None:
        # The work continues when the line can't be written.
        with contextlib.suppress(OSError):
            print(" ".join(harmless(line).split("\n")), file=sys.stderr, flush=True)  # noqa: T201


def harmless(text: str) -> str:
    """Return text without terminal commands and hidden characters, of which datasets are full."""
    return visible(text, kept="\n\t")


def styled(text: str, **style: Any) -> str:  # noqa: ANN401 - whatever click.style takes
    """Return text with colors for a terminal, unless the user wants none."""
    return click.style(text, **style) if read_settings().color else text


def plain(text: str, style: str = "") -> "Text":
    """Return harmless text for a table or a console."""
    from rich.text import Text

    return Text(harmless(text), style=style)


def table(*headings: str, right: Container[str] = ()) -> "Table":
    """Return an empty table; the columns named in ``right`` are aligned to the right."""
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        side = "right" if heading in right else "left"
        made.add_column(plain(heading), overflow="fold", justify=side)
    return made


def add_row(to: "Table", *cells: "str | Text", style: str = "") -> None:
    """Add a row of harmless text to a table."""
    to.add_row(*(plain(cell, style) if isinstance(cell, str) else cell for cell in cells))


def console(*, stderr: bool = False) -> "Console":
    """Return the terminal; rich is imported only by commands that draw."""
    from rich.console import Console

    color = "auto" if read_settings().color else None
    return Console(highlight=False, color_system=color, stderr=stderr)


def wide_console() -> "Console":
    """Return the terminal for wide tables, which are not wrapped in a file or a pipe."""
    out = console()
    if not out.is_terminal:
        out.width = _WIDE
    return out
