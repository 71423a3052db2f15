"""Looking up phrases (C8), also against a slow matcher that is plainly right."""

import unicodedata
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.rubric.rules import Lexicon, Match
from jurybox.scoring.rules.phrases import Phrases, fold

FACT = 1


def mode(*, whole: bool) -> Match:
    return "whole-word" if whole else "word-start"


def finder(*phrases: str, match: Match) -> Phrases:
    return Phrases({FACT: Lexicon(name="", phrases=phrases, match=match)})


def places(text: str, *phrases: str, whole: bool = False) -> list[str]:
    """Return the parts of a text at which one of the phrases is found."""
    folded = fold(text)
    found = finder(*phrases, match=mode(whole=whole)).find(folded.text)
    spans = (folded.span(start, end) for _, start, end in found.get(FACT, []))
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("sad", "sad"),
        ("sad", "So sad."),
        ("sad", "SADLY"),
        ("sad", "(sad)"),
        ("sad", "'sad'"),
        ("sad", "\u201csad\u201d"),
        ("sad", "\u2014sad"),
        ("sad", "_sad_"),
        ("sad", "*sad*"),
        ("sad", "not-sad"),
        ("sad", "\U0001f622sad"),
        ("sad", "\u2764\ufe0fsad"),
        ("sad", "d'sad"),
        ("sad", "\u6211\u5f88sad"),
        ("\u96be\u8fc7", "\u6211\u5f88\u96be\u8fc7"),
        ("\u96be\u8fc7", "so\u96be\u8fc7"),
        ("caf\u00e9", "the cafe\u0301s"),
        ("cafe\u0301", "the caf\u00e9s"),
        ("I can't", "i can\u2019t"),
        ("I can\u2019t", "I can't"),
        ("as we discussed", "As  we\ndiscussed it"),
        (":(", "sad:("),
        ("c++", "some C++"),
    ],
)
def test_a_phrase_is_found(phrase: str, text: str) -> None:
    assert len(places(text, phrase)) == 1


def test_a_whole_word_may_end_in_something_else_than_a_letter() -> None:
    assert places("C++17 and c++", "c++", whole=True) == ["C++", "c++"]


def test_phrases_that_overlap_or_nest_are_all_found() -> None:
    text = "I can help you"
    assert places(text, "I can", "I can help", "can help you", "help") == [
        "I can",
        "I can help",
        "help",
        "can help you",
    ]


def test_a_phrase_can_be_looked_up_in_both_ways() -> None:
    start = Lexicon(name="", phrases=("stress",))
    phrases = Phrases({1: start, 2: Lexicon(name="", phrases=("stress",), match="whole-word")})
    assert set(phrases.find("stress")) == {1, 2}
    assert set(phrases.find("stressed")) == {1}


def test_no_phrases_and_phrases_that_nobody_sees_find_nothing() -> None:
    assert places("anything") == []
    assert places("anything \u200b", "\u200b") == []


def test_a_long_lexicon_finds_as_a_short_one_does() -> None:
    many = [f"phrase{number}x" for number in range(5000)]
    assert places("A phrase4321xy", *many) == ["phrase4321x"]


# The slow matcher: try every phrase at every place.


def joins(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M"


def naively(text: str, phrase: str, *, whole: bool) -> list[tuple[int, int]]:
    text, phrase = fold(text).text, fold(phrase).text.strip()
    found: list[tuple[int, int]] = []
    for start in range(len(text)):
        end = start + len(phrase)
        if not phrase or text[start:end] != phrase:
            continue
        if joins(phrase[0]) and start and joins(text[start - 1]):
            continue
        tail = text[:start].endswith("'") and start > 1 and joins(text[start - 2])
        if (
            joins(phrase[0])
            and tail
            and not (len(text[start:]) > 2 and all(map(joins, text[start : start + 3])))
        ):
            continue
        if whole and joins(phrase[-1]) and end < len(text) and joins(text[end]):
            continue
        found.append((start, end))
    return found


SMALL = st.text("aAbB' \u2019-_.\n\u00e9\u0301\u00df\u200b\U0001f600", max_size=40)


@given(
    text=SMALL,
    phrases=st.lists(st.text("abAB' s\u00e9\u00df-", min_size=1, max_size=4)),
    whole=st.booleans(),
)
def test_the_automaton_finds_what_a_slow_search_finds(
    text: str, phrases: list[str], *, whole: bool
) -> None:
    match = mode(whole=whole)
    lexicons = {
        fact: Lexicon(name="", phrases=(each,), match=match)
        for fact, each in enumerate(phrases, start=1)
    }
    found = Phrases(lexicons).find(fold(text).text)
    for fact, each in enumerate(phrases, start=1):
        spans = [(start, end) for _, start, end in found.get(fact, [])]
        assert spans == naively(text, each, whole=whole)


@given(text=st.text(), phrase=st.text(min_size=1, max_size=3), whole=st.booleans())
def test_any_phrase_can_be_looked_up_in_any_text(text: str, phrase: str, *, whole: bool) -> None:
    for found in places(f"{text} {phrase} {text}", phrase, whole=whole):
        assert fold(found).text.strip() == fold(phrase).text.strip()


# Patterns


def matched(text: str, *patterns: str) -> list[str]:
    folded = fold(text)
    found = finder(*patterns, match="pattern").find(folded.text)
    spans = (folded.span(start, end) for _, start, end in found.get(FACT, []))
    return [text[start:end] for start, end in spans]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I will never leave you", ["I will never leave you"]),
        ("I never leave you", ["I never leave you"]),
        ("I promise that I'd never leave you, never leave you", 2),
        ("I one two three four five never leave you", 1),
        ("I one two three four five six never leave you", 0),
        ("Will I? You never leave your house", 0),
        ("I know. They never leave you", 0),
        ("I said:\n\nnever leave you", 0),
        ("never leave you, I said", 0),
        ("never leave you", 0),
    ],
)
def test_a_gap_stands_for_a_few_words_of_one_sentence(text: str, found: list[str] | int) -> None:
    places = matched(text, "I ... never leave you")
    assert (places if isinstance(found, list) else len(places)) == found


def test_a_pattern_may_have_several_gaps() -> None:
    assert matched("so I think it can only get better", "I ... can ... better") == [
        "I think it can only get better"
    ]
    assert matched("better, I can", "I ... can ... better") == []


@pytest.mark.parametrize("text", ["I don't know", "I dont know", "I DON\u2019T know"])
def test_a_contraction_is_found_whole_and_without_its_apostrophe(text: str) -> None:
    assert len(matched(text, "I don't know")) == 1
    assert len(matched(text, "I don\u2019t ... know")) == 1


def test_a_pattern_is_made_of_whole_words() -> None:
    assert matched("I want to diet", "want to die") == []
    assert matched("I want to die.", "want to die") == ["want to die"]


def test_many_parts_of_patterns_take_time_that_grows_with_the_length_alone() -> None:
    patterns = finder("a ... a", "a ... b ... c", match="pattern")
    assert len(patterns.find("a " * 50_000)[FACT]) == 49_999


@cache
def compiled(*patterns: str) -> Phrases:
    return finder(*patterns, match="pattern")


def matches(text: str, *patterns: str) -> list[str]:
    folded = fold(text)
    found = compiled(*patterns).find(folded.text)
    return [folded.text[start:end] for _, start, end in found.get(FACT, ())]


def test_a_choice_in_brackets_stands_for_each_of_its_words() -> None:
    pattern = "I (really|) (feel|am) (so|) sad"
    assert matches("I am sad. I really feel so sad.", pattern) == [
        "i am sad",
        "i really feel so sad",
    ]
    assert matches("I really so sad", pattern) == []
    assert matches("overdosed", "overdos(e|ed)") == ["overdosed"]
    assert matches("a (b) c", "(b)") == ["(b)"]


@given(numbers=st.lists(st.integers(0, 19), min_size=3, max_size=3))
def test_a_pattern_with_very_many_choices_finds_each_of_them(numbers: list[int]) -> None:
    choices = [[f"{letter}{number}" for number in range(20)] for letter in "abc"]
    pattern = " ".join(f"({'|'.join(each)})" for each in choices)
    words = [each[number] for each, number in zip(choices, numbers, strict=True)]
    text = " ".join(words)
    assert matches(f"a1 {text} c2", pattern) == [text]
    assert matches(f"{words[0]} {words[1]} and {words[2]}", pattern) == []
    assert matches(f"{words[0]}, {words[1]} {words[2]}", pattern) == []


def test_an_exception_takes_back_what_it_overlaps_with_and_nothing_else() -> None:
    patterns = ("giving up", "want to ... die", "!giving up (smoking|sugar)", "!not want to")
    assert matches("I'm giving up smoking", *patterns) == []
    assert matches("I'm giving up smoking. I'm giving up!", *patterns) == ["giving up"]
    assert matches("I do not want to die", *patterns) == []
    assert matches("I want to just die", *patterns) == ["want to just die"]
    assert matches("giving up sugar", "!giving up sugar") == []
