"""``jurybox doctor``."""

from typing import TYPE_CHECKING, Final

import click
import msgspec

from jurybox.cli.options import json_option
from jurybox.cli.output import add_row, plain, print_json, wide_console
from jurybox.cli.signals import BAD_INPUT, FINE

if TYPE_CHECKING:
    from jurybox.app.diagnosis import Diagnosis

_MARKS: Final = {"fine": ("ok", "green"), "absent": ("-", "dim"), "broken": ("no", "bold red")}


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Check what is installed, configured and reachable, and how to get what isn't.

    No model is called, and no key is shown. The exit code is 2 where something that a setting names
    can't be used.

    \b
    Examples:
      jurybox doctor
      jurybox doctor --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    from jurybox.app.diagnosis import diagnose

    found = diagnose()
    if as_json:
        print_json(msgspec.to_builtins(found) | {"broken": found.is_broken})
    else:
        _print(found)
    return BAD_INPUT if found.is_broken else FINE


def _print(found: "Diagnosis") -> None:
    from rich.table import Table

    out = wide_console()
    out.print(plain(_machine(found.machine)))
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1))
    for _ in range(4):
        table.add_column(overflow="fold")
    about = ""
    for finding in found.findings:
        mark, style = _MARKS[finding.state]
        heading = finding.about if finding.about != about else ""
        about = finding.about
        text = f"{finding.value}: {finding.hint}" if finding.hint else finding.value
        add_row(table, plain(heading, "bold"), plain(mark, style), finding.name, text)
    out.print(table)


def _machine(machine: dict[str, str | int]) -> str:
    parts = [f"jurybox {machine['jurybox']}", str(machine["python"]), str(machine["platform"])]
    cores = machine["cores"]
    parts.append(f"{cores} core{'' if cores == 1 else 's'}")
    if "memory_bytes" in machine:
        parts.append(f"{int(machine['memory_bytes']) / 2**30:.0f} GiB of memory")
    return ", ".join(parts)
