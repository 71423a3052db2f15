"""``jurybox doctor``."""

from itertools import groupby
from typing import Final

import click
import msgspec

from jurybox.app.diagnosis import Diagnosis, diagnose
from jurybox.cli.options import json_option
from jurybox.cli.output import plain, print_line, print_result
from jurybox.cli.signals import BAD_INPUT, FINE
from jurybox.text_format import counted

_MARKS: Final = {"fine": ("ok", "green"), "absent": ("-", "dim"), "broken": ("no", "bold red")}


@click.command("doctor")
@json_option
def command() -> int:
    """Check what is installed, configured and reachable, and how to get what is missing.

    No model is called, and no key is shown. The exit code is 2 if a setting is unusable.

    \b
    Examples:
      jurybox doctor
      jurybox doctor --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    found = diagnose()
    data = msgspec.to_builtins(found) | {"broken": found.is_broken}
    print_result(data, lambda: _print(found))
    return BAD_INPUT if found.is_broken else FINE


def _print(found: Diagnosis) -> None:
    machine = found.machine
    parts = [f"jurybox {machine['jurybox']}", str(machine["python"]), str(machine["platform"])]
    parts.append(counted(int(machine["cores"]), "core"))
    if "memory_bytes" in machine:
        parts.append(f"{int(machine['memory_bytes']) / 2**30:.0f} GiB of memory")
    print_line(", ".join(parts))
    for about, findings in groupby(found.findings, lambda finding: finding.about):
        print_line(about, style="bold")
        for each in findings:
            text = f"{each.value}: {each.hint}" if each.hint else each.value
            print_line("  ", plain(*_MARKS[each.state]), f"  {each.name}  {text}")
