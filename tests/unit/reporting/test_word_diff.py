import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from jurybox.reporting.html.html_text import DiffPiece, cut_pieces, marked, word_diff
from jurybox.reporting.html.markdown_text import render_markdown


def test_words_that_differ_are_marked_on_their_own_side() -> None:
    assert word_diff("The cat sat here.", "The dog sat here!") == (
        (
            DiffPiece("The ", own=False),
            DiffPiece("cat", own=True),
            DiffPiece(" sat here", own=False),
            DiffPiece(".", own=True),
        ),
        (
            DiffPiece("The ", own=False),
            DiffPiece("dog", own=True),
            DiffPiece(" sat here", own=False),
            DiffPiece("!", own=True),
        ),
    )


def test_equal_and_empty_texts_have_nothing_of_their_own() -> None:
    assert word_diff("same", "same") == (
        (DiffPiece("same", own=False),),
        (DiffPiece("same", own=False),),
    )
    assert word_diff("", "") == ((), ())
    assert word_diff("", "new") == ((), (DiffPiece("new", own=True),))


def test_texts_that_are_too_long_are_left_alone() -> None:
    assert word_diff("x" * 30_001, "x") is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_pieces_make_up_the_texts(one: str, other: str) -> None:
    pieces = word_diff(one, other)
    assert pieces is not None
    for text, side in zip((one, other), pieces, strict=True):
        assert "".join(piece.text for piece in side) == text
    shared = ["".join(piece.text for piece in side if not piece.own) for side in pieces]
    assert shared[0] == shared[1]


@given(st.text("ab .\n", max_size=30), st.text("ab .\n", max_size=30))
def test_texts_of_few_letters_keep_what_they_share(one: str, other: str) -> None:
    test_the_pieces_make_up_the_texts.hypothesis.inner_test(one, other)


def test_a_word_in_the_middle_of_a_long_text_is_all_that_differs() -> None:
    around = " ".join(f"word{number}, and the next one" for number in range(500))
    pieces = word_diff(f"{around} here {around}", f"{around} there {around}")
    assert pieces is not None
    assert [[each.text for each in side if each.own] for side in pieces] == [["here"], ["there"]]


def test_a_space_alone_is_marked_too() -> None:
    assert word_diff("one two", "one  two") == (
        (DiffPiece("one", own=False), DiffPiece(" ", own=True), DiffPiece("two", own=False)),
        (DiffPiece("one", own=False), DiffPiece("  ", own=True), DiffPiece("two", own=False)),
    )


def _unrelated(words: int, seed: int) -> str:
    chosen = random.Random(seed)  # noqa: S311 - of tests
    return ". ".join(
        f"{chosen.choice(['the', 'of', 'and', 'to'])} w{chosen.random()}" for _ in range(words)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((_unrelated(words, 1), _unrelated(words, 2)) for words in (60, 400, 2000)),
        ("a " * 15_000, "b a " * 7_500),
        ("a b " * 7_500, "b a a " * 5_000),
        (". " * 15_000, ", . " * 7_500),
        ("a" * 30_000, "b " * 15_000),
        ("." * 30_000, "," * 30_000),
    ],
)
def test_no_two_texts_take_long(one: str, other: str) -> None:
    began = time.process_time()
    word_diff(one, other)
    # It takes less than a tenth; a busy machine takes a while longer.
    assert time.process_time() - began < 5


def test_the_beginning_can_be_had_alone() -> None:
    pieces = (DiffPiece("abc", own=False), DiffPiece("def", own=True), DiffPiece("g", own=False))
    assert cut_pieces(pieces, 4) == (DiffPiece("abc", own=False), DiffPiece("d", own=True))
    assert cut_pieces(pieces, 3) == (DiffPiece("abc", own=False),)
    assert cut_pieces(pieces, 9) == pieces


@given(st.text("ab *`&<>|-\n", max_size=30), st.text("ab *`&<>|-\n", max_size=30))
def test_marks_change_nothing_else_of_what_is_laid_out(one: str, other: str) -> None:
    first, second = render_markdown(one), render_markdown(other)
    assert first is not None
    assert second is not None
    made = marked(first, second)
    assert made.replace('<mark class="b">', "").replace("</mark>", "") == second


def test_of_texts_with_little_in_common_nothing_is_marked() -> None:
    assert marked(Markup("<p>One.</p>"), Markup("<p>Quite another.</p>")) == "<p>Quite another.</p>"
