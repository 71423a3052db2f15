"""The prefilter lets through whatever may match, and little else."""

import pytest

from jurybox.judging import safety, safety_personal_data, safety_prefilter
from jurybox.judging.safety_prefilter import (
    Prefilter,
    groups,
    plain_shapes,
    plain_words,
    word_groups,
)


@pytest.mark.parametrize(
    "text",
    [
        "The response addresses the question clearly; its structure helps the reader to follow.",
        '{"reasoning": {"clarity": "One sentence."}, "safety_concerns": [], "scores": {"a": 4}}',
        "1. Open the file.\n2. Read it **line by line**, 4096 bytes at once.\n\n```py\nx = 1\n```",
        "Er löste die Aufgabe — „sehr gut“ — und erklärte jeden Schritt.",
    ],
)
def test_an_ordinary_text_has_no_expression_tried_on_it(text: str) -> None:
    folded = safety._Folded(text)
    assert safety._prefilter().possible(plain_words(folded.small)) == set()
    assert safety_personal_data._prefilter().possible(plain_shapes(folded.shapes)) == set()


def test_a_line_of_keys_says_which_and_how() -> None:
    assert groups("a|b{c,,d} & e{ ,-}f_") == (("a", "bc", "b", "bd"), ("e f_", "e-f_"))
    assert word_groups("_a b|c_ & d") == ((" a b", ".a b", "c ", "c."), ("d",))


@pytest.mark.parametrize(
    ("small", "plain"),
    [
        ("", " "),
        ("do it", " do it "),
        ("i'll *do*\n\n- it_all", " i ll do it all "),
        ("so, do it!", " so. do it. "),
        ("do\u00a0\u3000it — “now”", " do it now "),
        ("a\ud800b é9", " a b 9 "),
    ],
)
def test_the_plain_form_of_words(small: str, plain: str) -> None:
    assert plain_words(small).decode() == plain


def test_the_plain_form_of_shapes() -> None:
    assert plain_shapes("Ab-12 \u0663\ud800 (4)@_\n") == b"Ab-00 00 (0)@_\n"


def test_each_group_must_have_a_key_in_the_text() -> None:
    prefilter = Prefilter({"one": [("ab", "bc")], "two": [("bc",), ("x", "y"), ("z",)]})
    assert prefilter.possible(b"") == set()
    assert prefilter.possible(b"xyz") == set()
    assert prefilter.possible(b"--ab--") == {"one"}
    assert prefilter.possible(b"abc x") == {"one"}
    assert prefilter.possible(b"abc yz") == {"one", "two"}


def test_a_key_is_found_across_the_pieces_of_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safety_prefilter, "_PIECE", 4)
    prefilter = Prefilter({"one": [("abcdefgh",)], "two": [("b",)]})
    for before in range(9):
        assert prefilter.possible(b"-" * before + b"abcdefgh-") == {"one", "two"}
        assert prefilter.possible(b"-" * before + b"abcdefg") == {"two"}
