"""Recording a conversation and having it again, word for word."""

import asyncio
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome
from jurybox.models.recorded import Recorder, ReplayModel, request_key
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn, Usage

REQUEST = ModelRequest(
    model="openai/m",
    messages=(Turn(role="user", content="How good?"),),
    generation=Generation(),
)
REPLY = ModelReply(
    text="שלום 😀\n",
    usage=Usage(input_tokens=3, output_tokens=1),
    sent=Generation(temperature=1.0),
    seed_sent=False,
    model="m-1",
    fingerprint="fp",
    finish_reason="stop",
    latency_ms=12.5,
    logprobs="[1.0]",
)


def changed(**fields: object) -> ModelRequest:
    return msgspec.structs.replace(REQUEST, **fields)


def record(*exchanges: tuple[ModelRequest, Outcome]) -> ReplayModel:
    with closing(Recorder("calls.jsonl")) as recorder:
        for exchange in exchanges:
            recorder(*exchange)
    return ReplayModel("calls.jsonl")


def ask(model: ReplayModel, request: ModelRequest = REQUEST) -> ModelReply:
    return asyncio.run(model.complete(request))


def test_what_was_recorded_comes_back_whole() -> None:
    model = record((REQUEST, REPLY))
    assert model.endpoint == "replay/calls.jsonl"
    assert ask(model) == REPLY


@pytest.mark.parametrize(
    "other",
    [
        changed(vote=1),
        changed(schema="{}"),
        changed(generation=Generation(seed=43)),
        changed(generation=Generation(temperature=0.7)),
        changed(messages=(Turn(role="system", content="How good?"),)),
        changed(messages=(Turn(role="user", content="How good"),)),
    ],
)
def test_a_request_that_differs_in_anything_is_another(other: ModelRequest) -> None:
    model = record((REQUEST, REPLY), (other, ModelReply(text="other")))
    assert request_key(other) != request_key(REQUEST)
    assert ask(model, other).text == "other"
    assert ask(model) == REPLY


def test_a_request_that_is_not_there_is_named() -> None:
    with pytest.raises(ModelError) as caught:
        ask(record((REQUEST, REPLY)), changed(vote=2))
    key = request_key(changed(vote=2))[:12]
    assert str(caught.value) == (
        f"request {key} (vote 2, `How good?`) isn't in the file; record it again"
    )
    assert not caught.value.retry


def test_equal_requests_get_their_replies_in_order_and_none_twice() -> None:
    model = record((REQUEST, ModelReply(text="1")), (REQUEST, ModelReply(text="2")))
    assert [ask(model).text, ask(model).text] == ["1", "2"]
    with pytest.raises(ModelError, match="was sent more times than it was recorded"):
        ask(model)


def test_a_file_answers_under_its_own_name_too() -> None:
    model = record((REQUEST, REPLY))
    assert ask(model, changed(model="replay/calls.jsonl")) == REPLY


def test_several_models_are_told_apart_by_their_names_alone() -> None:
    other = changed(model="openai/n")
    model = record((REQUEST, REPLY), (other, ModelReply(text="n")))
    assert ask(model, other).text == "n"
    with pytest.raises(ModelError, match="was recorded from several models"):
        ask(model, changed(model="replay/calls.jsonl"))


def test_a_failure_is_recorded_and_happens_again() -> None:
    model = record((REQUEST, Failure(kind="timeout", message="late")))
    with pytest.raises(ModelError, match="late") as caught:
        ask(model)
    assert (caught.value.kind, caught.value.retry) == ("timeout", False)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "that isn't a recorded exchange"),
        ("[]", "that isn't a recorded exchange"),
        ('{"key": "x"}', "that isn't a recorded exchange"),
        ("\xff", "that isn't a recorded exchange"),
    ],
)
def test_a_line_that_is_none_is_refused_with_its_number(line: str, problem: str) -> None:
    record((REQUEST, REPLY))
    with Path("calls.jsonl").open("ab") as file:
        file.write(line.encode("latin-1"))
    with pytest.raises(InputError, match=rf"^calls\.jsonl:2: {problem}"):
        ReplayModel("calls.jsonl")


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"^nowhere\.jsonl: can't be read \(No such file"):
        ReplayModel("nowhere.jsonl")
