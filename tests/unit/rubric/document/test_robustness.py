"""No document can make the reader raise, hang or lose what it says."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from jurybox.documents.numbers import read_number, show_number
from jurybox.errors import Finding, ParseError
from jurybox.rubric import Reading, Scale, check_rubric, render_rubric
from jurybox.rubric.metrics import OPERATORS, Comparison, Ratio, Share, Statistic, parse_formula

ROOT = Path(__file__).parents[4]
LIBRARY = ROOT / "src" / "jurybox" / "rubric" / "library"
EVERYTHING = (ROOT / "tests" / "golden" / "everything.md").read_text(encoding="utf-8")
"""A document that uses every key and every kind of block."""
BUNDLED = [path.read_text(encoding="utf-8") for path in sorted(LIBRARY.glob("*.md"))]

SNIPPETS = [
    "---", "```", "~~~", "```yaml rules", "```yaml lexicons", "# Title", "## Criteria",
    "## Lexicons", "## Judge prompt", "### Again", "### `id`", "###", "#### Positive:", "- item",
    "* ---", "1. one", "  - nested", "> quote", "| 5 | x |", "| --- | --- |", "|", "<!--", "-->",
    "<script>", "<div>", "\t", "    code", "===", "a:", "**Negative::**", "[x]: /y",
    "{{response}}", "{response}", "{{", "!!python/object:x", "&a", "*a", "<<: *a", "? - a",
    "scale: 1-5", "scale: 0.0-1.0", "weights: {a: 1}", "'", '"', "\\", "`", "\0", "\r", "\x85",
    "\u2028", "\ufeff", "\x7f", "1e15", "-0", "é", "\ud800", "base: 0.5", "adjust: []",
    "pass: []", "votes: 99999999999999999999", "when: []", ": ", "#", "### A # `a`", "+ - -",
    "5. five", "4) four", "<br>", "</details>", "<?x", "<!x", "<pre>", "> ```yaml rules",
    "| Score | Meaning |", "  | 5 | x |", "## Lexicon", "## Judge prompts", "yml rules", "-->",
    "{{candidate-answer}}", ".5", "5e-1", "0..4", "-2..2", "**Foo  bar**", "Positive:", "text\n---",
    'pass: ["overall >= 3"]', 'gates: ["overal_mean >= 70%"]', "overall_name: pass_rate",
    "bands: [{label: a, from: .25}, {label: a, from: 0}]", "reply_format: strict-json", "\x1b",
]  # fmt: skip


@st.composite
def mutated(draw: DrawFn) -> str:
    """A document after a few slips of the hand."""
    lines = draw(st.sampled_from(BUNDLED) | st.just(EVERYTHING)).split("\n")
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        other = draw(st.integers(0, len(lines) - 1))
        snippet = draw(st.sampled_from(SNIPPETS))
        column = draw(st.integers(0, len(lines[at])))
        match draw(st.integers(0, 7)):
            case 0:
                del lines[at : at + draw(st.integers(1, 8))]
                lines = lines or [""]
            case 1:
                lines.insert(other, lines[at])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines.insert(at, snippet)
            case 4:
                lines[at] = lines[at][:column] + snippet + lines[at][column:]
            case 5:
                lines[at] = lines[at][:column] + lines[at][column + 1 :]
            case 6:
                lines[at] = lines[at][:column]
            case _:
                lines[at] = draw(st.sampled_from(["  ", "    ", "\t", ""])) + lines[at].lstrip()
    return "\n".join(lines)


def assert_in_good_order(reading: Reading, lines: int) -> None:
    assert (reading.rubric is None) == bool(reading.findings)
    for finding in reading.findings:
        assert 1 <= finding.line <= lines
        assert finding.column >= 1
        assert str(finding).isprintable()
        assert finding.problem
        assert finding.hint


def assert_round_trip(reading: Reading) -> None:
    if reading.rubric is None:
        return
    text = render_rubric(reading.rubric)
    again = check_rubric(text)
    assert again.findings == ()
    assert again.rubric == reading.rubric
    assert render_rubric(reading.rubric) == text


# Making a whole document smaller takes minutes, and the comparison that fails says enough.
WITHOUT_SHRINKING = settings(phases=[Phase.explicit, Phase.generate])


def count_lines(text: str) -> int:
    return text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


def test_every_key_and_every_kind_of_block_reads_back() -> None:
    reading = check_rubric(EVERYTHING)
    assert reading.findings == ()
    assert_round_trip(reading)


@WITHOUT_SHRINKING
@given(text=mutated())
def test_a_mutated_document_is_refused_or_reads_back_as_itself(text: str) -> None:
    reading = check_rubric(text)
    assert_in_good_order(reading, count_lines(text))
    assert_round_trip(reading)


@given(data=st.binary(max_size=400))
def test_any_bytes_give_a_reading(data: bytes) -> None:
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1
    assert_in_good_order(check_rubric(data), lines)


@given(text=st.text(max_size=400))
def test_any_text_gives_a_reading(text: str) -> None:
    assert_in_good_order(check_rubric(text), count_lines(text))


@WITHOUT_SHRINKING
@given(
    pieces=st.lists(st.sampled_from(SNIPPETS), max_size=25),
    separator=st.sampled_from(["", " ", "\n"]),
)
def test_any_body_gives_a_reading(pieces: list[str], separator: str) -> None:
    head = "---\nid: x\nversion: 1\nscale: 0.0-1.0\n---\n# T\n\n## Criteria\n\n### A\n\n"
    text = head + separator.join(pieces)
    reading = check_rubric(text)
    assert_in_good_order(reading, count_lines(text))
    assert_round_trip(reading)


@WITHOUT_SHRINKING
@given(
    pieces=st.lists(st.sampled_from(SNIPPETS), max_size=10),
    separator=st.sampled_from(["", " ", "\n"]),
)
def test_any_front_matter_gives_a_reading(pieces: list[str], separator: str) -> None:
    text = f"---\nid: x\nversion: 1\n{separator.join(pieces)}\n---\n# T\n\n## Criteria\n\n### A\n"
    reading = check_rubric(text)
    assert_in_good_order(reading, count_lines(text))
    assert_round_trip(reading)


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)
WRITTEN = st.from_regex(
    r"-?([0-9]{1,7}(\.[0-9]{1,8})?|\.[0-9]{1,15}|[0-9]{15})(e-?[0-9]{1,2})?", fullmatch=True
)
# Six decimals are all that a comparison may have.
COMPARISONS = st.builds(
    Comparison,
    name=NAMES,
    operator=st.sampled_from(list(OPERATORS)),
    number=st.one_of(
        st.from_regex(r"-?[0-9]{1,9}(\.[0-9]{1,6})?", fullmatch=True),
        st.from_regex(r"-?[0-9]{1,9}e[0-9]{1,2}", fullmatch=True),
    ).map(read_number),
)


@given(written=WRITTEN)
def test_a_number_that_can_be_read_can_be_written(written: str) -> None:
    number = read_number(written)
    assert number is not None
    assert read_number(show_number(number)) == number


@given(comparison=COMPARISONS)
def test_a_comparison_reads_back_as_itself(comparison: Comparison) -> None:
    assert Comparison.parse(str(comparison)) == comparison


@given(
    formula=st.one_of(
        st.builds(
            Statistic,
            by=st.sampled_from(["mean", "sum", "min", "max"])
            | st.integers(1, 99).map("p{}".format),
            of=NAMES,
        ),
        st.builds(Share, where=COMPARISONS),
        st.builds(Ratio, of=NAMES, where=COMPARISONS),
    )
)
def test_a_formula_reads_back_as_itself(formula: Statistic | Share | Ratio) -> None:
    assert parse_formula(str(formula)) == formula


@given(
    written=st.one_of(
        st.from_regex(r"-?[0-9]{1,9}(\.\.|-)-?[0-9]{1,9}", fullmatch=True),
        st.from_regex(r"-?[0-9]{1,9}\.[0-9]{1,9}(\.\.|-)-?[0-9]{1,9}\.[0-9]{1,9}", fullmatch=True),
    )
)
def test_a_scale_reads_back_as_itself(written: str) -> None:
    try:
        scale = Scale.parse(written)
    except ParseError:
        return
    assert Scale.parse(str(scale)) == scale


@pytest.mark.parametrize(
    "parse",
    [Scale.parse, Comparison.parse, parse_formula],
    ids=["scale", "comparison", "formula"],
)
@given(text=st.text(max_size=60) | st.text("0123456789.-+eE<>=! \n\tperofsharmn_", max_size=30))
def test_any_small_text_is_read_or_refused(parse: Callable[[str], object], text: str) -> None:
    # Any other exception fails the test.
    with contextlib.suppress(ParseError):
        parse(text)


HEAD = "---\nid: x\nversion: 1\nscale: 0.0-1.0\n"
BODY = "---\n# T\n\n## Criteria\n\n### A\n\n"

LARGE = {
    "brackets": (HEAD + BODY, "["),
    "quotes": (HEAD + BODY, ">"),
    "nested items": (HEAD + BODY, "- "),
    "backticks": (HEAD + BODY, "`"),
    "comments": (HEAD + BODY, "<!--"),
    "pipes": (HEAD + BODY, "|"),
    "titles": (HEAD + BODY, "# a\n"),
    "sections": (HEAD + BODY, "## a\n"),
    "criteria": (HEAD + BODY, "### a\n"),
    "label lines": (HEAD + BODY, "**a**\n- b\n\n"),
    "html": (HEAD + BODY, "<br>\n\n"),
    "hidden headings": (HEAD + BODY, "<br>\n# a\n\n"),
    "quoted tables": (HEAD + BODY, "> | Score | b |\n> | - | - |\n\n"),
    "quoted rules": (HEAD + BODY, "> ```yaml rules\n> ```\n\n"),
    "numbers": (HEAD + BODY, "5. a\n"),
    "braces": (HEAD + BODY + "## Judge prompt\n```\n", "{{a-b}}"),
    "labels": (HEAD + BODY, "#### a\n- b\n"),
    "carriage returns": (HEAD + BODY, "\r"),
}


@pytest.mark.parametrize("name", LARGE)
def test_forty_kilobytes_of_one_thing_take_no_time(name: str) -> None:
    start, unit = LARGE[name]
    document = start + unit * (40_000 // len(unit))
    began = time.process_time()
    reading = check_rubric(document)
    assert time.process_time() - began < 2
    assert_in_good_order(reading, count_lines(document))


def test_a_label_full_of_marks_is_read() -> None:
    reading = check_rubric(HEAD + BODY + "#### x" + " #:" * 3_000 + "\n- item\n")
    assert reading.rubric is not None
    assert [each.label for each in reading.rubric.criteria[0].indicators] == ["x"]


def test_a_heading_full_of_hashes_takes_no_time() -> None:
    began = time.process_time()
    check_rubric(HEAD + BODY + "#### " + "# " * 6_000 + "x\n")
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    "yaml",
    [
        "a: b\n" * 20_000,
        "x: " + "[" * 100_000 + "\n",
        "x: " + "{a: " * 25_000 + "\n",
        "x: " + "- " * 50_000 + "\n",
        "".join(f"k{index}: b\n" for index in range(5_000)),
        "a: &a [x, x]\n"
        + "".join(f"b{i}: &b{i} [*{'a' if not i else f'b{i - 1}'}, *a]\n" for i in range(500)),
    ],
    ids=["pairs", "brackets", "braces", "items", "keys", "aliases"],
)
def test_front_matter_of_one_thing_takes_no_time(yaml: str) -> None:
    began = time.process_time()
    reading = check_rubric(HEAD + yaml + BODY)
    assert time.process_time() - began < 5
    assert reading.findings


def test_a_finding_quotes_a_long_text_in_part_only() -> None:
    finding: Finding = check_rubric(HEAD.replace("id: x", "id: " + "X" * 5_000) + BODY).findings[0]
    assert len(str(finding)) < 1_000
