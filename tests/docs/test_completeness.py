"""An undocumented command, option, setting, rubric key, finding or public name fails here."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import jurybox
from jurybox.cli.app import app
from jurybox.documents.fields import options_of
from jurybox.rubric.comparison import OPERATORS
from jurybox.rubric.document import front_matter, rules_block, thresholds
from jurybox.rubric.figures import MEASURES, RATES, run_figures, sample_figures
from jurybox.rubric.model import ReplyFormat
from jurybox.rubric.rules import MATCHES, SIGNALS
from jurybox.rubric.template import PLACEHOLDERS
from jurybox.settings import VARIABLES

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^##+ (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, f"{path} {name}")


COMMANDS = dict(commands(app, "jurybox"))


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_documented(path: str) -> None:
    described = {
        re.sub(r" [A-Z.]+$", "", title): text for title, text in sections(page("cli.md")).items()
    }
    assert path in described
    for parameter in COMMANDS[path].params:
        for option in parameter.opts if isinstance(parameter, click.Option) else ():
            assert re.search(rf"`(?:\S+ )*{option}\b", described[path]), f"{path} {option}"


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_with_an_example(path: str) -> None:
    text = COMMANDS[path].help or ""
    assert "Examples:" in text
    assert path in text


def test_every_command_documented_exists() -> None:
    titles = [re.sub(r" [A-Z.]+$", "", title) for title in sections(page("cli.md"))]
    assert set(titles) == set(COMMANDS)


def test_every_setting_is_documented_and_no_other() -> None:
    assert set(re.findall(r"^\| `([A-Z_]+)`", page("settings.md"), re.MULTILINE)) == set(VARIABLES)


def table_keys(title: str, index: int = 0) -> list[str]:
    """Return the names in the first column of a table under a heading."""
    section = sections(page("rubric-document.md"))[title]
    tables = re.split(r"^\| --- .*$", section, flags=re.MULTILINE)[1:]
    rows = re.findall(r"^\| (.*?) \| ", tables[index].split("\n\n")[0], flags=re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_the_table_of_front_matter_keys_is_the_list_in_the_code() -> None:
    assert sorted(table_keys("Front matter")) == sorted(front_matter.KEYS)


def test_the_tables_of_rules_are_the_lists_in_the_code() -> None:
    title = "Automated rules"
    assert table_keys(title, 0) == list(rules_block.RULES_KEYS)
    assert table_keys(title, 1) == list(rules_block.ADJUSTMENT_KEYS)
    assert table_keys(title, 2) == list(rules_block.CONDITION_KEYS)
    assert table_keys(title, 3) == list(SIGNALS)


def test_the_table_of_placeholders_is_the_list_in_the_code() -> None:
    assert table_keys("The judge prompt") == list(PLACEHOLDERS)


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Generation", front_matter.GENERATION_KEYS),
        ("Comparisons", (*OPERATORS, *RATES, *MEASURES)),
        ("Comparisons", sample_figures((), overall="overall", components=True)),
        ("Comparisons", run_figures((), overall="overall", components=True)),
        ("Components", thresholds.COMPONENT_KEYS),
        ("Bands", thresholds.BAND_KEYS),
        ("Decisions", thresholds.DECISION_KEYS),
        ("Automated rules", rules_block.LEXICON_KEYS),
        ("Front matter", options_of(ReplyFormat)),
    ],
)
def test_every_nested_key_and_name_is_documented(title: str, words: tuple[str, ...]) -> None:
    section = sections(page("rubric-document.md"))[title]
    assert [
        word for word in words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", section)
    ] == []


def finding_codes() -> set[str]:
    """Collect every code that the reader can give, from its syntax tree."""
    codes: set[str] = set()
    rooms = ("documents", "rubric/document")
    for path in (path for room in rooms for path in (ROOT / "src/jurybox" / room).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                texts = [each.value for each in given if isinstance(each, ast.Constant)]
                codes |= {text for text in texts if re.fullmatch(r"[a-z]+(-[a-z]+)+", str(text))}
    return codes


def test_every_finding_is_documented_and_no_other() -> None:
    # Words of the document's vocabulary that look like codes.
    other = {*options_of(ReplyFormat), *MATCHES, "utf-8", "utf-8-sig"}
    documented = set(table_keys("Findings"))
    assert documented == {*(finding_codes() - other), "encoding", "unreadable-file"}


def test_every_public_name_is_documented() -> None:
    text = page("python.md")
    assert [name for name in jurybox.__all__ if not re.search(rf"`{name}\b", text)] == []
