from hypothesis import given
from hypothesis import strategies as st

from jurybox.reporting.word_diff import Piece, word_diff


def test_words_that_differ_are_marked_on_their_own_side() -> None:
    assert word_diff("The cat sat here.", "The dog sat here!") == (
        (
            Piece("The ", own=False),
            Piece("cat", own=True),
            Piece(" sat here", own=False),
            Piece(".", own=True),
        ),
        (
            Piece("The ", own=False),
            Piece("dog", own=True),
            Piece(" sat here", own=False),
            Piece("!", own=True),
        ),
    )


def test_equal_and_empty_texts_have_nothing_of_their_own() -> None:
    assert word_diff("same", "same") == ((Piece("same", own=False),), (Piece("same", own=False),))
    assert word_diff("", "") == ((), ())
    assert word_diff("", "new") == ((), (Piece("new", own=True),))


def test_texts_that_would_take_long_are_left_alone() -> None:
    one, other = ("a b " * 2000, "c d " * 2000)
    assert word_diff(one, other) is None
    # However long they are, a word in the middle is no work.
    assert word_diff(one + "x " + one, one + "y " + one) is not None
    assert word_diff("x" * 200_001, "x") is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_the_pieces_make_up_the_texts(one: str, other: str) -> None:
    pieces = word_diff(one, other)
    assert pieces is not None
    for text, side in zip((one, other), pieces, strict=True):
        assert "".join(piece.text for piece in side) == text
    shared = ["".join(piece.text for piece in side if not piece.own) for side in pieces]
    assert shared[0] == shared[1]
