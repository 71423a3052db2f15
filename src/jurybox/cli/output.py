"""The output of commands: JSON for programs, tables for users, and lines on standard error."""

import contextlib
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click
import msgspec

from jurybox.errors import InputError
from jurybox.settings import NO_COLOR
from jurybox.text_format import counted, visible, visible_json
from jurybox.wiring import setting

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_JSON: Final = "jurybox.json"
_WIDE: Final = 240
_LONGEST_NAME: Final = 40
_DIGIT: Final = re.compile("[0-9]")
_ONE: Final = r"[-+]?[<$]? ?[0-9][0-9.,]*(?:%| points?| ms)?"
_NUMBER: Final = re.compile(f"|[-.]|none|unknown|yes|no|{_ONE}(?: (?:to|of|->) {_ONE})?")
"""Matches the cells of a numeric column."""


def remember_json(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Remember whether the command prints JSON."""
    ctx.meta[_JSON] = wanted


def wants_json() -> bool:
    """Return whether the command prints JSON."""
    return click.get_current_context().meta.get(_JSON, False)


def print_result(data: object, show: Callable[[], object]) -> None:
    """Print a command's result: its data with ``--json``, otherwise by calling ``show``.

    ``data`` may be a function that returns the data, if it takes time.
    """
    if wants_json():
        print_json(data() if callable(data) else data)
    else:
        show()


def print_json(data: object) -> None:
    """Print data as indented JSON; characters that can't be seen are written as escapes."""
    text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    click.echo(visible_json(text))


@contextlib.contextmanager
def output_file(name: str) -> "Generator[BinaryIO]":
    """Open an output file, which replaces an older one when complete; ``-`` is standard output."""
    from jurybox.reporting.output_file import whole_file

    if name == "-":
        yield sys.stdout.buffer
    else:
        with whole_file(Path(name)) as file:
            yield file


def check_output(name: str | None) -> None:
    """Refuse standard output for both a file and JSON."""
    if name == "-" and wants_json():
        raise click.UsageError("--json and --output - exclude each other")


def print_written(name: str, count: int, noun: str) -> None:
    """Print which file was written, and how much it contains; nothing after standard output."""
    line = f"wrote {name}: {counted(count, noun)}"
    print_result({"written": name, "rows": count}, lambda: say(line) if name != "-" else None)


def write_new_files(place: Path, texts: Mapping[str, str]) -> None:
    """Write all files into a folder, or none if one exists with different contents."""
    written: list[Path] = []
    try:
        there = {name: (place / name).read_bytes() for name in texts if (place / name).exists()}
        other = [str(place / name) for name, data in there.items() if data != texts[name].encode()]
        if other:
            problem = "the file exists" if len(other) == 1 else "the files exist"
            raise InputError(problem, "choose another place", ", ".join(other))
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
    """Print one line on standard error."""
    # `sys.stderr` is None if standard error was closed. Click isn't used, since it would garble a
    # progress bar.
    if sys.stderr is not None:
        # The work continues even if the line can't be written.
        with contextlib.suppress(OSError):
            print(" ".join(harmless(line).split("\n")), file=sys.stderr, flush=True)  # noqa: T201


def harmless(text: str) -> str:
    """Return text without terminal commands and hidden characters."""
    return visible(text, kept="\n\t")


def plain(text: str, style: str = "") -> "Text":
    """Return text for a line or a table, without terminal commands and hidden characters."""
    from rich.text import Text

    return Text(harmless(text), style=style)


def print_line(*parts: "str | Text", style: str = "", wrap: bool = True) -> None:
    """Print harmless text on one line; set ``wrap`` to False for text to be copied."""
    from rich.text import Text

    made = Text(style=style)
    for part in parts:
        made.append_text(plain(part) if isinstance(part, str) else part)
    console().print(made, soft_wrap=not wrap)


def print_heading(text: "str | Text") -> None:
    """Print an empty line, and a line in bold."""
    print_line()
    print_line(text, style="bold")


def print_table(headings: Sequence[str], rows: "Iterable[Iterable[str | Text]]") -> None:
    """Print rows of harmless text below their headings, with numbers aligned to the right."""
    from rich.table import Table

    cells = [[plain(each) if isinstance(each, str) else each for each in row] for row in rows]
    made = Table(box=None, pad_edge=False, header_style="bold")
    for at, heading in enumerate(headings):
        column = [row[at].plain for row in cells if at < len(row)]
        numbers = any(map(_DIGIT.search, column)) and all(map(_NUMBER.fullmatch, column))
        side = "right" if at and numbers else "left"
        # The name of a row is never shortened, even on a narrow terminal.
        is_name = not at and max(map(len, column), default=0) <= _LONGEST_NAME
        made.add_column(plain(heading), overflow="fold", justify=side, no_wrap=is_name)
    for row in cells:
        made.add_row(*row)
    console().print(made)


def yes_or_no(value: bool | None) -> "Text":
    """Return whether something passes, as a colored yes, no or dash."""
    return plain(*{True: ("yes", "green"), False: ("no", "red"), None: ("-", "")}[value])


def console(*, stderr: bool = False) -> "Console":
    """Return the console; a file or a pipe gets a fixed width, wider than most terminals."""
    # Imported here, because only commands that draw need it.
    from rich.console import Console

    color = None if setting(NO_COLOR) else "auto"
    made = Console(highlight=False, color_system=color, stderr=stderr)
    if not made.is_terminal:
        made.width = _WIDE
    return made
