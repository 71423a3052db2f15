"""``jurybox rubric``: list, show, check and start rubric documents."""

import re
import sys
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Final

import click

from jurybox.cli.options import CommandGroup, json_option, option
from jurybox.cli.output import (
    check_output,
    console,
    plain,
    print_json,
    print_line,
    print_result,
    print_table,
    wants_json,
    write_new_files,
)
from jurybox.cli.signals import BAD_INPUT, FINE
from jurybox.errors import InputError
from jurybox.rubric import Reading, parse_rubric, parse_rubric_id, render_rubric
from jurybox.rubric.document.render import rubric_as_data
from jurybox.rubric_files import checked_as_data, listed_as_data
from jurybox.wiring import rubric_files

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)


@click.group(cls=CommandGroup)
def command() -> None:
    """Work on rubric documents.

    \b
    Examples:
      jurybox rubric list
      jurybox rubric show general
      jurybox rubric check rubrics/*.md
      jurybox rubric new support-answers
    """  # noqa: D301 - click reads \b as "keep these lines"


@command.command("list", short_help="List the rubrics that can be used by name.")
@json_option
def list_rubrics() -> None:
    """List the rubrics that can be used by name.

    These are the bundled ones and the *.md files in your rubric folder (`rubrics`, or the one set
    in JURYBOX_RUBRICS).

    \b
    Examples:
      jurybox rubric list
      jurybox rubric list --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    named = rubric_files().every()
    data = {"rubrics": [listed_as_data(*each) for each in named]}
    print_result(data, lambda: _print_listed(named))


def _print_listed(named: Iterable[tuple[str, str | None, Reading]]) -> None:
    rows: list[tuple[str, ...]] = []
    for name, file, reading in named:
        cells = ["-", "-", f"findings: {len(reading.findings)}"]
        if reading.rubric is not None:
            criteria = ", ".join(criterion.id for criterion in reading.rubric.criteria)
            if reading.bases:
                criteria = f"as in {reading.bases[0]}: {criteria}"
            cells = [reading.rubric.version, str(reading.rubric.scale), criteria]
        rows.append((name, *cells, file or "bundled"))
    print_table(("rubric", "version", "scale", "criteria", "where"), rows)


@command.command("show", short_help="Show one rubric.")
@click.argument("name")
@option("--canonical", "Print the document in its canonical form.")
@json_option
def show_rubric(name: str, canonical: bool) -> None:
    """Show the rubric NAME: a bundled one, one in your rubric folder, or a path.

    A terminal shows the document formatted; a file or a pipe gets its exact text. With --canonical
    or --json, a document that extends another one is shown with what it inherits.

    \b
    Examples:
      jurybox rubric show general
      jurybox rubric show general > my-rubric.md
      jurybox rubric show rubrics/support.md --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    if canonical and wants_json():
        raise click.UsageError("--canonical and --json exclude each other")
    files = rubric_files()
    file = files.read(name)
    rubric = files.parse(file)
    if wants_json():
        print_json(rubric_as_data(rubric))
    elif canonical:
        click.echo(render_rubric(rubric), nl=False)
    elif sys.stdout.isatty():
        from rich.markdown import Markdown

        text = "\n".join(file.data.decode("utf-8-sig").splitlines())
        console().print(Markdown(_FRONT_MATTER.sub(r"```yaml\n\1```\n", text, count=1)))
    else:
        click.echo(file.data, nl=False)


@command.command("check", short_help="Check documents and print all findings.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@json_option
def check_rubrics(files: tuple[str, ...]) -> int:
    """Check each FILE and print all findings: line, column, what is wrong and how to fix it.

    A FILE is a path, the name of a rubric, or - for standard input. The exit code is 0 if every
    document is valid and 2 otherwise.

    \b
    Examples:
      jurybox rubric check support-answers.md
      jurybox rubric check rubrics/*.md --json
      cat draft.md | jurybox rubric check -
    """  # noqa: D301 - click reads \b as "keep these lines"
    known = rubric_files()
    readings = [known.reading(name) for name in files]
    faulty = [origin for origin, reading in readings if reading.rubric is None]
    data = {"ok": not faulty, "documents": [checked_as_data(*each) for each in readings]}
    print_result(data, lambda: [_print_checked(*each) for each in readings])
    if faulty and len(readings) > 1 and not wants_json():
        click.echo(f"{len(faulty)} of {len(readings)} documents have findings", err=True)
    return BAD_INPUT if faulty else FINE


def _print_checked(origin: str, reading: Reading) -> None:
    rubric = reading.rubric
    if rubric is not None:
        count = len(rubric.criteria)
        criteria = "1 criterion" if count == 1 else f"{count} criteria"
        extends = f", extends {', '.join(reading.bases)}" if reading.bases else ""
        rest = f", {rubric.id} {rubric.version}, {criteria}{extends}"
        print_line(f"{origin}: ", plain("ok", "green"), rest, wrap=False)
    # On a terminal, two short lines read more easily; programs expect one line per finding.
    between = "\n    " if sys.stdout.isatty() else "; "
    for each in reading.findings:
        place = f":{each.line}:{each.column}" if each.line else ""
        where, problem = plain(f"{origin}{place}: ", "bold"), plain(each.problem, "red")
        print_line(where, problem, f"{between}{each.hint} [{each.code}]", wrap=False)


@command.command("new", short_help="Start a new document.")
@click.argument("name")
@option(
    "-o, --output FILE",
    "Where to write it, - for standard output; defaults to NAME.md in this folder.",
)
@json_option
def new_rubric(name: str, output: str | None) -> None:
    """Write a new rubric document called NAME, complete and ready to edit.

    An existing file is never overwritten. To start from another rubric, name it in the new one as
    `extends: NAME`, or copy what `jurybox rubric show NAME` prints.

    \b
    Examples:
      jurybox rubric new support-answers
      jurybox rubric new our-reviews -o rubrics/our-reviews.md
    """  # noqa: D301 - click reads \b as "keep these lines"
    check_output(output)
    rubric_id = parse_rubric_id(name)
    if rubric_id in rubric_files().bundled():
        hint = f"choose another name, and extend it: `extends: {rubric_id}`"
        raise InputError("this is the name of a bundled rubric", hint, rubric_id)
    starter = (resources.files("jurybox.cli.starter") / "rubric.md").read_text(encoding="utf-8")
    title = rubric_id.replace("-", " ").capitalize()
    text = starter.replace("id: my-rubric", f"id: {rubric_id}").replace("# My rubric", f"# {title}")
    if output == "-":
        click.echo(text, nl=False)
        return
    path = Path(output or f"{rubric_id}.md")
    write_new_files(path.parent, {path.name: text})
    rubric = parse_rubric(text, str(path))
    lines = f"wrote {path}\ncheck it after each change: jurybox rubric check {path}"
    data = {"id": rubric.id, "file": str(path), "sha256": rubric.sha256}
    print_result(data, lambda: click.echo(lines))
