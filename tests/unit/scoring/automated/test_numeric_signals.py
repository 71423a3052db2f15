"""The signals that are numbers (C17), each on texts where the number can be counted by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import growth
from jurybox.rubric.rules import (
    FAMILIES,
    HEARD_LEXICONS,
    NUMERIC_SIGNALS,
    SIGNAL_LEXICONS,
    SIGNALS,
    WORD_COUNTS,
    WORD_LISTS,
    Lexicon,
    Match,
)
from jurybox.sample import Turn
from jurybox.scoring.rules.phrases import Phrases, fold
from jurybox.scoring.rules.text_reader import Amount, Conversation, Families, Lists, WordList
from jurybox.scoring.rules.text_signals import SIGNAL_READERS

NUMERIC_NAMES = (*NUMERIC_SIGNALS, *WORD_COUNTS)
LEXICONS: dict[str, tuple[Match, tuple[str, ...]]] = {
    "stop_words": (
        "whole-word",
        (
            "a",
            "the",
            "i",
            "you",
            "your",
            "and",
            "is",
            "was",
            "to",
            "of",
            "my",
            "about",
            "me",
            "it",
            "that",
            "last",
            "week",
            "we",
            "so",
            "how",
        ),
    ),
    "bright_words": ("whole-word", ("happy", "great", "love")),
    "dark_words": ("whole-word", ("sad", "worry", "hard", "lonely")),
    "negations": ("whole-word", ("not", "don't", "never")),
    "memory_claims": ("pattern", ("as you told me", "you mentioned", "as we discussed")),
    "word_families": ("whole-word", ("mother mum mom", "wedding married")),
    "distress_cues": ("pattern", ("I'm (so|) sad",)),
    "abbreviations": ("word-start", ("e.g.", "asap")),
}


def see(name: str, response: str, user: str = "", turns: tuple[Turn, ...] = ()) -> Amount:
    words, lists = [], Lists()
    folded, heard = fold(response), fold(user)
    earlier = fold("\n\n".join(turn.content for turn in turns if turn.role == "user"))
    for name_of in SIGNAL_LEXICONS.get(name, ()):
        match, phrases = LEXICONS[name_of]
        lexicon = Lexicon(name=name_of, phrases=phrases, match=match)
        find = Phrases({1: lexicon}).find
        if name_of in WORD_LISTS:
            words.append(WordList(lexicon))
        elif name_of in FAMILIES:
            lists = lists._replace(families=Families(lexicon))
        elif name_of in HEARD_LEXICONS:
            texts = {"user": heard, "earlier": earlier}
            hits = {name: find(each.text).get(1) for name, each in texts.items()}
            lists = lists._replace(hits={name: each for name, each in hits.items() if each})
        else:
            lists = lists._replace(hits={"response": find(folded.text).get(1, ())})
    reading = Conversation(folded, heard, turns, ())
    return SIGNAL_READERS[name](reading, lists._replace(words=tuple(words)))


def number(name: str, response: str, user: str = "", turns: tuple[Turn, ...] = ()) -> float:
    return round(see(name, response, user, turns).number, 6)


def quoted(name: str, response: str, user: str = "", turns: tuple[Turn, ...] = ()) -> list[str]:
    quote = see(name, response, user, turns).quote
    return [] if quote is None else [each.words for each in quote(name)]


def says(role: str, content: str) -> Turn:
    return Turn(role="user" if role == "user" else "assistant", content=content)


def test_every_signal_that_a_document_may_name_can_be_seen() -> None:
    assert {*SIGNAL_READERS} == {*SIGNALS, *NUMERIC_SIGNALS, *WORD_COUNTS}
    assert set(SIGNAL_LEXICONS) <= set(NUMERIC_SIGNALS)
    assert set(WORD_LISTS) <= {each for names in SIGNAL_LEXICONS.values() for each in names}


# Distress, families, letters


def test_distress_is_whole_in_the_message_and_half_in_a_recent_turn() -> None:
    assert number("distress", "", "I'm so sad") == 1
    assert number("distress", "", "The film was sad") == 0
    before = says("user", "I'm sad")
    later = tuple(says("user", "Yes.") for _ in range(3))
    assert number("distress", "", "Yes.", (before, says("assistant", "Oh."))) == 0.5
    assert number("distress", "", "Yes.", (before, *later[:2])) == 0.5
    assert number("distress", "", "Yes.", (before, *later)) == 0
    assert number("distress", "", "Yes.", (says("assistant", "I'm sad"),)) == 0
    assert quoted("distress", "", "Well, I'm so SAD") == ["I'm so SAD"]
    assert quoted("distress", "", "Yes.", (says("user", "Hello"), before)) == ["I'm sad"]


def test_kindred_words_are_the_same_or_of_one_family() -> None:
    assert number("kindred_words", "Your mum and her garden", "My mother has a garden") == 2
    assert number("kindred_words", "Your dad", "My mother") == 0
    assert number("kindred_words", "Your mum", "") == 0
    assert quoted("kindred_words", "Your Mum", "My mother") == ["Mum"]


def test_content_of_the_message_turns_and_letters_are_counted() -> None:
    assert number("user_content", "", "My dog and the dog of Anna") == 2
    assert number("earlier_turns", "", "", (says("user", "A"), says("assistant", "B"))) == 1
    assert number("word_letters", "I am here") == round(7 / 3, 6)
    assert number("word_letters", "") == 0


# Mood


@pytest.mark.parametrize(
    ("text", "mood"),
    [
        ("", 0),
        ("The table is brown", 0),
        ("I am happy", 1),
        ("So sad and so worried", -1),
        ("Happy, yet sad", 0),
        ("Great, great, and a little sad", 0.333333),
        ("I'm not happy", -1),
        ("I am not that happy", -1),
        ("Not that it matters much, happy", 1),  # the negation is too far away
        ("I'm not sad", 0),  # who isn't sad needn't be happy
        ("don't worry, be happy", 1),
        ("Sadly, a crusade", -1),
        ("crusade", 0),
    ],
)
def test_mood_is_the_balance_of_bright_and_dark_words(text: str, mood: float) -> None:
    assert number("sentiment", text) == mood


def test_mood_words_are_quoted() -> None:
    assert quoted("sentiment", "I'm HAPPY, not sad, but it's hard") == ["HAPPY", "hard"]


# Topics


def test_the_topic_is_the_users_content_words_in_any_form() -> None:
    user = "My dogs are barking about the new neighbor"
    assert number("topic_overlap", "Does your dog bark at the neighbors?", user) == 0.6
    assert quoted("topic_overlap", "Does your Dog bark?", user) == ["Dog", "bark"]
    assert number("topic_overlap", "That is the way it was", user) == 0


def test_topic_overlap_is_their_share_of_what_the_response_says() -> None:
    assert number("topic_overlap", "Dogs bark at cats", "my dog") == 0.25
    assert number("topic_overlap", "the dog", "my dog") == 1
    assert number("topic_overlap", "", "my dog") == 0
    assert number("topic_overlap", "so it is", "so it is") == 0


def test_content_words_count_each_stem_once() -> None:
    assert number("content_words", "The dog and the dogs run") == 2
    assert number("content_words", "It is that") == 0
    assert number("content_share", "The dog and the dogs run") == round(2 / 6, 6)
    assert number("content_share", "") == 0


def test_an_echo_is_the_share_of_triples_that_are_the_users() -> None:
    assert number("echo", "I am so tired", "I am so tired") == 1
    assert number("echo", "You feel I am so", "I am so tired") == round(1 / 3, 6)
    assert number("echo", "so tired", "so tired") == 0  # too short for a triple
    assert quoted("echo", "You feel I am so", "i am so tired") == ["I am so"]


# Continuity

BEFORE = (says("user", "My sister Anna is getting married"), says("assistant", "How lovely"))


def test_earlier_words_come_from_earlier_turns_and_not_from_the_message() -> None:
    assert number("earlier_words", "How is Anna?", "Hello", BEFORE) == 1
    assert quoted("earlier_words", "How is Anna?", "Hello", BEFORE) == ["Anna"]
    assert number("earlier_words", "How is Anna?", "Anna says hello", BEFORE) == 0
    assert number("earlier_words", "How is Anna?", "Hello") == 0


@pytest.mark.parametrize(
    ("response", "turns", "kept", "false"),
    [
        ("As you told me, your sister Anna is the one", BEFORE, 1, 0),
        ("As you told me last week, your brother is ill", BEFORE, 0, 1),
        ("As you told me last week, your sister is ill", (), 0, 1),
        ("As we discussed.", BEFORE, 1, 0),
        ("As we discussed.", (), 0, 1),
        ("You mentioned Anna. You mentioned a horse!", BEFORE, 1, 1),
        ("You mentioned a horse. And Anna?", BEFORE, 0, 1),  # the next sentence is no part of it
        ("Your sister sounds lovely", BEFORE, 0, 0),
    ],
)
def test_a_memory_is_kept_only_where_it_was_said(
    response: str, turns: tuple[Turn, ...], kept: int, false: int
) -> None:
    assert number("kept_memory", response, "Hello", turns) == kept
    assert number("false_memory", response, "Hello", turns) == false


def test_what_only_the_message_says_is_neither_a_memory_nor_an_invention_c17() -> None:
    assert number("kept_memory", "You mentioned a horse", "I ride a horse") == 0
    assert number("false_memory", "You mentioned a horse", "I ride a horse") == 0
    assert number("kept_memory", "As we discussed, work is hard", "I'm stressed about work") == 0
    turns = (says("user", "I ride a horse"),)
    assert number("kept_memory", "You mentioned a horse", "Hi", turns) == 1
    assert quoted("false_memory", "You MENTIONED a horse", "Hi") == ["You MENTIONED"]


def test_a_memory_is_kept_where_at_least_half_of_it_was_said() -> None:
    turns = (says("user", "My mother likes tea."), says("assistant", "Has she got a parrot?"))
    assert number("kept_memory", "You mentioned your mum", "Hi", turns) == 1
    assert number("kept_memory", "You mentioned your mum, so tell her jokes", "Hi", turns) == 1
    assert number("false_memory", "You mentioned your mum's blue boat sank", "Hi", turns) == 1
    assert number("kept_memory", "Tea is fine, as we discussed.", "Hi", turns) == 1
    assert number("false_memory", "Chess is fine, as we discussed.", "Hi", turns) == 1
    # What the assistant said, the user didn't tell.
    assert number("false_memory", "You mentioned a parrot", "Hi", turns) == 1
    assert number("kept_memory", "As we discussed, parrot", "Hi", turns) == 1


def test_what_the_system_was_told_counts_as_said() -> None:
    turns = (Turn(role="system", content="The user has a horse."),)
    assert number("kept_memory", "You mentioned a horse", "Hi", turns) == 1


def test_said_before_is_the_share_of_triples_from_own_earlier_turns() -> None:
    turns = (says("assistant", "I am here for you"), says("user", "it is all so bad"))
    assert number("said_before", "I am here for you", "", turns) == 1
    assert number("said_before", "It is all so bad", "", turns) == 0
    assert number("said_before", "I am here for you") == 0


# Questions


def test_questions_are_counted_however_many_marks_they_have() -> None:
    assert number("question_count", "Why? And how??") == 2
    assert number("question_count", "What???") == 1
    assert number("question_count", "No.") == 0


# Fluency


def test_repetition_is_the_share_of_triples_that_were_there_before() -> None:
    assert number("repetition", "he is great . he is great .") == 0.25
    assert quoted("repetition", "he is great . He is great .") == ["He is great"]
    assert number("repetition", "the the the the the the") == 0.75
    assert number("repetition", "every word is another one") == 0
    assert number("repetition", "") == 0


# For the ear


def test_lengths_are_counted_in_words_that_are_spoken() -> None:
    text = "Well, it's fine. I don't mind at all!"
    assert number("spoken_words", text) == 8
    assert number("sentence_words", text) == 4
    assert number("sentence_words", "") == 0


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Just talk to me", 0),
        ("See https://example.com now", 3),  # the address, and its two slashes
        ("Write to a@b.example", 1),
        ("It is 3 or 42 or 2025", 0),
        ("It is 1,234,567", 1),
        ("Do it (e.g. today) ASAP", 3),
        ("and/or", 1),
    ],
)
def test_what_is_hard_to_say_is_counted(text: str, count: int) -> None:
    assert number("hard_to_say", text) == count


def test_a_number_or_an_address_is_never_quoted() -> None:
    assert quoted("hard_to_say", "Call 0123 456 789 (soon)") == ["("]


# All of them

TEXTS = st.text(alphabet="ab hotw's? \n.,!\u00df\U0001f642\u4f60n't1(@", max_size=60)


@given(name=st.sampled_from(NUMERIC_NAMES), response=TEXTS, user=TEXTS, earlier=TEXTS)
def test_any_text_has_the_same_number_each_time_and_quotes_what_stands_there(
    name: str, response: str, user: str, earlier: str
) -> None:
    turns = (says("user", earlier), says("assistant", user))
    amount = see(name, response, user, turns)
    assert amount.number == see(name, response, user, turns).number
    texts = {"response": response, "user": user, "earlier": earlier}
    for quote in amount.quote(name) if amount.quote else ():
        assert texts[quote.text][quote.start :].startswith(quote.words)


REPEATED = (
    "how sad? you mentioned a dog. ", "a", "a ", "'", "? ", "you mentioned ", "bcd", "9", "the the",
)  # fmt: skip


@pytest.mark.parametrize("name", NUMERIC_NAMES)
def test_a_long_text_takes_time_that_grows_with_its_length_alone(name: str) -> None:
    def work(size: int) -> None:
        # Together: a text whose time is a square of its length makes a square of all of them.
        for text in REPEATED:
            long = text * (size // len(text))
            see(name, long, long, (says("user", long), says("assistant", long)))

    assert growth.grows_with_size_alone(work, 20_000)
