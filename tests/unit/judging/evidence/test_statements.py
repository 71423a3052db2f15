"""Cutting a text into statements, each of which can be checked alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import growth
from jurybox.judging.evidence.text_overlap import MOST, sentences, statements

MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        (
            "Dr. Smith came at 9 a.m. on Monday. He left.",
            ["Dr. Smith came at 9 a.m. on Monday", "He left"],
        ),
        ("J. R. Tolkien wrote it. It is long.", ["J. R. Tolkien wrote it", "It is long"]),
        ("See Fig. 3 and No. 5 there.", ["See Fig. 3 and No. 5 there"]),
        ("Use fruit, e.g. apples.", ["Use fruit, e.g. apples"]),
        ("It costs 3.5 dollars. Pi is 3.14.", ["It costs 3.5 dollars", "Pi is 3.14"]),
        ("Version 2.0.1 is out! Get it.", ["Version 2.0.1 is out!", "Get it"]),
        ("One is red; two is blue.", ["One is red", "two is blue"]),
        ("- One thing\n- Another thing", ["One thing", "Another thing"]),
        ("* one thing\n\n\n\u2022 another", ["one thing", "another"]),
        ("1) Boil the water\n2) Add the salt", ["Boil the water", "Add the salt"]),
        ("1. Boil the water\n2. Add the salt", ["Boil the water", "Add the salt"]),
        ("# Heading\ntext below", ["Heading", "text below"]),
        ('He said "stop." Then he left the room.', ['He said "stop', "Then he left the room"]),
    ],
)
def test_a_text_is_cut_where_its_sentences_end(text: str, pieces: list[str]) -> None:
    assert list(statements(text)) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("You may go in unless it is locked.", ["You may go in", "unless it is locked"]),
        ("It is a metal, not a gas at all.", ["It is a metal", "not a gas at all"]),
        (
            "It makes the acid, which kills the germs.",
            ["It makes the acid", "which kills the germs"],
        ),
        ("He has all papers except for the visa.", ["He has all papers", "except for the visa"]),
        (
            "Boil it well so that nothing lives on.",
            ["Boil it well", "so that nothing lives on"],
        ),
    ],
)
def test_a_word_that_gives_a_piece_its_sense_stays(text: str, pieces: list[str]) -> None:
    assert list(statements(text)) == pieces


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("It is warm, but nobody came to swim.", ["It is warm", "nobody came to swim"]),
        ("It boils at 100 C and freezes at 0 C.", ["It boils at 100 C", "freezes at 0 C"]),
        ("The cat sleeps while the dog barks.", ["The cat sleeps", "the dog barks"]),
    ],
)
def test_a_word_that_only_joins_is_dropped(text: str, pieces: list[str]) -> None:
    assert list(statements(text)) == pieces


@pytest.mark.parametrize(
    "text",
    [
        "Salt and pepper",
        "It is warm, but no.",
        "The cell, which is round",
        "bread and the butter",
    ],
)
def test_a_piece_too_short_to_say_anything_stays_with_its_neighbour(text: str) -> None:
    assert len(statements(text)) == 1


@pytest.mark.parametrize("text", ["", " ", "\n\n", "...", "?! -- ;\n;", "\u2022 \u2022"])
def test_nothing_said_is_no_statement(text: str) -> None:
    assert statements(text) == ()
    assert sentences(text) == ()


def test_there_are_never_more_than_can_be_asked() -> None:
    text = " ".join(f"Fact {number} is here." for number in range(20))
    found = statements(text)
    assert len(found) == MOST
    # None is lost, and they are shared out evenly: 20 = 4 * 3 + 4 * 2.
    assert "; ".join(found) == "; ".join(f"Fact {number} is here" for number in range(20))
    assert sorted(each.count(";") + 1 for each in found) == [2, 2, 2, 2, 3, 3, 3, 3]
    assert len(statements(text, most=1)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "L'été est chaud. L'hiver est très froid.",
        "Straße eins ist gesperrt. Straße zwei ist frei.",
        "Ποιος είναι; Εδώ είναι.",
    ],
)
def test_other_languages_are_cut_too(text: str) -> None:
    assert len(statements(text)) == 2


def test_what_has_no_spaces_stays_whole() -> None:
    text = "\u5730\u7403\u306f\u4e38\u3044\u3002"
    assert statements(text) == (text,)


@given(st.text(max_size=300), st.integers(1, 10))
def test_pieces_are_of_the_text_and_say_something(text: str, most: int) -> None:
    found = statements(text, most)
    words = " ".join(text.split())
    assert len(found) <= most
    for piece in found:
        assert piece.strip()
        # Neighbours are joined by "; ", which need not be in the text; blanks are all alike.
        assert all(" ".join(part.split()) in words for part in piece.split("; "))
    # The number of a list is no statement, so a text with letters or digits may still say nothing.
    assert not found or any(letter.isalnum() for letter in text)


@pytest.mark.parametrize(
    "unit",
    [
        "The cat sat on the mat. ",
        "It is so and it is not so ",
        "this, which is that, unless it is not, ",
        "Dr. ",
        "A. ",
        "word",
        "word.",
        " ",
        "\n",
        "; ",
        ", ",
        "'. ",
        "1. ",
        "\u5730\u3002",
        "a" + " " * 5000,
    ],
    ids=repr,
)
def test_a_long_text_takes_no_longer_than_its_length(unit: str) -> None:
    def work(size: int) -> None:
        statements(unit * (size // len(unit)) + " end. End.")

    assert growth.grows_with_size_alone(work, MEGABYTE // 5)
