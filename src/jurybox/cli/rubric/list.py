"""``jurybox rubric list``."""

from pathlib import Path
from typing import Any

import click
import msgspec

from jurybox.cli.output import console, json_option, print_json
from jurybox.errors import InputError
from jurybox.rubric import Rubric
from jurybox.rubric_files import RubricFiles, read_path, shown
from jurybox.wiring import rubric_files


@click.command("list")
@json_option
def command(as_json: bool) -> None:
    """List the rubrics that can be called by name.

    These are the bundled ones and the *.md files in your folder of rubrics (`rubrics`, or what the
    variable JURYBOX_RUBRICS names).

    \b
    Examples:
      jurybox rubric list
      jurybox rubric list --json
    """  # noqa: D301 - click reads \b as "keep these lines"
    files = rubric_files()
    found = [
        *(_look(files, name, None) for name in files.bundled()),
        *(_look(files, name, path) for name, path in files.own().items()),
    ]
    if as_json:
        print_json({"rubrics": [each.as_data() for each in found]})
    else:
        _print_table(found)


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A rubric that can be called by name; without a rubric, it has findings."""

    name: str
    file: str | None
    findings: int
    rubric: Rubric | None = None
    bases: tuple[str, ...] = ()

    def as_data(self) -> dict[str, Any]:
        known = {
            "name": self.name,
            "file": self.file,
            "bundled": self.file is None,
            "findings": self.findings,
        }
        if self.rubric is None:
            return known
        return known | _facts(self.rubric) | {"extends": list(self.bases)}


def _look(files: RubricFiles, name: str, path: Path | None) -> _Found:
    origin = None if path is None else shown(path)
    try:
        file = files.read(name) if path is None else read_path(path)
    except InputError:
        # One file that can't be read must not hide the others.
        return _Found(name=name, file=origin, findings=1)
    reading = files.check(file)
    count = len(reading.findings)
    return _Found(
        name=name, file=origin, findings=count, rubric=reading.rubric, bases=reading.bases
    )


def _facts(rubric: Rubric) -> dict[str, Any]:
    return {
        "version": rubric.version,
        "title": rubric.title,
        "description": rubric.description,
        "scale": list(rubric.scale.ends),
        "criteria": [criterion.id for criterion in rubric.criteria],
        "sha256": rubric.sha256,
    }


def _print_table(found: list[_Found]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("rubric", "version", "scale", "criteria", "where"):
        table.add_column(heading, overflow="fold")
    for each in found:
        facts = ["-", "-", f"findings: {each.findings}"]
        if each.rubric is not None:
            criteria = ", ".join(criterion.id for criterion in each.rubric.criteria)
            if each.bases:
                criteria = f"as in {each.bases[0]}: {criteria}"
            facts = [each.rubric.version, str(each.rubric.scale), criteria]
        cells = [each.name, *facts, each.file or "bundled"]
        table.add_row(*(Text(cell) for cell in cells))
    console().print(table)
