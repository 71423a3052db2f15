"""Every code block in the documentation is executed, page by page, each in an empty folder."""

import functools
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from commands import call, matches, run_in_shell, run_program
from jurybox.cli.app import app
from jurybox.datasets import open_dataset, survey
from jurybox.rubric_files import RubricFile, RubricFiles
from jurybox.suite import parse_suite

ROOT = Path(__file__).parents[2]
# A command without variables and patterns of a shell, into a file, or through other programs.
ALONE = re.compile(
    r"""(jurybox (?:[^|&;<>$`*?\\"']|"[^"$`\\]*"|'[^']*')+)(?: > ([\w.]+)| \| (.+))?"""
)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

DISCRETE = """---
id: fragment
version: 1.0.0
{front}
---
# Fragment
## Criteria
### Correctness
### Completeness
"""
CONTINUOUS = """---
id: fragment
version: 1.0.0
scale: 0.0-1.0
---
# Fragment
## Criteria
### Correctness
```yaml rules
{rules}
```
{rest}
"""


def assert_in_order(document: str) -> None:
    file = RubricFile(name="page", origin="page", bundled=False, data=document.encode())
    reading = RubricFiles(Path("rubrics")).check(file)
    assert [str(finding) for finding in reading.findings] == []


def run_console(block: Token, place: Path) -> None:
    """Run each line behind a ``$`` and compare its output; ``...`` stands for any lines."""
    code, before = 0, ""
    for part in re.split(r"^\$ ", block.content, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        if command == "echo $?":
            printed = f"{code}\n"
        elif (alone := ALONE.fullmatch(command)) and Path.cwd() == place:
            printed, code = run_alone(*alone.groups())
        else:
            printed, code = run_in_shell(command, place)
        before += f"$ {command}\n{printed}"
        # All of it: what a command says is often the fault of one before.
        assert matches(expected, printed), f"{before}\nis not\n{expected}"


def run_alone(command: str, file: str | None, rest: str | None) -> tuple[str, int]:
    """Call a command that needs no shell in this process: starting one takes longer than it."""
    together = file is None and rest is None
    with pytest.MonkeyPatch.context() as monkeypatch:
        done = call(monkeypatch, *shlex.split(command)[1:], together=together)
    if rest is not None:
        printed, code = run_in_shell(rest, Path.cwd(), done.out)
        return done.err + printed, code
    if file is not None:
        Path(file).write_text(done.out)
        return done.err, done.code
    return done.out, done.code


def run_python(block: Token, place: Path) -> None:
    """Run a program; one that names a file is written there for what follows."""
    match block.info.split():
        case ["python", file]:
            compile(block.content, file, "exec")
            (place / file).write_text(block.content)
            return
        case _:
            pass
    run_program(block.content)


def run_shell(block: Token, place: Path) -> None:
    """Commands that can't run inside a test: targets of make must exist, options must be known.

    A script that names a file is written there for what follows.
    """
    for name in block.info.split()[1:]:
        (place / name).write_text(block.content)
        return
    for line in block.content.splitlines():
        program, *arguments = shlex.split(line)
        if program == "jurybox":
            command = app.get_command(click.Context(app), arguments[0])
            assert command is not None, line
            command.make_parser(click.Context(command)).parse_args(arguments[1:])
            continue
        target = line.removeprefix("make ")
        assert re.search(rf"^{re.escape(target)}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def check_markdown(block: Token, place: Path) -> None:
    """A document must be in order; one that names a file is written there for what follows."""
    assert_in_order(block.content)
    for name in block.info.split()[1:]:
        (place / name).write_text(block.content)


def check_yaml(block: Token, place: Path) -> None:
    """A piece of a document is held against a document around it."""
    match block.info.split():
        case ["yaml", file] if file.endswith(".md"):
            head, end, body = (place / file).read_text().partition("\n---\n")
            (place / file).write_text(f"{head}\n{block.content.rstrip()}{end}{body}")
            assert_in_order((place / file).read_text())
        case ["yaml", file] if file.endswith(".yaml"):
            parse_suite(block.content.encode(), file)
            (place / file).write_text(block.content)
        case ["yaml"]:
            front = block.content if "scale:" in block.content else f"scale: 1-5\n{block.content}"
            assert_in_order(DISCRETE.format(front=front.rstrip()))
        case ["yaml", "rules"]:
            assert_in_order(CONTINUOUS.format(rules=block.content.rstrip(), rest=""))
        case ["yaml", "checks"]:
            checks = CONTINUOUS.replace("yaml rules", "yaml checks")
            assert_in_order(checks.format(rules=block.content.rstrip(), rest=""))
        case ["yaml", "lexicons"]:
            lexicons = f"## Lexicons\n```yaml lexicons\n{block.content}```\n"
            assert_in_order(CONTINUOUS.format(rules="base: 0.5", rest=lexicons))
        case _:
            pytest.fail(f"unknown block {block.info!r}")


def check_json(block: Token, place: Path) -> None:
    del place
    json.loads(block.content)


def check_rows(block: Token, place: Path) -> None:
    """Rows of a dataset must be in order; a block that names a file is written there."""
    name = [*block.info.split(), "rows.jsonl"][1]
    (place / name).write_text(block.content)
    survey(open_dataset(place / name), needs_response=False)


def check_text(block: Token, place: Path) -> None:
    """A text that names a file is written there."""
    for name in block.info.split()[1:]:
        (place / name).write_text(block.content)


RUNNERS: dict[str, Callable[[Token, Path], None]] = {
    "console": run_console,
    "json": check_json,
    "jsonl": check_rows,
    "markdown": check_markdown,
    "python": run_python,
    "sh": run_shell,
    "text": check_text,
    "yaml": check_yaml,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_code_block_works(page: Path, tmp_path: Path) -> None:
    for block in MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8")):
        if block.type == "fence":
            language = (block.info.split() or ["none"])[0]
            assert language in RUNNERS, f"{page.name}: nothing executes {block.info!r} blocks"
            RUNNERS[language](block, tmp_path)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("a\n", "a  \n", True),
        ("a\n...\nc\n", "a\nb\nb\nc\n", True),
        ("a\n", "b\n", False),
        ("", "x\n", False),
    ],
)
def test_the_comparison_of_output_can_fail(expected: str, printed: str, *, same: bool) -> None:
    assert matches(expected, printed) is same


@functools.cache
def anchors(page: Path) -> set[str]:
    """Return what links may name behind a ``#``: the headings, as they are shown on the web."""
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    titles = (
        tokens[i + 1].content for i, token in enumerate(tokens) if token.type == "heading_open"
    )
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_a_page_links_only_to_what_is_there() -> None:
    for page in PAGES:
        links = re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8"))
        for target, anchor in links:
            there = (page.parent / target).resolve() if target else page
            assert there.exists(), f"{page.relative_to(ROOT)} links to {target}"
            if anchor:
                assert anchor in anchors(there), f"{page.relative_to(ROOT)}: {target}#{anchor}"
