"""Stored replies under another rubric: which of them answers what."""

import msgspec

import stores
from jurybox.engine.records import ENCODER, outcome_text
from jurybox.engine.replay import ByThread
from jurybox.judging.flow import Failure, ModelReply, ModelRequest
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn


def narrow(question: str, vote: int = 0) -> ModelRequest:
    return ModelRequest(
        model="local/m",
        messages=(Turn(role="system", content="You."), Turn(role="user", content=question)),
        generation=Generation(),
        vote=vote,
        logprobs=20,
        shared=(2,),
    )


def told(*requests: ModelRequest) -> ByThread:
    """Return a story in which every question was answered with its own words."""
    return ByThread(
        stores.exchange_row(
            0,
            number,
            material=ENCODER.encode(request).decode(),
            outcome=outcome_text(ModelReply(text=request.messages[-1].content)),
        )
        for number, request in enumerate(requests)
    )


def test_a_narrow_question_gets_its_own_answer_whatever_the_order() -> None:
    one, other = narrow("Is it red?"), narrow("Is it blue?")
    story = told(one, other)
    assert [story(each).text for each in (other, one)] == ["Is it blue?", "Is it red?"]


def test_a_narrow_question_that_was_never_asked_gets_no_other_ones_answer() -> None:
    story = told(narrow("Is it red?"), narrow("Is it blue?"))
    for question in (narrow("Is it green?"), narrow("Is it red?", vote=1)):
        assert isinstance(story(question), Failure)


def test_a_question_for_a_verdict_is_answered_in_its_place() -> None:
    asked = msgspec.structs.replace(narrow("Score it by the old rubric."), logprobs=0, shared=())
    story = told(asked, narrow("Is it red?"))
    anew = msgspec.structs.replace(
        asked, messages=(Turn(role="user", content="Score it by the new rubric."),)
    )
    assert story(anew).text == "Score it by the old rubric."
