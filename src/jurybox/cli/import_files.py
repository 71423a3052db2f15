"""``jurybox import``."""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from jurybox.cli.options import json_option, option
from jurybox.cli.output import print_result, write_new_files
from jurybox.datasets.foreign_files import read_foreign
from jurybox.datasets.foreign_suite import ForeignSuite
from jurybox.datasets.row_reader import Record
from jurybox.documents.plain_yaml import as_yaml
from jurybox.text_format import counted

_CHECKS: Final = """---
id: imported
version: 1.0.0
scale: 0.0-1.0
sources: {checks: checks}
pass: ["overall >= 1"]
---
# Imported checks

## Criteria

### Checks

Passes every check of its row.

```yaml checks
- "{{checks}}"
```
"""
# Without pass rules, because these apply only to single responses.
_PAIRS: Final = """---
id: imported
extends: general
version: 1.0.0
pass: []
gates: []
---
# Imported pairs
"""


@click.command("import")
@click.argument("file", metavar="FILE")
@option("-o, --output FOLDER", "Default: FILE's name.", name="folder")
@json_option
def command(file: str, folder: str | None) -> None:
    """Convert another tool's FILE to a suite, a dataset and recorded judgments.

    Reads promptfoo configs and results, Inspect logs, OpenAI evals and graders, DeepEval and
    Langfuse datasets, and MT-Bench and AlpacaEval judgments; their content identifies the format.
    Settings that can't be converted are listed. Existing files are never overwritten.

    \b
    Examples:
      jurybox import promptfooconfig.yaml
      jurybox import results.json -o imported
      jurybox import annotations.json && jurybox rank annotations/verdicts.jsonl
    """  # noqa: D301 - click reads \b as "keep these lines"
    read = read_foreign(Path(file))
    place = Path(Path(file).stem) if folder is None else Path(folder)
    texts = _texts(read)
    write_new_files(place, texts)
    files = [str(place / name) for name in texts]
    commands = [*_commands(read, place)]
    losses = read.losses()
    data = {"format": read.format, "files": files, "commands": commands, "not_carried_over": losses}
    lines = [f"{read.format}: {_summary(read)}", *(f"wrote {name}" for name in files)]
    lines += [f"not carried over: {line}" for line in losses]
    lines += [f"next: {line}" for line in commands]
    print_result(data, lambda: click.echo("\n".join(lines)))


def _summary(read: ForeignSuite) -> str:
    parts = {"row": read.rows, "verdict": read.verdicts, "rating": read.ratings}
    found = [counted(len(rows), noun) for noun, rows in parts.items() if rows]
    return ", ".join([*found, *(["a rubric"] if read.rubric else [])])


def _texts(read: ForeignSuite) -> dict[str, str]:
    """Return the texts of the files to write, by file name."""
    texts = {
        "suite.yaml": _suite(read) if read.rows or read.rubric else "",
        "rows.jsonl": _lines(read.rows),
        "rubric.md": _rubric(read),
        "verdicts.jsonl": _lines(read.verdicts),
        "ratings.jsonl": _lines(read.ratings),
    }
    return {name: text for name, text in texts.items() if text}


def _rubric(read: ForeignSuite) -> str:
    """Return the rubric's document; empty if `general` is sufficient."""
    if read.rubric or any("checks" in row for row in read.rows):
        return read.rubric or _CHECKS
    return _PAIRS if any("response_b" in row for row in read.rows) else ""


def _lines(rows: Sequence[Record]) -> str:
    return "".join(msgspec.json.encode(row).decode() + "\n" for row in rows)


def _suite(read: ForeignSuite) -> str:
    keys: dict[str, object] = {
        "suite": re.sub(r"[^A-Za-z0-9._-]+", "-", read.name).strip("._-")[:60] or "imported",
        "description": f"Imported from {read.format}.",
        "rubric": "rubric.md" if _rubric(read) else "general",
        "dataset": "rows.jsonl",
    }
    if len(read.targets) == 1:
        keys["target"] = read.targets[0]
    elif read.targets:
        keys["targets"] = read.targets
    if read.judges:
        keys["judge"] = {"models": read.judges}
    return "".join(f"{key}: {as_yaml(value)}\n" for key, value in keys.items())


def _commands(read: ForeignSuite, place: Path) -> Iterator[str]:
    """Yield the commands that use the written files."""
    if read.rows or read.rubric:
        line = f"jurybox run {_quoted(place / 'suite.yaml')}"
        line += "" if read.rows else " --dataset FILE"
        if not read.targets and any("response" not in row for row in read.rows):
            line += " --target MODEL"
        yield f"{line} --judge MODEL" if _rubric(read) in {"", _PAIRS} else line
    if read.verdicts:
        yield f"jurybox rank {_quoted(place / 'verdicts.jsonl')}"
        shown = {(each["a"], each["b"]) for each in read.verdicts}
        if any((b, a) in shown for a, b in shown):
            yield f"jurybox bias {_quoted(place / 'verdicts.jsonl')}"
    if read.ratings:
        yield f"jurybox agree {_quoted(place / 'ratings.jsonl')} {_scale(read)}"


def _scale(read: ForeignSuite) -> str:
    """Return the options that declare the ratings' scale, if it is known."""
    scores = [float(each["score"]) for each in read.ratings if each["score"] is not None]
    low, high = (float(end) for end in read.scale.split("-"))
    if any(not low <= score <= high for score in scores):
        return "--scale LO-HI --continuous"
    fractional = any(score % 1 for score in scores)
    return f"--scale {read.scale}" + (" --continuous" if fractional else "")


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))
