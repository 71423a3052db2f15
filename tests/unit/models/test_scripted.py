"""The double that ships."""

import asyncio

import pytest

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.scripted import ScriptedModel
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn

REQUEST = ModelRequest(
    model="m", messages=(Turn(role="user", content="x"),), generation=Generation()
)


def ask(model: ScriptedModel) -> ModelReply:
    return asyncio.run(model.complete(REQUEST))


def test_lines_are_said_in_order_and_requests_kept() -> None:
    reply = ModelReply(text="whole")
    model = ScriptedModel(["one", reply])
    assert ask(model) == ModelReply(text="one", sent=Generation(), model="m")
    assert ask(model) is reply
    assert model.requests == [REQUEST, REQUEST]


def test_trouble_in_the_script_is_raised() -> None:
    model = ScriptedModel([ModelError("timeout", "late", retry=True), "fine"])
    with pytest.raises(ModelError, match="late"):
        ask(model)
    assert ask(model).text == "fine"


def test_a_function_may_answer() -> None:
    assert ask(ScriptedModel(lambda request: request.model)).text == "m"


def test_a_script_that_has_ended_is_trouble() -> None:
    with pytest.raises(ModelError, match="the script has no more lines") as caught:
        ask(ScriptedModel([]))
    assert not caught.value.retry
