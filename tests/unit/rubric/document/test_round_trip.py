"""Whatever a document says, the canonical text of its rubric says the same."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from jurybox.rubric import check_rubric, render_rubric
from jurybox.rubric.document.front_matter import EXTENDS

BUNDLED = Path(__file__).parents[4] / "src/jurybox/rubric/library"
EVERYTHING = """---
id: everything
version: 1.2.0
scale: 0.0-1.0
scales: {facts: 0-4, tone: -2..2}
weights: {facts: 2, tone: 0.5}
evidence: {facts: reference}
sources: {warmth: rules}
overall_name: quality
votes: 5
stop_when_decided: true
vote_temperature: 0.25
reasks: 1
reask_with: same
on_unstable: review
variance_repeats: 4
generation: {temperature: 0.5, max_tokens: 99}
without_response: {facts: 0}
require_review: [safety, unstable]
pass: ["quality >= 0.6", "facts != 1"]
components:
  right: {of: facts, weight: 0.75}
  quick: {of: latency_e2e_ms, weight: 0.25, full_until: 3000}
metrics: {slow: p95 of latency_e2e_ms, good: share of facts == 4, price: total_tokens per facts > 3}
gates: ["pass_rate >= 0.85", "slow <= 9000"]
bands: [{label: Good, from: 0.70, meaning: "fine: as it is"}, {label: Bad, from: 0}]
decisions: [{decide: hold, when_any: ["quality_mean < 0.5"]}, {decide: ship}]
sample_decisions: [{decide: keep, when_all: ["facts >= 3"], meaning: "'tis"}, {decide: drop}]
---
# All of it

What it is for.

## Criteria
Read them all.

### Facts
They are right.

| Score | Label | Meaning |
| --- | --- | --- |
| 3-4 | Good | a \\| b |
| 0-2 | Bad | Wrong |

**Positive:**
- names a source
  and its date

#### Negative signs
Look twice.

1. invents
2. guesses

### Tone `tone`
- calm

### Warmth
Kind.

```yaml rules
base: 0.5
lexicons: {kind: {match: whole-word, phrases: [dear, "it's"]}}
adjust:
  - {add: 0.25, when: {response_has: kind, response_words: 3-9}, why: "kind: yes"}
  - {subtract: 0.5, when: [{no_signal: question}, {user_lacks: [please]}]}
```

### Shape
```yaml checks
- contains: "{{reference}}"
- {number: 4, tolerance: 5%}
```

## Lexicons
Words.

```yaml lexicons
hot: [sun, "ice: cream"]
```

## Judge prompt
Sent as it is.

````text
Judge {{response}} by "{{reference}}" {"a": 1}.
```
END
````

## Notes
Free text.
"""
# Pieces that mean something to Markdown, to YAML or to the format, and some that should not.
NASTY = [
    "|", "\\|", "\\", "`", "``", "```", "~~~", "#", "##", "#hash", "-", "--", "---", "- item",
    "*", "**bold**", "_under_", "+", "1.", "1)", "2. two", "10) ten", ":", "key: value", "::",
    "'", '"', "it's", "{", "}", "{{task}}", "{response}", "[", "]", "[x]: /y", "<", ">",
    "> quote", "<b>", "<!-- note -->", "&", "&amp;", "*alias", "!tag", "!!str", "%", "@", "?",
    "? key", ",", "===", "0.5", "1-5", "null", "yes", "é", "ß", "正確さ", "\u00a0", "\u200d",
    "\u202e", "\U0001f600", "\ufeff", "\u2028", "Criteria", "\t", "Positive:", "**Negative:**",
    "\\n", "\\`", "### More", "#### Signs", "## Part", "plain", "words", "", "  ",
]  # fmt: skip
LINE = st.lists(st.sampled_from(NASTY), max_size=4).map(" ".join) | st.text(max_size=9)


def round_trip(document: str) -> bool:
    """Check a document's canonical text; whether the document is one at all."""
    rubric = check_rubric(document).rubric
    if rubric is None:
        return False
    text = render_rubric(rubric)
    again = check_rubric(text)
    assert again.findings == ()
    assert again.rubric == rubric
    assert render_rubric(again.rubric) == text
    return True


@st.composite
def documents(draw: DrawFn) -> str:
    """A document with other words in its front matter, and more lines below it."""
    front, body = EVERYTHING.split("\n---\n", 1)
    for _ in range(draw(st.integers(0, 2))):
        word = draw(st.sampled_from(["fine: as it is", "'tis"]))
        front = front.replace(word, draw(st.sampled_from(NASTY[:-4])).replace('"', "").strip("\\"))
    lines = body.split("\n")
    for _ in range(draw(st.integers(1, 4))):
        lines.insert(draw(st.integers(0, len(lines))), draw(LINE))
    return f"{front}\n---\n" + "\n".join(lines)


@settings(
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(document=documents())
def test_a_rendered_rubric_reads_back_as_itself_and_renders_to_the_same_text(document: str) -> None:
    assume(round_trip(document))


def test_the_document_that_is_changed_is_sound() -> None:
    assert check_rubric(EVERYTHING).findings == ()


@pytest.mark.parametrize("name", sorted(path.name for path in BUNDLED.glob("*.md")))
def test_bundled_documents_read_back_as_themselves(name: str) -> None:
    text = (BUNDLED / name).read_text()
    assert f"\n{EXTENDS}:" in text or round_trip(text)
