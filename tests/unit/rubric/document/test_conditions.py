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


def test_dots_are_dots_where_phrases_are_no_patterns() -> None:
    assert findings("{signal: question}", 'x: ["well ..."]') == []
