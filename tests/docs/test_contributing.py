"""Each change in CONTRIBUTING.md is carried out literally in a copy of the source, and checked."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from commands import matches, run_in_shell

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
CHANGE = re.compile(r"(.+) \((\d) files?\)")

Section = list[Token]


def changes() -> dict[str, Section]:
    """Return the code blocks of each section that describes a change, by its heading."""
    found: dict[str, Section] = {}
    blocks: Section = []
    tokens = MarkdownIt("commonmark").parse(PAGE.read_text(encoding="utf-8"))
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and after is not None:
            blocks = []
            if CHANGE.fullmatch(after.content):
                found[after.content] = blocks
        elif token.type == "fence":
            blocks.append(token)
    return found


CHANGES = changes()


def apply(diff: str, tree: Path) -> str:
    """Apply a block of the form ``--- FILE``, then lines to find, to remove and to add."""
    head, *lines = diff.splitlines()
    name = head.removeprefix("--- ")
    file = tree / name
    text = file.read_text()
    before = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "+")
    after = "".join(f"{line[1:]}\n" for line in lines if line[:1] != "-")
    assert text.count(before) == 1, f"{name} must contain exactly once:\n{before}"
    file.write_text(text.replace(before, after))
    return name


def run(command: str, place: Path, tree: Path) -> str:
    program = tree / "bin" / "jurybox"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m jurybox "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return run_in_shell(command, place, PATH=path, PYTHONPATH=str(tree / "src"))[0]


@pytest.mark.parametrize("title", CHANGES)
def test_a_change_works_and_touches_as_many_files_as_it_says(title: str, tmp_path: Path) -> None:
    place, tree = tmp_path / "place", tmp_path / "tree"
    place.mkdir()
    # With what Python compiled: a copy without it would be compiled anew for every change.
    shutil.copytree(ROOT / "src", tree / "src", symlinks=True)
    touched: set[str] = set()
    checked = False
    for block in CHANGES[title]:
        language, *names = block.info.split()
        if language == "diff":
            touched.add(apply(block.content, tree))
        elif language == "console":
            for part in re.split(r"^\$ ", block.content, flags=re.MULTILINE)[1:]:
                command, _, expected = part.partition("\n")
                printed = run(command, place, tree)
                assert matches(expected, printed), f"$ {command}\n{printed}\nis not\n{expected}"
                checked = True
        else:
            (name,) = names
            is_source = name.startswith("src/")
            (tree if is_source else place).joinpath(name).write_text(block.content)
            touched |= {name} if is_source else set()
    assert checked
    match = CHANGE.fullmatch(title)
    assert match is not None
    assert len(touched) == int(match[2]), touched
    python = [str(tree / name) for name in touched if name.endswith(".py")]
    for check in (["check", "--ignore", "INP001"], ["format", "--check"]):
        ruff = [sys.executable, "-m", "ruff", *check, "--no-cache"]
        done = subprocess.run(
            [*ruff, "--config", ROOT / "pyproject.toml", *python],
            capture_output=True,
            text=True,
            check=False,
            cwd=tree,
        )
        assert done.returncode == 0, done.stdout


def test_every_change_has_a_page_and_keeps_to_its_budget() -> None:
    pages = [CHANGE.fullmatch(title) for title in CHANGES]
    counted = {match[1].lower(): int(match[2]) for match in pages if match is not None}
    assert counted == {
        "an export format": 1,
        "a cli verb": 2,
        "a page": 3,
        "a bias probe": 1,
        "a check": 1,
        "a gate function": 1,
        "a provider": 2,
        "a reply format": 2,
        "an agreement statistic": 2,
        "a letter scale": 1,
        "a dataset field": 2,
    }
