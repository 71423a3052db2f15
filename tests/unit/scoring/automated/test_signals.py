"""What the specification leaves open about the signals; its own demands are proven by C9."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.judging.safety import scan
from jurybox.rubric.rules import SIGNALS
from jurybox.scoring.rules.phrases import Folded, Hit, Phrases, fold
from jurybox.scoring.rules.rule_report import MOST_QUOTES, Quote
from jurybox.scoring.rules.text_reader import Conversation, Lists
from jurybox.scoring.rules.text_signals import OWN_PHRASES, SIGNAL_READERS


def see(name: str, response: str, user: str = "") -> tuple[int, tuple[Quote, ...]]:
    folded = fold(response)
    reading = Conversation(folded, fold(user), (), scan(response))
    count, quote = SIGNAL_READERS[name](reading, Lists(hits={"response": hits(name, folded)}))
    return count, () if quote is None else quote(name)


def hits(name: str, folded: Folded) -> list[Hit]:
    lexicons = dict(enumerate(OWN_PHRASES.get(name, ()), start=1))
    return list(Phrases(lexicons).find(folded.text).get(1, []))


def quotes(name: str, response: str, user: str = "") -> list[tuple[str, int]]:
    return [(quote.words, quote.start) for quote in see(name, response, user)[1]]


def test_formatting_is_quoted_in_the_order_of_the_text() -> None:
    assert quotes("formatting", "1. One\n2. Two is _so_ *good*") == [
        ("1.", 0),
        ("2.", 7),
        ("_", 17),
    ]
    assert see("formatting", "1. One\n2. Two is _so_ *good*")[0] == 5


def test_an_emphasis_ends_on_its_line() -> None:
    assert see("formatting", "A _long\nline_ of it")[0] == 0


def test_a_question_is_quoted_with_the_word_before_it() -> None:
    assert quotes("question", "Well, are you sure?") == [("sure?", 14)]
    assert quotes("question", "Is it 42?") == [("?", 8)]
    assert quotes("question", "Is it (this)? Or that?") == [("?", 12)]
    assert quotes("question", "?") == [("?", 0)]


def test_each_helpful_question_is_counted_once_and_quoted_by_the_word_that_addresses() -> None:
    text = "Do you know what you want? Who knows? Is it YOUR dog, or you yourself?"
    assert see("helpful_question", text)[0] == 2
    assert quotes("helpful_question", text) == [("you", 3), ("YOUR", 44)]


def test_the_first_words_that_both_share_are_quoted_in_the_spelling_of_the_response() -> None:
    assert quotes("shared_words", "About  Work:\n\nabout work", "work about") == [
        ("work", 20),
        ("About", 0),
    ]
    assert see("shared_words", "a b c d e", "e d c b a")[0] == 5
    assert len(quotes("shared_words", "a b c d e", "e d c b a")) == MOST_QUOTES


def test_only_whole_words_are_shared() -> None:
    assert see("shared_words", "The worker", "The-work work er")[0] == 0
    assert see("shared_words", "work", "work")[0] == 1


def test_what_both_share_is_quoted_only_where_it_is_a_word() -> None:
    assert see("shared_words", "a@b.example 4111111111111111", "4111111111111111 a@b.example") == (
        2,
        (),
    )


@given(
    user=st.lists(st.sampled_from(["a", "b", "C", "d.", "\n", "e'f"])),
    response=st.lists(st.sampled_from(["A", "b", "c", "d", "\n", "e\u2019f"])),
    more=st.integers(0, 60),
)
def test_a_long_message_shares_the_same_words_as_a_short_one(
    user: list[str], response: list[str], more: int
) -> None:
    message = " ".join([*user, *(f"w{number}" for number in range(more))])
    text = " ".join(response)
    expected = set(message.lower().split()) & set(text.replace("\u2019", "'").lower().split())
    assert see("shared_words", text, message)[0] == len(expected)


def test_a_finding_of_the_safety_scan_is_quoted_with_its_kind() -> None:
    count, (quote,) = see("unsafe_content", "Go on, kill yourself")
    assert count == 1
    assert quote.source == "unsafe_content (self-harm)"
    assert "kill yourself" in quote.words


@pytest.mark.parametrize("name", SIGNALS)
def test_a_long_text_takes_time_in_proportion(name: str) -> None:
    if name == "unsafe_content":
        return  # what the scan takes is proven where it is
    for text in ("_a ", "you ", "you? ", "?", "*", "!", ".", "\n- ", "_", "a\n"):
        # A square of this length would take a minute.
        folded = fold(text * (30_000 // len(text)))
        reading = Conversation(folded, folded, (), ())
        count, quote = SIGNAL_READERS[name](reading, Lists(hits={"response": hits(name, folded)}))
        assert count >= 0
        assert quote is None or len(quote(name)) <= MOST_QUOTES
