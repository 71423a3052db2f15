import pytest

from jurybox.errors import RubricError
from jurybox.rubric import Criterion, Rubric, check_rubric, parse_rubric, render_rubric
from jurybox.rubric.rubric_model import Indicators

HEAD = "---\nid: x\nversion: 1\nscale: 1-5\n---\n# T\n"


def criterion(text: str, heading: str = "A") -> Criterion:
    return parse_rubric(f"{HEAD}\n## Criteria\n\n### {heading}\n{text}").criteria[0]


def whole(text: str) -> Rubric:
    return parse_rubric(f"{HEAD}{text}\n")


def codes(text: str, scale: str = "1-5") -> list[str]:
    """Return the findings of a criterion, each as its line below the heading and its code."""
    head = HEAD.replace("1-5", scale) + "\n## Criteria\n\n### A\n"
    above = head.count("\n")
    found = check_rubric(head + text).findings
    return [f"{finding.line - above} {finding.code}" for finding in found]


def labels(text: str) -> dict[str, tuple[str, ...]]:
    return {each.label: each.items for each in criterion(text).indicators}


@pytest.mark.parametrize(
    ("heading", "name", "criterion_id"),
    [
        ("Tone", "Tone", "tone"),
        ("Trust & Boundaries", "Trust & Boundaries", "trust_boundaries"),
        ("2. Tone", "2. Tone", "tone"),
        ("12) Tone of voice", "12) Tone of voice", "tone_of_voice"),
        ("Café crème", "Café crème", "cafe_creme"),
        ("Self-enhancement", "Self-enhancement", "self_enhancement"),
        ("*Clarity*!", "*Clarity*!", "clarity"),
        ("Tone ###", "Tone", "tone"),
        ("Accuracy `accuracy_score`", "Accuracy", "accuracy_score"),
        ("Accuracy (`accuracy_score`)", "Accuracy", "accuracy_score"),
        ("`accuracy_score`", "accuracy_score", "accuracy_score"),
        ("正確さ `accuracy`", "正確さ", "accuracy"),
        ("2. Tone `t2`", "2. Tone", "t2"),
        ("Use of `code` here `code_use`", "Use of `code` here", "code_use"),
    ],
)
def test_a_heading_gives_a_name_and_an_id(heading: str, name: str, criterion_id: str) -> None:
    read = criterion("", heading)
    assert (read.name, read.id) == (name, criterion_id)


@pytest.mark.parametrize(
    "label",
    [
        "#### Positive signs",
        "##### Positive signs:",
    ],
)
def test_the_heading_above_a_list_is_its_label(label: str) -> None:
    assert labels(f"{label}\n\n- one\n- two\n") == {"Positive signs": ("one", "two")}
    assert criterion(f"{label}\n\n- one\n").definition == ""


def test_what_stands_between_a_heading_and_its_lists_belongs_to_them() -> None:
    read = criterion(
        "Friendly.\n\n#### Positive signs\nLook for these.\n\n- a\n- b\n\n"
        "And\nthis.\n\n- c\n\nEnd.\n"
    )
    assert read.definition == "Friendly."
    assert read.indicators == (
        Indicators(
            label="Positive signs",
            items=("a", "b", "c"),
            text="Look for these.\n\nAnd\nthis.\n\nEnd.",
        ),
    )


def test_a_list_that_markdown_splits_keeps_its_label() -> None:
    assert labels("Friendly.\n\n#### Watch for\n- a\n\n* b\n\n1. c\n") == {
        "Watch for": ("a", "b", "c")
    }


def test_a_line_with_a_colon_is_a_part_of_the_definition() -> None:
    read = criterion("Look at this:\n\n- a\n\nAnd at that:\n\n- b\n")
    assert read.definition == "Look at this:\n\nAnd at that:"
    assert read.indicators == (Indicators(label="Indicators", items=("a", "b")),)


def test_a_paragraph_of_two_lines_is_no_label() -> None:
    read = criterion("Friendly.\n\nIt is warm\nand it is:\n\n- a\n")
    assert read.definition == "Friendly.\n\nIt is warm\nand it is:"
    assert [each.label for each in read.indicators] == ["Indicators"]


def test_lists_of_one_label_keep_what_is_said_about_each() -> None:
    read = criterion("#### Signs\nFirst.\n- a\n\n#### Signs\nSecond.\n- b\n")
    assert read.indicators == (
        Indicators(label="Signs", items=("a", "b"), text="First.\n\nSecond."),
    )


def test_a_heading_without_a_list_is_part_of_the_definition() -> None:
    read = criterion("Friendly.\n\n#### Note\nNot too friendly.\n\n#### Signs\n- a\n")
    assert read.definition == "Friendly.\n\n#### Note\nNot too friendly."
    assert [each.label for each in read.indicators] == ["Signs"]


@pytest.mark.parametrize(
    "numbers", [(1, 2, 3), (1, 1, 1), (0, 1, 2)], ids=["counted", "ones", "from zero"]
)
@pytest.mark.parametrize("mark", [".", ")"])
def test_a_numbered_list_counts(numbers: tuple[int, ...], mark: str) -> None:
    text = "".join(f"{number}{mark} item\n" for number in numbers)
    assert labels(text) == {"Indicators": ("item", "item", "item")}


def test_numbers_inside_an_item_are_its_text() -> None:
    assert labels("- a\n\n  5. b\n  4. c\n") == {"Indicators": ("a\n\n5. b\n4. c",)}


def test_what_is_nested_in_an_item_stays_with_it() -> None:
    assert labels("- a\n  - b\n\n  c\n- d\n") == {"Indicators": ("a\n- b\n\nc", "d")}


def test_text_beside_the_structure_of_a_criterion_is_its_definition() -> None:
    read = criterion(
        "First.\n\n| Score | Meaning |\n| - | - |\n| 5 | Good |\n\n"
        "Second.\n\n- item\n\n> Third.\n\n```python\nx\n```\n"
    )
    assert read.definition == "First.\n\nSecond.\n\n> Third.\n\n```python\nx\n```"
    assert len(read.levels) == 1


def test_levels_have_two_columns_or_three() -> None:
    two = criterion("| Score | Meaning |\n| - | - |\n| **5** | Good \\| fine |\n").levels[0]
    three = criterion(
        "| S | L | M |\n| - | - | - |\n| 1\u20132 | Low | Bad |\n| 3..5 | | Good |\n"
    ).levels
    assert (two.low, two.high, two.label, two.meaning) == (5, 5, "", "Good | fine")
    assert [(each.low, each.high, each.label) for each in three] == [(1, 2, "Low"), (3, 5, "")]


@pytest.mark.parametrize(
    "table",
    [
        "| Score | Meaning |\n| --- | --- |\n| 5 | Good |\n| 1 | Bad |\n",
        "Score | Meaning\n--- | ---\n5 | Good\n1 | Bad\n",
        "| Score | Meaning |\n|:-:|---:|\n| 5 | Good |\n| 1 | Bad |\n",
        "  | Score | Meaning\n  | - | -\n  | 5 | Good\n  | 1 | Bad\n",
        "| Score | Meaning |\n| --- | --- |\n| **5** | Good |\n| `1` | Bad |\n",
        "|Score|Meaning|\n|-|-|\n|5|Good|\n|+1|Bad|\n",
        "Text above.\n| Score | Meaning |\n| --- | --- |\n| 5 | Good |\n| 1 | Bad |\n",
    ],
)
def test_a_table_may_be_written_in_several_ways(table: str) -> None:
    read = criterion(table)
    assert [(each.low, each.high, each.meaning) for each in read.levels] == [
        (5, 5, "Good"),
        (1, 1, "Bad"),
    ]
    assert read.level_columns == ("Score", "Meaning")


def test_a_band_that_begins_at_no_number_is_refused_in_place() -> None:
    bands = HEAD.replace("---\n#", "bands: [{label: Good, from: abc}]\n---\n#")
    with pytest.raises(RubricError, match="`from` is `abc`; give a number"):
        parse_rubric(bands + "## Criteria\n### A\n")


def test_closed_comments_are_text_whatever_stands_in_them() -> None:
    read = criterion("<!-- one -->\nFriendly.\n\n<!--\n\n### Not a criterion\n\n-->\n\n- a\n")
    assert read.definition == "<!-- one -->\nFriendly.\n\n<!--\n\n### Not a criterion\n\n-->"
    assert [each.items for each in read.indicators] == [("a",)]


@pytest.mark.parametrize("fence", ["~~~", "````", "   ```"])
def test_a_rules_block_may_be_fenced_in_several_ways(fence: str) -> None:
    text = f"{fence}yaml  rules\n  base: .5\n{fence}\n"
    rubric = parse_rubric(f"{HEAD.replace('1-5', '0.0-1.0')}## Criteria\n### A\n{text}")
    assert rubric.criteria[0].rules is not None
    assert rubric.criteria[0].rules.base == 0.5


def test_title_and_sections_may_be_underlined() -> None:
    head = HEAD.replace("# T\n", "")
    rubric = parse_rubric(f"{head}T\n=\n\nAbout.\n\nCriteria\n---\n\n### A\n\nNotes\n-----\nx\n")
    assert (rubric.title, rubric.description) == ("T", "About.")
    assert [criterion.id for criterion in rubric.criteria] == ["a"]
    assert [(section.title, section.text) for section in rubric.sections] == [("Notes", "x")]


TABLE = "| Score | Meaning |\n| --- | --- |\n| 5 | Good |\n"


@pytest.mark.parametrize(
    "text",
    [
        f"> A quote without a blank line below.\n{TABLE}",
        f"<br>\n{TABLE}",
        "<br>\n```yaml rules\nbase: 1\n```\n",
        TABLE.replace("| --- | --- |", "| --- |"),
        TABLE.replace("| --- | --- |\n", ""),
        TABLE.replace("| Score | Meaning |\n", ""),
    ],
    ids=["quote", "html", "rules in html", "short second row", "no second row", "no header"],
)
def test_a_table_or_a_rules_block_that_markdown_takes_for_text_is_refused(text: str) -> None:
    assert codes(text) != []


@pytest.mark.parametrize(
    "rule",
    [
        "overall >= 0",
        "overall <= 1",
        "a >= 1",
        "a <= 5",
        "a == 2.5",
        "total_score >= 100",
        "latency_e2e_ms <= 1e15",
        "token_efficiency_ratio >= 3",
    ],
)
def test_a_value_that_a_metric_can_have_may_be_compared_with(rule: str) -> None:
    head = HEAD.replace("---\n#", f'pass: ["{rule}"]\n---\n#')
    assert check_rubric(f"{head}## Criteria\n### A\n").findings == ()


def test_other_sections_are_kept_as_they_are_and_text_in_structural_ones_too() -> None:
    rubric = whole(
        "About.\n\n## How to\n\nRead `it`.\n\n### Deep\n1. x\n\n"
        "## Criteria\n\nSix of them.\n\n### A\n\n## Notes\n"
    )
    assert rubric.description == "About."
    assert [(section.title, section.text) for section in rubric.sections] == [
        ("Criteria", "Six of them."),
        ("How to", "Read `it`.\n\n### Deep\n1. x"),
        ("Notes", ""),
    ]


BODY = "\nÜber.\n\n## Criteria\n\n### A\n\n- one\n  two\n"


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_line_ends_of_other_systems_make_no_difference(newline: str) -> None:
    text = HEAD + BODY
    assert parse_rubric(text.replace("\n", newline)) == parse_rubric(text)


def test_a_byte_order_mark_makes_no_difference() -> None:
    text = HEAD + BODY
    assert parse_rubric(b"\xef\xbb\xbf" + text.encode()) == parse_rubric(text)


@pytest.mark.parametrize(
    "body",
    [
        "### Foo # `foo`",
        "### A\n* ---",
        "### A\n+ - -",
        "### A\n*\u00a0*:\n- a",
        "### A\n-\ta\n\n\tb",
        "### A\n1. a\n   2. b\n\n       code",
        "### A\n[x]: /y\n- a",
        "### A\n<div>\n\n- a\n\n</div>",
        "### A\n#### Foo\n<!-- list -->\n\n<!-- list -->\n\n- a",
        "### A\n| | |\n| - | - |\n| 5 | x |",
        "### A\n| S\\|T | `M` | # |\n| - | - | - |\n| 5 | | x |",
        "### A\n1. a\n2. b\n\n1) c",
    ],
)
def test_odd_markdown_survives_rendering(body: str) -> None:
    rubric = whole(f"## Criteria\n\n{body}\n")
    assert parse_rubric(render_rubric(rubric)) == rubric


@pytest.mark.parametrize(
    "line",
    [
        'bands: [{label: "a\\u2028b \\ufeff \\u202e", from: 0}]',
        "bands: [{label: a, from: .500}, {label: b, from: 0}]",
        "bands: [{label: a, from: 5e-1}, {label: b, from: 0}]",
        'pass: ["total_tokens <= 1e15"]',
        'pass: ["overall >= 0.000001"]',
        "weights: {a: 1.23456789012345e-3}",
        "overall_name: quality",
        'pass: ["total_score >= -0.5"]',
        "weights: {a: 0.000001}",
        "generation: {seed: -999999999999999}",
    ],
)
def test_odd_front_matter_survives_rendering(line: str) -> None:
    rubric = parse_rubric(HEAD.replace("---\n#", f"{line}\n---\n#") + "## Criteria\n### A\n")
    assert parse_rubric(render_rubric(rubric)) == rubric


@pytest.mark.parametrize(
    ("scale", "rows"),
    [
        ("-2.0..2.0", ["-2-2"]),
        ("-2.0..2.0", ["-2..-1", "0..2"]),
        ("0.0-1.0", ["5e-1"]),
        ("0.0-1.0", [".5-1", "0-.4"]),
        ("0.0-1.0", ["0.50-1", "0-0.49"]),
        ("-2..2", ["-2..-1", "0-2"]),
        ("0.0-1.0", ["0.123456789012345"]),
    ],
)
def test_odd_scores_survive_rendering(scale: str, rows: list[str]) -> None:
    table = "| Score | Meaning |\n| - | - |\n" + "".join(f"| {row} | x |\n" for row in rows)
    rubric = parse_rubric(HEAD.replace("1-5", scale) + f"## Criteria\n### A\n{table}")
    assert parse_rubric(render_rubric(rubric)) == rubric
