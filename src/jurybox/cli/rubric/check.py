"""``jurybox rubric check``."""

from typing import Any

import click
import msgspec

from jurybox.cli.exits import BAD_INPUT, FINE
from jurybox.cli.output import json_option, on_terminal, print_json, styled
from jurybox.errors import Finding, InputError
from jurybox.rubric import Reading, Rubric
from jurybox.rubric_files import RubricFiles
from jurybox.wiring import rubric_files


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@json_option
def command(files: tuple[str, ...], as_json: bool) -> int:
    """Check each FILE and print all findings: line, column, what is wrong and how to fix it.

    A FILE is a path, the name of a rubric, or - for standard input. The exit code is 0 when every
    document is in order and 2 otherwise; what is only a warning refuses none.

    \b
    Examples:
      jurybox rubric check support-answers.md
      jurybox rubric check rubrics/*.md --json
      cat draft.md | jurybox rubric check -
    """  # noqa: D301 - click reads \b as "keep these lines"
    shelf = rubric_files()
    readings = [_read(shelf, name) for name in files]
    faulty = [origin for origin, reading in readings if reading.rubric is None]
    if as_json:
        documents = [_as_data(origin, reading) for origin, reading in readings]
        print_json({"ok": not faulty, "documents": documents})
    else:
        for origin, reading in readings:
            _print(origin, reading)
        if faulty and len(readings) > 1:
            click.echo(f"{len(faulty)} of {len(readings)} documents have findings", err=True)
    return BAD_INPUT if faulty else FINE


def _read(shelf: RubricFiles, name: str) -> tuple[str, Reading]:
    """Read one document; one that can't be read is a finding, so the others are checked too."""
    try:
        file = shelf.read(name)
    except InputError as error:
        finding = Finding(
            line=0, column=0, code="unreadable-file", problem=error.problem, hint=error.hint
        )
        return name, Reading(rubric=None, findings=(finding,))
    return file.origin, shelf.check(file)


def _as_data(origin: str, reading: Reading) -> dict[str, Any]:
    data: dict[str, Any] = {"file": origin, "ok": reading.rubric is not None}
    if reading.rubric is not None:
        data |= {
            "id": reading.rubric.id,
            "version": reading.rubric.version,
            "sha256": reading.rubric.sha256,
            "criteria": [criterion.id for criterion in reading.rubric.criteria],
            "extends": list(reading.bases),
        }
    return data | {
        "findings": msgspec.to_builtins(reading.findings),
        "warnings": msgspec.to_builtins(reading.warnings),
    }


def _print(origin: str, reading: Reading) -> None:
    if reading.rubric is not None:
        click.echo(f"{origin}: {_summary(reading.rubric, reading.bases)}")
    for finding in reading.findings:
        _print_finding(origin, finding, styled(finding.problem, fg="red"))
    for warning in reading.warnings:
        _print_finding(origin, warning, styled(f"warning: {warning.problem}", fg="yellow"))


def _print_finding(origin: str, finding: Finding, problem: str) -> None:
    place = f":{finding.line}:{finding.column}" if finding.line else ""
    where = styled(f"{origin}{place}:", bold=True)
    hint = styled(finding.hint, fg="green")
    code = styled(f"[{finding.code}]", dim=True)
    # People read two short lines more easily; other programs want one a finding.
    between = "\n    " if on_terminal() else "; "
    click.echo(f"{where} {problem}{between}{hint} {code}")


def _summary(rubric: Rubric, bases: tuple[str, ...]) -> str:
    count = len(rubric.criteria)
    criteria = "1 criterion" if count == 1 else f"{count} criteria"
    extends = f", extends {', '.join(bases)}" if bases else ""
    return f"{styled('ok', fg='green')}, {rubric.id} {rubric.version}, {criteria}{extends}"
