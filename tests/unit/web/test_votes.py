"""What each judge said by itself."""

import json

import pytest

from jurybox.engine.records import ExchangeRow
from jurybox.web.pages.sample_page import votes_of

REQUEST = '{"model":"openai/m@1","generation":{},"messages":[]}'


def exchange(text: str, role: str = "judge") -> ExchangeRow:
    outcome = json.dumps({"reply": {"text": text}})
    return ExchangeRow(
        run_id="r",
        number=0,
        position=0,
        role=role,
        key="",
        frame="",
        material=REQUEST,
        outcome=outcome,
        notes="{}",
    )


def test_scores_and_reasons_are_read_from_json() -> None:
    reply = {"scores": {"a": 2, "b": 3.5}, "reasoning": {"a": "x" * 700}}
    (vote,) = votes_of([exchange("hello", "target"), exchange(json.dumps(reply))])
    assert (vote.exchange, vote.model) == (2, "openai/m@1")
    first, second = vote.said
    assert (first.criterion, first.score, first.reasoning.left) == ("a", "2", 100)
    assert (second.criterion, second.score, second.reasoning.shown) == ("b", "3.5", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Score: 3",
        "[1]",
        "[" * 100_000,
        "7",
        '{"scores": [1]}',
        '{"scores": {"a": {}}}',
        '{"reasoning": "so"}',
    ],
)
def test_a_reply_in_any_other_form_is_left_as_it_stands(text: str) -> None:
    assert votes_of([exchange(text)]) == []
