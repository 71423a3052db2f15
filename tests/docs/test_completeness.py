"""An undocumented command, option, setting, rubric key, finding or public name fails here."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest

import jurybox
from jurybox.app.metadata import RunIdentity, run_metadata
from jurybox.app.prepare import read_rubric
from jurybox.cli.app import app
from jurybox.datasets import FIELDS
from jurybox.engine.plan import DatasetPlan, Plan
from jurybox.models.providers import PROVIDER_VARIABLES
from jurybox.rubric.check_kinds import CHECKS
from jurybox.rubric.document import front_matter, rule_blocks
from jurybox.rubric.metrics import MEASURES, OPERATORS, RATES, run_metrics, sample_metrics
from jurybox.rubric.rubric_model import REPLY_FORMATS, Band, Component, Decision, Generation
from jurybox.rubric.rules import NUMERIC_SIGNALS, SIGNAL_LEXICONS, SIGNALS, Match
from jurybox.rubric.template import PLACEHOLDERS
from jurybox.settings import VARIABLES
from jurybox.storage import schema
from jurybox.suite import JUDGE_KEYS, SUITE_KEYS
from jurybox.suite.model_spec import ModelSpec
from jurybox.suite.target_spec import TARGET_KEYS

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


def described_commands() -> dict[str, str]:
    """Return the sections on commands, by their names without what stands for arguments."""
    whole = sections(page("cli.md"))
    return {re.sub(r"(?: \[?[A-Z][\w.]*\]?)+$", "", title): text for title, text in whole.items()}


def options_of(command: click.Command) -> set[str]:
    options = [each for each in command.params if isinstance(each, click.Option)]
    return {name for each in options for name in (*each.opts, *each.secondary_opts)}


def test_every_command_is_documented_and_no_other() -> None:
    assert set(described_commands()) == set(COMMANDS)


def test_every_option_that_a_message_or_page_names_exists() -> None:
    known = {"--help"}.union(*map(options_of, COMMANDS.values()))
    others = {"--to", "--output-dir", "--jury-record"}  # of `inspect` and of `pytest`
    called = {"metadata.py", "download.py"}  # run git and pip
    for path in (ROOT / "src").rglob("*"):
        if path.suffix not in {".py", ".html"} or path.name in called:
            continue
        text = re.sub(r"var\(.*?\)", "", path.read_text(encoding="utf-8"))
        named = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", text))
        assert (path, named - known - others) == (path, set())


def test_every_option_is_documented_and_no_other() -> None:
    for path, text in described_commands().items():
        known = options_of(COMMANDS[path])
        rows = re.findall(r"^\| (`-.*?) \| ", text, re.MULTILINE)
        named = {name for row in rows for name in re.findall(r"`(-[\w-]+)", row)}
        missing = {name for name in known if not re.search(rf"`(?:\S+ )*{name}\b", text)}
        assert (path, missing, named - known) == (path, set(), set())


def test_every_command_has_help_with_an_example() -> None:
    for path, command in COMMANDS.items():
        text = command.help or ""
        assert "Examples:" in text, path
        assert path in text


def test_every_setting_is_documented_and_no_other() -> None:
    assert set(re.findall(r"^\| `([A-Z_]+)`", page("settings.md"), re.MULTILINE)) == {
        *VARIABLES,
        *PROVIDER_VARIABLES,
    }


def table_rows(title: str, index: int = 0, where: str = "rubric-document.md") -> list[list[str]]:
    """Return the cells of a table under a heading."""
    section = sections(page(where))[title]
    bodies = re.split(r"^\| --- .*$", section, flags=re.MULTILINE)[1:]
    rows = re.findall(r"^\| (.*) \|$", bodies[index].split("\n\n")[0], flags=re.MULTILINE)
    return [re.split(r" ?(?<!\\)\| ", row) for row in rows]


def table_keys(title: str, index: int = 0, where: str = "rubric-document.md") -> list[str]:
    """Return the names in the first column of a table under a heading."""
    first = [row[0] for row in table_rows(title, index, where)]
    return [name for cell in first for name in re.findall(r"`([^`]+)`", cell)]


def test_the_table_of_front_matter_keys_is_the_list_in_the_code() -> None:
    assert sorted(table_keys("Front matter")) == sorted(front_matter.KEYS)


def test_the_tables_of_rules_are_the_lists_in_the_code() -> None:
    title = "Automated rules"
    assert table_keys(title, 0) == list(rule_blocks.RULES_KEYS)
    assert table_keys(title, 1) == list(rule_blocks.ADJUSTMENT_KEYS)
    assert table_keys(title, 2) == list(rule_blocks.CONDITION_KEYS)
    assert table_keys(title, 3) == list(SIGNALS)


def test_the_table_of_checks_is_the_table_in_the_code() -> None:
    assert table_keys("Checks") == list(CHECKS)
    for name, *_, options in table_rows("Checks"):
        kind = CHECKS[name.strip("`").partition("`")[0]]
        assert re.findall(r"`([a-z_]+)`", options) == list(kind.options)


def test_every_numeric_signal_is_documented_with_its_lexicons() -> None:
    section = sections(page("rubric-document.md"))["Automated rules"]
    for name, meaning in NUMERIC_SIGNALS.items():
        lexicons = ", ".join(f"`{each}`" for each in SIGNAL_LEXICONS.get(name, ())) or "nothing"
        assert f"\n| `{name}` | {meaning} | {lexicons} |\n" in section
        assert f"\n| `{name}` | " in page("companion.md")


def test_the_table_of_placeholders_is_the_list_in_the_code() -> None:
    assert table_keys("The judge prompt") == list(PLACEHOLDERS)


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Generation", Generation.__struct_fields__),
        ("Comparisons", (*OPERATORS, *RATES, *MEASURES)),
        ("Comparisons", sample_metrics((), overall="overall", components=True)),
        ("Comparisons", run_metrics((), overall="overall", components=True)),
        ("Components", Component.__struct_fields__),
        ("Bands", Band.__struct_encode_fields__),
        ("Decisions", Decision.__struct_fields__),
        ("Automated rules", rule_blocks.LEXICON_KEYS),
        ("Automated rules", get_args(Match)[1:]),
        ("Front matter", tuple(REPLY_FORMATS)),
    ],
)
def test_every_nested_key_and_name_is_documented(title: str, words: tuple[str, ...]) -> None:
    section = sections(page("rubric-document.md"))[title]
    assert [
        word for word in words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", section)
    ] == []


def finding_codes(*rooms: str) -> set[str]:
    """Collect every code that the readers in these rooms can give, from their syntax trees."""
    codes: set[str] = set()
    for path in (path for room in rooms for path in (ROOT / "src/jurybox" / room).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                given = [*node.args, *(keyword.value for keyword in node.keywords)]
                texts = [str(each.value) for each in given if isinstance(each, ast.Constant)]
                codes |= {text for text in texts if re.fullmatch(r"[a-z]+(-[a-z]+)+", text)}
    return codes


def test_every_finding_of_a_suite_is_documented_and_no_other() -> None:
    documented = table_keys("Findings", where="suite.md")
    assert set(documented) == {*finding_codes("documents", "suite"), "encoding"} - {"utf-8-sig"}
    assert documented == sorted(documented)


def test_every_finding_of_a_dataset_is_documented_and_no_other() -> None:
    documented = table_keys("Findings", where="datasets.md")
    # Codes of one word look like any other word.
    one_word = {"blank", "encoding", "parquet"}
    codes = finding_codes("datasets") - {"utf-8"}
    labels = {"bad-gold"}  # in `app.labels`, which knows the rubric
    assert set(documented) == {*codes, *labels, *one_word, "too-many"}
    assert documented == sorted(documented)


@pytest.mark.parametrize(
    ("title", "keys"),
    [
        ("Keys", SUITE_KEYS),
        ("Target", TARGET_KEYS),
        ("Judge", JUDGE_KEYS),
        ("Endpoints and keys", ModelSpec.__struct_fields__),
    ],
)
def test_the_tables_of_suite_keys_are_the_lists_in_the_code(
    title: str, keys: tuple[str, ...]
) -> None:
    assert sorted(table_keys(title, where="suite.md")) == sorted(keys)


def test_the_table_of_a_datasets_fields_is_the_list_in_the_code() -> None:
    rows = table_rows("Fields", where="datasets.md")
    named = {row[0].strip("`"): tuple(re.findall(r"`(\w+)`", row[1])) for row in rows}
    assert named == {name: each.aliases for name, each in FIELDS.items()}


def test_the_table_of_tables_is_the_list_in_the_code() -> None:
    assert set(table_keys("The store", where="runs.md")) == schema.NAMES


def test_the_table_of_metadata_is_what_a_run_records() -> None:
    plan = Plan(
        suite="s",
        rubric=read_rubric("general"),
        checklist=read_rubric("bias-awareness"),
        dataset=DatasetPlan(id="d", path="d", sha256="0", bytes=1, rows=1),
        judges=(),
        votes=1,
        repeats=1,
    )
    recorded = run_metadata(
        run_id="r",
        timestamp="t",
        plan=plan,
        region=None,
        identity=RunIdentity(),
    )
    assert table_keys("Metadata", where="runs.md") == list(recorded)


def test_every_public_name_is_documented() -> None:
    text = page("python.md")
    assert [name for name in jurybox.__all__ if not re.search(rf"`{name}\b", text)] == []
