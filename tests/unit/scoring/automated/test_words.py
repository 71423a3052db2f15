"""Texts word by word: spellings, stems, content words, and the way back to the text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.rubric.rules import Lexicon
from jurybox.scoring.rules.phrases import fold
from jurybox.scoring.rules.text_reader import Passage, WordList, stem

STOP = WordList(Lexicon(name="stop_words", phrases=("the", "and", "do", "it")))


def passage(text: str) -> Passage:
    return Passage(fold(text), "response")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("... !", []),
        ("Don't stop!", ["don't", "stop"]),
        ("She said 'no' twice", ["she", "said", "no", "twice"]),
        ("well-known_name", ["well", "known", "name"]),
        ("Stra\u00dfe, caf\u00e9\u2014ol\u00e9", ["stra\u00dfe", "caf\u00e9", "ol\u00e9"]),
        ("I\u2019m here \U0001f642", ["i'm", "here"]),
    ],
)
def test_words_are_letters_and_digits_with_their_contractions(text: str, words: list[str]) -> None:
    assert passage(text).words == words


@pytest.mark.parametrize(
    "family",
    [
        ("worry", "worries", "worried", "worrying"),
        ("stress", "stressed", "stressing"),
        ("love", "loved", "loving", "loves"),
        ("stop", "stopped", "stopping", "stops"),
        ("dog", "dogs", "dog's"),
        ("sad", "sadly", "sadness"),
    ],
)
def test_the_forms_of_a_word_have_one_stem(family: tuple[str, ...]) -> None:
    assert len(set(map(stem, family))) == 1


@pytest.mark.parametrize(("one", "other"), [("new", "knew"), ("us", "use"), ("king", "kin")])
def test_different_words_keep_different_stems(one: str, other: str) -> None:
    assert stem(one) != stem(other)


def test_a_word_without_a_vowel_before_its_ending_keeps_it() -> None:
    assert stem("bring") == "bring"
    assert stem("string") == "string"


def test_content_words_are_the_first_of_each_stem_that_no_list_leaves_out() -> None:
    assert passage("Do dogs and the dog like it? It's a dog!").content(STOP) == {"dog": 1, "lik": 5}


def test_sentences_end_at_marks_before_a_space_and_at_empty_lines() -> None:
    assert passage("It costs 3.50 now. Really? Yes!! ok\n\nNext one").sentences == [5, 1, 1, 1, 2]
    assert passage("").sentences == []


def test_words_are_quoted_as_they_were_written() -> None:
    said = passage("I don't   KNOW Stra\u00dfe 42nd")
    quotes = said.quoting(range(len(said.words)))("x")
    assert [(quote.words, quote.start) for quote in quotes] == [
        ("I", 0),
        ("don't", 2),
        ("KNOW", 10),
    ]


def test_nothing_with_a_digit_is_quoted() -> None:
    said = passage("call 4111111111111111 now")
    assert [quote.words for quote in said.quoting([0, 1, 2])("x")] == ["call", "now"]


@given(st.text(alphabet="ab'\u2019 n\tt.!\u00df\u0301\u00ad\n?1", max_size=40))
def test_every_word_is_found_again_where_it_stands(text: str) -> None:
    said = passage(text)
    assert len(said._spans) == len(said.words)
    for word, (start, end) in zip(said.words, said._spans, strict=True):
        assert said.folded.text[start:end].replace(" ", "") == word
