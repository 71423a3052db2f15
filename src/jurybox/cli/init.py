"""``jurybox init``."""

import shlex
from importlib import resources
from pathlib import Path
from typing import Final

import click

from jurybox.cli.options import json_option
from jurybox.cli.output import print_result, write_new_files

_FILES: Final = ("suite.yaml", "questions.jsonl", "judge.py")


@click.command("init")
@click.argument("folder", default=".", metavar="[FOLDER]")
@json_option
def command(folder: str) -> None:
    """Write a small suite, ready to run, into FOLDER, by default the current one.

    The suite has six questions with recorded answers, three of them deliberately wrong, and a judge
    that compares words, so it needs no key and no network. Existing files are never overwritten; if
    one exists with different contents, nothing is written.

    \b
    Examples:
      jurybox init
      jurybox init my-evaluation
    """  # noqa: D301 - click reads \b as "keep these lines"
    place = Path(folder)
    starter = resources.files("jurybox.cli.starter")
    texts = {name: (starter / name).read_text(encoding="utf-8") for name in _FILES}
    write_new_files(place, texts)
    files = [str(place / name) for name in _FILES]
    lines = [f"wrote {name}" for name in files]
    lines.append(f"run it: jurybox run {shlex.quote(files[0])}")
    lines.append("3 of the 6 answers are deliberately wrong, so 2 gates will fail")
    data = {"folder": folder, "files": files, "suite": files[0]}
    print_result(data, lambda: click.echo("\n".join(lines)))
