"""Reading how sure a model is from the alternatives to its first word."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answering import logprobs, reply
from jurybox.judging.evidence_votes import probabilities
from jurybox.judging.flow import Defect, ModelReply

WORDS = ("yes", "no")


def test_each_word_has_its_share() -> None:
    assert probabilities(reply({"yes": 0.75, "no": 0.25}), WORDS) == pytest.approx(
        {"yes": 0.75, "no": 0.25}
    )


def test_spellings_of_a_word_count_together() -> None:
    masses = {"Yes": 0.2, " yes": 0.1, "YES.": 0.05, '"yes"': 0.05, "**Yes**": 0.1, "No\n": 0.25}
    others = {"Maybe": 0.1, "yesterday": 0.1, "": 0.05}
    found = probabilities(reply(masses | others), WORDS)
    assert found == pytest.approx({"yes": 0.5 / 0.75, "no": 0.25 / 0.75})


def test_the_sides_of_a_pair_are_words_too() -> None:
    assert probabilities(reply({"A": 0.6, " B": 0.2, "C": 0.2}), ("A", "B")) == pytest.approx(
        {"A": 0.75, "B": 0.25}
    )


def test_a_word_that_is_no_alternative_has_nothing() -> None:
    assert probabilities(reply({"Yes": 0.9}), WORDS) == {"yes": 1.0, "no": 0.0}


def test_a_model_without_probabilities_is_a_defect_that_says_so() -> None:
    found = probabilities(ModelReply(text="yes"), WORDS)
    assert isinstance(found, Defect)
    assert "gave no token probabilities" in found.problem


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "null",
        "[]",
        "7",
        '"yes"',
        '{"content": 5}',
        '{"content": [null]}',
        '{"content": [{"top_logprobs": null}]}',
        '{"content": [{"top_logprobs": [{"token": "yes"}]}]}',
        '{"content": [{"top_logprobs": [{"token": "yes", "logprob": "high"}]}]}',
        '{"content": [{"top_logprobs": [{"token": 1, "logprob": 0}]}]}',
        '{"content": [{"top_logprobs": [{"token": "yes", "logprob": NaN}]}]}',
        '{"content": [{"top_logprobs": [{"token": "yes", "logprob": 1e999}]}]}',
    ],
)
def test_garbage_is_a_defect_of_one_line(text: str) -> None:
    found = probabilities(ModelReply(text="yes", logprobs=text), WORDS)
    assert isinstance(found, Defect)
    assert found.problem.startswith("its token probabilities can't be read: ")
    assert "\n" not in found.problem


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"content": null}',
        '{"content": []}',
        '{"content": [{}]}',
        logprobs({"Maybe": 0.9, "yes": 0.0004, "no": 0.0004}),
    ],
)
def test_too_little_mass_says_nothing(text: str) -> None:
    found = probabilities(ModelReply(text="", logprobs=text), WORDS)
    assert isinstance(found, Defect)
    assert "the model would answer neither `yes` nor `no`" in found.problem


def test_a_thousandth_is_just_enough() -> None:
    assert probabilities(reply({"yes": 0.00101, "x": 0.9}), WORDS) == {"yes": 1.0, "no": 0.0}


@given(
    st.dictionaries(
        st.one_of(st.sampled_from(["yes", "Yes", " no", "NO!", "A", "B"]), st.text(max_size=5)),
        st.floats(-50, 5),
        max_size=20,
    )
)
def test_together_they_are_all_of_it(found: dict[str, float]) -> None:
    top = [{"token": token, "logprob": value} for token, value in found.items()]
    given_text = json.dumps({"content": [{"top_logprobs": top}]})
    read = probabilities(ModelReply(text="", logprobs=given_text), WORDS)
    if not isinstance(read, Defect):
        assert set(read) == set(WORDS)
        assert sum(read.values()) == pytest.approx(1)
        assert all(0 <= each <= 1 for each in read.values())
