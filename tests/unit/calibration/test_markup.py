"""Marks of layout in a response."""

import pytest

from jurybox.calibration.observations import is_formatted, words_in


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("Plain text, with 3 - 2 = 1 and a * b * c.", False),
        ("Steps:\n1. one\n2) two", True),
        ("- one\n* two", True),
        ("# Title\n\ntext", True),
        ("a **strong** word", True),
        ("call `f(x)`", True),
        ("```\nx = 1\n```", True),
        ("| a | b |\n| --- | --- |\n| 1 | 2 |", True),
        ("Done \U0001f600", True),
        ("## A\n\n- **b** \u2705", True),
        ("#hashtag and snake_case__names", False),
        ("a line\n---\nand a rule", False),
    ],
)
def test_layout_is_found_and_nothing_else(text: str, *, formatted: bool) -> None:
    assert is_formatted(text) is formatted


def test_length_is_counted_in_words() -> None:
    assert words_in("  two\nwords ") == 2
    assert words_in("") == 0
