"""``jurybox rubric show``."""

import re

import click

from jurybox.cli.output import console, json_option, on_terminal, print_json
from jurybox.rubric import render_rubric
from jurybox.rubric.plain import rubric_as_data
from jurybox.wiring import rubric_files

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


@click.command("show")
@click.argument("name")
@click.option("--canonical", is_flag=True, help="Print the document in its canonical form.")
@json_option
def command(name: str, canonical: bool, as_json: bool) -> None:
    """Show the rubric NAME: a bundled one, one of your folder, or the path of a document.

    On a terminal the document is laid out for reading; into a file or a pipe it goes as it is. With
    --canonical or --json, a document that extends another one is shown as the two make it together.

    \b
    Examples:
      jurybox rubric show general
      jurybox rubric show general > my-rubric.md
      jurybox rubric show rubrics/support.md --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    if canonical and as_json:
        raise click.UsageError("--canonical and --json exclude each other")
    files = rubric_files()
    file = files.read(name)
    rubric = files.parse(file)
    if as_json:
        print_json(rubric_as_data(rubric))
    elif canonical:
        click.echo(render_rubric(rubric), nl=False)
    elif on_terminal():
        from rich.markdown import Markdown

        text = "\n".join(file.data.decode("utf-8-sig").splitlines())
        console().print(Markdown(_FRONT_MATTER.sub(r"```yaml\n\1```\n", text, count=1)))
    else:
        click.echo(file.data, nl=False)
