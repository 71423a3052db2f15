"""``jurybox model path``."""

import click

from jurybox.cli.output import json_option, print_json
from jurybox.models.local.files import find_model, locate
from jurybox.wiring import models_folder


@click.command("path")
@click.argument("name")
@json_option
def command(name: str, as_json: bool) -> None:
    """Print where the file of the model NAME is, if it is there and undamaged.

    \b
    Examples:
      jurybox model path qwen2.5-coder-1.5b
      jurybox model path smollm2-135m --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    entry = find_model(name)
    file = locate(entry.name, models_folder())
    if as_json:
        data = {"name": entry.name, "file": str(file.path), "bytes": entry.bytes}
        print_json(data | {"sha256": file.sha256})
    else:
        click.echo(str(file.path))
