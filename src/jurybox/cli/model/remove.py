"""``jurybox model remove``."""

import click

from jurybox.cli.output import json_option, print_json
from jurybox.models.local.files import find_model, format_bytes, remove
from jurybox.wiring import models_folder


@click.command("remove")
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Remove the model NAME from this machine, or what an interrupted pull has left of it.

    \b
    Examples:
      jurybox model remove smollm2-135m
      jurybox model remove smollm2-135m --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    entry = find_model(name)
    freed = remove(entry, models_folder())
    if as_json:
        print_json({"name": entry.name, "bytes_freed": freed})
    else:
        click.echo(f"removed {entry.name}, which frees {format_bytes(freed)}")
