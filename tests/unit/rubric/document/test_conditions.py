"""Conditions about numeric signals, earlier turns and patterns: read, refused, rendered."""

import pytest

from jurybox.rubric import check_rubric, parse_rubric
from jurybox.rubric.rules import (
    SIGNAL_LEXICONS,
    Condition,
    HasPhrase,
    SignalWithin,
)

DOCUMENT = """---
id: x
version: 1
scale: 0.0-1.0
---
# X

## Criteria

### C
Text.

```yaml rules
base: 0.5
adjust:
  - {{add: 0.1, when: {when}}}
```

## Lexicons

```yaml lexicons
{lexicons}
```
"""
ALL = "\n".join(
    f"{name}: [word]" for name in dict.fromkeys(sum(SIGNAL_LEXICONS.values(), start=()))
)


def document(when: str, lexicons: str = ALL) -> str:
    return DOCUMENT.format(when=when, lexicons=lexicons)


def conditions(when: str) -> tuple[Condition, ...]:
    rules = parse_rubric(document(when)).criteria[0].rules
    assert rules is not None
    return rules.adjustments[0].when[0]


def findings(when: str, lexicons: str = ALL) -> list[str]:
    return [
        f"{each.problem}; {each.hint} [{each.code}]"
        for each in check_rubric(document(when, lexicons)).findings
    ]


def within(signal: str, low: float | None, high: float | None) -> SignalWithin:
    return SignalWithin(signal=signal, low=low, high=high)


@pytest.mark.parametrize(
    ("when", "condition"),
    [
        ('{content_words: ">= 5"}', within("content_words", 5, None)),
        ('{content_words: "<=5"}', within("content_words", None, 5)),
        ("{content_words: 5-9}", within("content_words", 5, 9)),
        ("{repetition: 0.1..0.25}", within("repetition", 0.1, 0.25)),
        ("{user_mood: -1..-0.2}", within("user_mood", -1, -0.2)),
        ('{user_mood: "<= -0.2"}', within("user_mood", None, -0.2)),
        ('{echo: ">= 0"}', within("echo", 0, None)),
    ],
)
def test_a_numeric_signal_is_held_against_a_range(when: str, condition: Condition) -> None:
    assert conditions(when) == (condition,)


def test_phrases_may_be_looked_for_in_what_the_user_said_before() -> None:
    assert conditions("{earlier_has: [a], earlier_lacks: [b]}") == (
        HasPhrase(text="earlier", lexicon=("a",), present=True),
        HasPhrase(text="earlier", lexicon=("b",), present=False),
    )


@pytest.mark.parametrize(
    "value",
    ["5", '"> 5"', '"< 5"', '"== 5"', "many", "[5]", '">= 5%"', '">= x"', '">= 0.1234567"', '""'],
)
def test_anything_else_is_refused(value: str) -> None:
    (finding,) = findings(f"{{content_words: {value}}}")
    assert finding.startswith("`content_words` is ")
    assert finding.endswith('such as `0.2..0.5`, `">= 0.2"` or `"<= 3"` [bad-condition]')


def test_a_range_that_runs_downwards_is_refused() -> None:
    (finding,) = findings("{echo: 0.5..0.2}")
    assert finding.startswith("`echo` is `0.5..0.2`; give a range")


def test_a_numeric_signal_is_never_just_present() -> None:
    assert findings("{signal: echo}") == [
        'the signal `echo` is a number; give a bound: `echo: ">= 1"` [unknown-signal]'
    ]


def test_a_slip_of_a_signals_name_is_recognized() -> None:
    assert findings('{content_word: ">= 5"}') == [
        "there is no condition `content_word`; did you mean `content_words`? [unknown-key]"
    ]


@pytest.mark.parametrize("name", SIGNAL_LEXICONS)
def test_a_signal_needs_the_lexicons_that_it_reads_by(name: str) -> None:
    problems = findings(f'{{{name}: ">= 1"}}', "other: [word]")
    assert problems == [
        f"the signal `{name}` needs a lexicon `{lexicon}`; define it under `lexicons`"
        " [unknown-lexicon]"
        for lexicon in SIGNAL_LEXICONS[name]
    ]


def test_a_list_of_words_has_no_phrases() -> None:
    assert findings("{signal: question}", "stop_words: [the, of a]") == [
        (
            "`of a` of the lexicon `stop_words` has several words, and the lexicon is read by word;"
            " list single words [bad-lexicon]"
        )
    ]


@pytest.mark.parametrize("phrase", ["... a", "a ...", "...", "a ... ... b"])
def test_a_gap_stands_between_words(phrase: str) -> None:
    (finding,) = findings("{signal: question}", f'x: {{match: pattern, phrases: ["{phrase}"]}}')
    assert finding == (
        f"`{phrase}` of the lexicon `x` has a gap with nothing on one side of it;"
        " put `...` between words [bad-lexicon]"
    )


def test_dots_are_dots_where_phrases_are_no_patterns() -> None:
    assert findings("{signal: question}", 'x: ["well ..."]') == []
