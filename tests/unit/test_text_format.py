"""Texts of models and datasets as they are shown: nothing hidden, nothing obeyed."""

import json

import pytest

from jurybox.cli.output import harmless, print_json
from jurybox.text_format import cut, visible

HIDDEN = {
    "C0": "\x1b",
    "C1": "\x9b",
    "bidirectional override": "\u202e",
    "bidirectional isolate": "\u2066",
    "zero-width space": "\u200b",
    "joiner between letters of ASCII": "\u200d",
    "byte order mark": "\ufeff",
    "tag character": "\U000e0041",
    "variation selector": "\U000e0141",
    "line separator": "\u2028",
}


@pytest.mark.parametrize("mark", HIDDEN.values(), ids=HIDDEN)
def test_what_hides_or_reorders_text_is_made_visible(
    mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert visible(f"a{mark}b") == harmless(f"a{mark}b") == "a\ufffdb"
    print_json({"text": f"a{mark}b"})
    printed = capsys.readouterr().out
    assert mark not in printed
    assert json.loads(printed) == {"text": f"a{mark}b"}


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "naïve café",
        "日本語",
        "\U0001f469\u200d\U0001f680",
        "\u0645\u06cc\u200c\u062e",
        "❤\ufe0f",
    ],
)
def test_scripts_and_emoji_stay_as_they_are(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert visible(text) == harmless(text) == text
    print_json(text)
    assert capsys.readouterr().out == f'"{text}"\n'


def test_joiners_in_a_row_hide_nothing() -> None:
    assert visible("é\u200d\u200c\u200dé") == "é\ufffd\ufffd\ufffdé"


def test_lines_of_a_terminal_stay_lines() -> None:
    assert harmless("a\n\tb\rc") == "a\n\tb c"
    assert visible("a\n\tb") == "a  b"


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        ("a\n b\t c", 10, "a b c"),
        ("abcdefghij", 10, "abcdefghij"),
        ("abcdefghijk", 10, "abcdefghi…"),
        ("abcdef ghijk", 10, "abcdef…"),
        ("a" + " " * 100, 10, "a…"),
    ],
)
def test_a_text_is_cut_between_words_and_a_long_word_anywhere(
    text: str, most: int, short: str
) -> None:
    assert cut(text, most) == short
