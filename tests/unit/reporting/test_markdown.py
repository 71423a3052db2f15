"""A run as a Markdown report: what needs a person first (E15)."""

import html
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from jurybox.reporting.attention import gather
from jurybox.reporting.reports import code, markdown_report, plain

GOOD = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."}'
FOURTEEN = (
    "run_id",
    "timestamp_utc",
    "dataset_id",
    "dataset_version_or_hash",
    "model_id",
    "model_version",
    "evaluator_model_id",
    "evaluator_model_version",
    "prompt_template_id",
    "prompt_template_version_or_hash",
    "evaluator_prompt_template_version_or_hash",
    "generation_params",
    "code_version",
    "environment",
)


def report(made: object) -> str:
    return markdown_report(made.view, gather(made.store, made.view))


def rows_of(text: str, heading: str) -> list[list[str]]:
    """Return the cells of the table below a heading."""
    section = text.split(f"## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_what_needs_attention_comes_before_every_metric(make_run: Callable, row: Callable) -> None:
    rows = [row("good", "good"), row("mute", "mute"), row("late", "", late=True)]
    text = report(make_run(rows, lambda prompt: "no" if "mute" in prompt else GOOD))
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[:4] == ["Needs attention", "Decision", "Gates", "Metrics"]
    first = text.split("## Decision")[0]
    assert "- 1 vote is missing" in first
    assert "- gate `aggregate_score >= 0.8` fails: the value is 0.5" in first
    assert "**`unscored`**, 1 sample: no judge gave a valid vote: mute" in first
    assert "**`target_error`**, 1 sample" in first
    assert "`release_ready`: **no**" in text


def test_gates_have_values_margins_and_counts(make_run: Callable, row: Callable) -> None:
    text = report(make_run([row("a", ms=12000.0), row("b", ms=2000.0)], lambda _: GOOD))
    gates = {cells[0]: cells[1:] for cells in rows_of(text, "Gates")}
    # 0.45 + 0.3 + 0.15 * 3000 / 12000 + 0.1 is 0.8875 for a, and b has all.
    assert gates["`aggregate_score >= 0.8`"] == ["0.944", "+0.144", "2", "yes"]
    assert gates["`pass_rate >= 0.85`"] == ["50.0%", "-35.0 points", "2", "**no**"]
    # p95 of 2000 and 12000 is 11500.
    assert gates["`latency_e2e_p95_ms <= 10000`"] == ["11500 ms", "-1500 ms", "2", "**no**"]


def test_every_metric_has_its_n_beside_it(make_run: Callable, row: Callable) -> None:
    rows = [row("a"), row("b", "mute")]
    text = report(make_run(rows, lambda prompt: "no" if "mute" in prompt else GOOD))
    metrics = {cells[0]: cells[1:] for cells in rows_of(text, "Metrics")}
    assert metrics["`aggregate_score`"] == ["1.000", "1"]
    assert metrics["`evaluator_error_rate`"] == ["50.0%", "2"]
    assert metrics["`latency_model_p95_ms`"] == ["-", "0"]
    assert "why judges gave no scores: 1 x the judge's replies could not be read" in text


def test_repeats_have_mean_and_deviation_a12(make_run: Callable, row: Callable) -> None:
    text = report(make_run([row("a")], lambda _: GOOD, repeats=3))
    repeats = {cells[0]: cells[1:] for cells in rows_of(text, "Repeats")}
    assert repeats["`aggregate_score`"] == ["1.000", "0.000", "1.000, 1.000, 1.000"]
    assert "n = 3 repeats" in text


def test_scenarios_cost_and_metadata_are_tables(make_run: Callable, row: Callable) -> None:
    rows = [row("a", scenario="x | y"), row("b", scenario="z")]
    made = make_run(rows, lambda _: GOOD)
    text = report(made)
    assert [cells[:2] for cells in rows_of(text, "Scenarios")] == [["x \\| y", "1"], ["z", "1"]]
    assert rows_of(text, "Cost")[0][:3] == ["python/judges:one", "judge", "2"]
    assert "In US dollars: $0.25." in text
    fields = {cells[0].strip("`"): cells[1] for cells in rows_of(text, "Metadata")}
    assert set(FOURTEEN) <= fields.keys()
    assert fields["digest"] == made.row.digest


def test_an_unfinished_run_says_so_before_anything_else(make_run: Callable, row: Callable) -> None:
    text = report(make_run([row("a"), row("b")], lambda _: GOOD, left_out=1))
    assert "## Needs attention\n\n- not finished: 1 of 2 samples\n" in text
    assert "`release_ready`: **no**" in text
    assert "## Cost" not in text


def test_a_decision_comes_with_its_reasons_c12(make_run: Callable, row: Callable) -> None:
    text = report(make_run([row("a", "# no *")], rubric="companion"))
    assert "- decision: `needs_revision`, because overall\\_quality averages 0." in text
    assert "personalization\\_continuity averages 0.4, below 0.5" in text
    assert "\n- quality level: Adequate\n" in text


def test_words_of_models_and_datasets_cannot_break_the_page(
    make_run: Callable, row: Callable
) -> None:
    nasty = "| x |\n\n# Title\n<script>alert(1)</script> `code` [a](http://b) **b**"
    why = r"<img src=x> | `y` \n\n| z |"
    made = make_run(
        [row(nasty, scenario=nasty, task=nasty)],
        lambda _: f'{{"accuracy_score": 0, "faithfulness_score": 2, "rationale": "{why}"}}',
    )
    page = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table")
    rendered = page.render(report(made))
    for tag in ("<script", "<img", "<a ", "<strong>b", "<h1>Title"):
        assert tag not in rendered
    cells = [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", rendered)]
    flat = " ".join(nasty.split())
    assert cells.count(flat) == 3  # the scenario; id and task of the worst
    assert any("<img src=x>" in cell for cell in cells)


# They can hide a text.
_SELECTORS = "".join(map(chr, range(0xE0100, 0xE01F0)))
_TEXT = st.text(
    st.characters(categories=["L", "M", "N", "P", "S", "Zs"], exclude_characters=_SELECTORS),
    min_size=1,
)


@given(_TEXT)
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    lines = f"| heading |\n| --- |\n| {plain(text)} |"
    rendered = page.render(lines)
    (cell,) = re.findall(r"<td>(.*?)</td>", rendered, re.DOTALL)
    assert html.unescape(cell).strip() == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://x.y", r"see https\://x.y"),
        ("WWW.x.y", r"WWW\.x.y"),
        ("a\u202eb\x1b[1m", "a\ufffdb\ufffd\\[1m"),
        ("a&lt;b", "a&amp;lt;b"),
    ],
)
def test_plain_text_links_nowhere_and_commands_nothing(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_code_that_could_end_itself_is_text() -> None:
    assert code("pass_rate >= 0.85") == "`pass_rate >= 0.85`"
    assert code("a`b|c") == r"a\`b\|c"
