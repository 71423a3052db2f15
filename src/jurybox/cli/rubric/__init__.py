"""``jurybox rubric``: work on rubric documents."""

import click

from jurybox.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "list": ("jurybox.cli.rubric.list", "List the rubrics that can be called by name."),
        "show": ("jurybox.cli.rubric.show", "Show one rubric."),
        "check": ("jurybox.cli.rubric.check", "Check documents and print all findings."),
        "new": ("jurybox.cli.rubric.new", "Start a new document."),
    },
)
def command() -> None:
    """Work on rubric documents.

    \b
    Examples:
      jurybox rubric list
      jurybox rubric show general
      jurybox rubric check rubrics/*.md
      jurybox rubric new support-answers
    """  # noqa: D301 - click reads \b as "keep these lines"
