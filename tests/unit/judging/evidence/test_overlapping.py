"""How much of a statement's words another text has, in whatever form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.judging.evidence.text_overlap import Vocabulary, content


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat is on the mat.", ("cat", "mat")),
        ("It costs 1,250.50 dollars", ("cost", 1250.5, "dollar")),
        ("twenty-one pilots", (20.0, 1.0, "pilot")),
        ("three and a half", (3.0, 0.5)),
        ("Jumping, jumped, jumps", ("jump", "jump", "jump")),
        ("the patient\u2019s X-ray", ("patient", "x", "ray")),
        ("", ()),
        ("of the to", ()),
        ("_ -- !", ()),
        ("\u0663 apples", (3.0, "appl")),
    ],
)
def test_the_content_of_a_text(text: str, words: tuple[str | float, ...]) -> None:
    assert content(text) == words


@pytest.mark.parametrize("text", ["10\u00b2 metres", "6.02 x 10\u00b2\u00b3", "\u2460 first", "½"])
def test_figures_that_are_no_plain_numbers_are_words(text: str) -> None:
    assert content(text)


@pytest.mark.parametrize(
    ("statement", "response", "share"),
    [
        ("Water boils at 100 degrees", "Water is boiling at 100 degrees", 1.0),
        ("Water boils at 100 degrees", "Water boils at 90 degrees", 0.75),
        ("It has three legs", "It has 3 legs", 1.0),
        ("It has three legs", "There are 4 arms", 0.0),
        ("organisation", "the organisational chart", 1.0),
        ("of the", "anything", 1.0),
        ("gold", "", 0.0),
    ],
)
def test_the_share_that_is_there(statement: str, response: str, share: float) -> None:
    assert Vocabulary(response).coverage(statement) == pytest.approx(share)


@given(st.text(max_size=80), st.text(max_size=80))
def test_a_share_is_a_share_and_more_words_never_lower_it(one: str, other: str) -> None:
    share = Vocabulary(other).coverage(one)
    assert 0 <= share <= 1
    assert Vocabulary(f"{other} more words here").coverage(one) >= share
    assert Vocabulary(one).coverage(one) == 1
