"""``jurybox rubric new``."""

import re
from importlib import resources
from pathlib import Path

import click
import msgspec

from jurybox.cli.output import json_option, print_json
from jurybox.errors import InputError
from jurybox.rubric import Rubric, parse_rubric_id, render_rubric
from jurybox.rubric_files import RubricFile, RubricFiles
from jurybox.wiring import rubric_files

# The line with the id, in the front matter: nothing after its closing dashes is touched.
_ID_LINE = re.compile(r"\A(---[ \t]*\r?\n(?:(?!---[ \t]*\r?$).*\n)*?id:)[^\r\n]*", re.MULTILINE)
_STARTER_TITLE = "\n# My rubric\n"


@click.command("new")
@click.argument("name")
@click.option("--from", "model", metavar="RUBRIC", help="Start from a copy of this rubric.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Where to write it, - for standard output; NAME.md in this folder otherwise.",
)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
def command(name: str, model: str | None, output: str | None, force: bool, as_json: bool) -> None:
    """Write a new rubric document called NAME, complete and ready to be changed.

    \b
    Examples:
      jurybox rubric new support-answers
      jurybox rubric new our-reviews --from code-review -o rubrics/our-reviews.md
    """  # noqa: D301 - click reads \b as "keep these lines"
    if as_json and output == "-":
        raise click.UsageError("--json and --output - exclude each other")
    rubric_id = parse_rubric_id(name)
    files = rubric_files()
    if rubric_id in files.bundled():
        hint = f"choose another name, or begin with a copy: --from {rubric_id}"
        raise InputError("the name of a bundled rubric", hint, rubric_id)
    path = Path(output or f"{rubric_id}.md")
    text = _starter(rubric_id) if model is None else _copy(rubric_id, files, files.read(model))
    rubric = _parse(files, path, text)
    if rubric.id != rubric_id:
        # The id of the copied document stands on no line of its own.
        text = render_rubric(msgspec.structs.replace(rubric, id=rubric_id))
        rubric = _parse(files, path, text)
    if output == "-":
        click.echo(text, nl=False)
        return
    _write(path, text, force=force)
    if as_json:
        print_json({"id": rubric.id, "file": str(path), "sha256": rubric.sha256})
    else:
        click.echo(f"wrote {path}")
        click.echo(f"check it after each change: jurybox rubric check {path}")


def _starter(rubric_id: str) -> str:
    text = (resources.files("jurybox.cli.rubric") / "starter.md").read_text(encoding="utf-8")
    title = rubric_id.replace("-", " ").capitalize()
    return _with_id(text, rubric_id).replace(_STARTER_TITLE, f"\n# {title}\n")


def _parse(files: RubricFiles, path: Path, text: str) -> Rubric:
    """Read the new document where it will stand: a base may be meant from there."""
    data = text.encode()
    origin = str(path)
    return files.parse(RubricFile(name="", origin=origin, bundled=False, data=data, path=path))


def _copy(rubric_id: str, files: RubricFiles, file: RubricFile) -> str:
    # Only a document that is in order is worth copying, and only such a one has an id to replace.
    files.parse(file)
    return _with_id(file.data.decode("utf-8-sig"), rubric_id)


def _with_id(text: str, rubric_id: str) -> str:
    return _ID_LINE.sub(rf"\1 {rubric_id}", text, count=1)


def _write(path: Path, text: str, *, force: bool) -> None:
    try:
        with path.open("w" if force else "x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        hint = "choose another name or use --force"
        raise InputError("is there already", hint, str(path)) from None
    except FileNotFoundError:
        problem = f"the folder {path.parent} does not exist"
        raise InputError(problem, "make it first", str(path)) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = f"can't be written ({reason})"
        raise InputError(problem, "choose another place", str(path)) from None
