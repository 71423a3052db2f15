"""Marks of layout in a response."""

import pytest

from jurybox.calibration.observations import MARKS, marks_in, words_in


def _names(text: str) -> set[str]:
    found = marks_in(text)
    return {name for bit, name in enumerate(MARKS) if found >> bit & 1}


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Plain text, with 3 - 2 = 1 and a * b * c.", set()),
        ("Steps:\n1. one\n2) two", {"lists"}),
        ("- one\n* two", {"lists"}),
        ("# Title\n\ntext", {"headings"}),
        ("a **strong** word", {"bold"}),
        ("call `f(x)`", {"code"}),
        ("```\nx = 1\n```", {"code"}),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", {"tables"}),
        ("Done \U0001f600", {"emoji"}),
        ("## A\n\n- **b** \u2705", {"headings", "lists", "bold", "emoji"}),
        ("#hashtag and snake_case__names", set()),
        ("a line\n---\nand a rule", set()),
    ],
)
def test_marks_are_found_and_nothing_else(text: str, marks: set[str]) -> None:
    assert _names(text) == marks


def test_length_is_counted_in_words() -> None:
    assert words_in("  two\nwords ") == 2
    assert words_in("") == 0
