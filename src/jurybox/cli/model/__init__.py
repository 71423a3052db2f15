"""``jurybox model``: embedded models on this machine."""

import click

from jurybox.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "pull": ("jurybox.cli.model.pull", "Download a model, and check every byte of it."),
        "list": ("jurybox.cli.model.list", "List the models of the catalog."),
        "path": ("jurybox.cli.model.path", "Print where the file of a model is."),
        "remove": ("jurybox.cli.model.remove", "Remove a model from this machine."),
    },
)
def command() -> None:
    """Manage embedded models, which judge on this machine without a key or a network.

    \b
    Examples:
      jurybox model list
      jurybox model pull
      jurybox model path smollm2-135m
      jurybox model remove smollm2-135m
    """  # noqa: D301 - click reads \b as "keep these lines"
