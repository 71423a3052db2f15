"""The Messages API: what goes out, what comes back, what is trouble."""

import asyncio
from typing import Any

import msgspec
import pytest

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import Frame, ModelReply, ModelRequest
from jurybox.models.anthropic import AnthropicModel, anthropic_client
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn, Usage
from loopback import Fault, Loopback, good, message, status, unless

REQUEST = ModelRequest(
    model="anthropic/m",
    messages=(
        Turn(role="system", content="Judge."),
        Turn(role="user", content="This."),
        Turn(role="assistant", content="So so."),
        Turn(role="user", content="Again."),
    ),
    generation=Generation(temperature=0.7, max_tokens=50),
    schema="{}",
)


def ask(
    *script: Fault, request: ModelRequest = REQUEST
) -> tuple[ModelReply | ModelError, list[Any]]:
    async def main() -> tuple[ModelReply | ModelError, list[Any]]:
        async with Loopback(*script) as server:
            model = AnthropicModel("m", anthropic_client(server.url, "key-123"))
            try:
                outcome: ModelReply | ModelError = await model.complete(request)
            except ModelError as trouble:
                outcome = trouble
            await model.aclose()
            return outcome, server.requests

    return asyncio.run(main())


def marked(*script: Fault, request: ModelRequest) -> list[Any]:
    """Ask twice, and return what went out."""

    async def main() -> list[Any]:
        async with Loopback(*script) as server:
            model = AnthropicModel("m", anthropic_client(server.url, "key-123"))
            for _ in range(2):
                await model.complete(request)
            await model.aclose()
            return server.requests

    return asyncio.run(main())


def reply_to(body: bytes) -> ModelReply:
    outcome, _ = ask(good(body))
    assert isinstance(outcome, ModelReply), outcome
    return outcome


def trouble_of(fault: Fault) -> ModelError:
    outcome, _ = ask(fault)
    assert isinstance(outcome, ModelError), outcome
    return outcome


def test_the_system_message_stands_apart() -> None:
    _, (exchange,) = ask(good(message()))
    assert exchange.path == "/v1/messages"
    assert exchange.headers["x-api-key"] == "key-123"
    assert exchange.headers["anthropic-version"] == "2023-06-01"
    assert exchange.body == {
        "model": "m",
        "system": "Judge.",
        "messages": [
            {"role": "user", "content": "This."},
            {"role": "assistant", "content": "So so."},
            {"role": "user", "content": "Again."},
        ],
        "max_tokens": 50,
        "temperature": 0.7,
    }


def test_top_p_is_sent_only_where_it_says_something() -> None:
    generation = Generation(top_p=0.5)
    _, (exchange,) = ask(
        good(message()), request=msgspec.structs.replace(REQUEST, generation=generation)
    )
    assert exchange.body["top_p"] == 0.5


def test_a_reply_tells_what_was_sent_and_what_it_took() -> None:
    reply = reply_to(message())
    assert reply.text == "fine"
    assert reply.sent == Generation(temperature=0.7, max_tokens=50)
    assert not reply.seed_sent
    assert reply.model == "model-2025-01-01"
    assert reply.finish_reason == "stop"
    # What came from the cache is input too.
    assert reply.usage == Usage(input_tokens=12, output_tokens=3, cached_tokens=4)


def test_what_many_requests_share_is_marked_for_the_cache_of_prompts() -> None:
    asked = ModelRequest(
        model="anthropic/m",
        messages=(Turn(role="user", content="The rubric. The sample."),),
        generation=Generation(),
        frame=Frame("The rubric.", "le."),
    )
    _, second = marked(good(message()), good(message()), request=asked)
    mark = {"cache_control": {"type": "ephemeral"}}
    assert second.body["messages"] == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "The rubric.", **mark},
                {"type": "text", "text": " The sample."},
            ],
        }
    ]


def test_an_endpoint_without_such_a_cache_gets_no_marks() -> None:
    asked = ModelRequest(
        model="anthropic/m",
        messages=(Turn(role="user", content="The rubric. The sample."),),
        generation=Generation(),
        shared=(len("The rubric."),),
    )
    refusal = {"message": "messages.0.content.0.cache_control: Extra inputs are not permitted"}
    sent = marked(status(400, refusal), good(message()), good(message()), request=asked)
    contents = [type(each.body["messages"][0]["content"]) for each in sent]
    assert contents == [list, str, str]


def test_what_was_written_into_the_cache_is_input_and_told_apart() -> None:
    body = msgspec.json.decode(message())
    body["usage"] = {
        "input_tokens": 8,
        "output_tokens": 3,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 100,
    }
    usage = reply_to(msgspec.json.encode(body)).usage
    assert usage == Usage(input_tokens=112, output_tokens=3, cached_tokens=4, written_tokens=100)


def test_blocks_of_text_are_joined_and_others_left_out() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "one, "},
        {"type": "text", "text": "two"},
    ]
    assert reply_to(message(*blocks)).text == "one, two"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_the_reason_to_stop_is_translated(theirs: str, ours: str) -> None:
    assert reply_to(message(stop_reason=theirs)).finish_reason == ours


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_a_reply_without_text_stands_where_it_says_why(reason: str) -> None:
    assert reply_to(message(stop_reason=reason, content=[])).text == ""


@pytest.mark.parametrize(
    "body", [message(content=[]), message(content=None), b"{}", b'{"content": 3}', b"", b"{"]
)
def test_a_reply_without_text_is_trouble_otherwise(body: bytes) -> None:
    trouble = trouble_of(good(body))
    assert (trouble.kind, trouble.retry) == ("unreadable", True)


def test_a_reply_has_its_latency_and_no_time_of_the_model() -> None:
    reply = reply_to(message())
    assert reply.latency_ms is not None
    assert reply.latency_ms > 0
    assert reply.latency_model_ms is None


def test_usage_that_is_missing_is_unknown() -> None:
    assert reply_to(message(usage=None)).usage == Usage()
    assert reply_to(message(usage={"input_tokens": True, "output_tokens": 10**30})).usage == Usage()
    assert reply_to(message(usage={"input_tokens": 1})).usage == Usage(input_tokens=1)


def test_overloaded_is_asked_again_and_more_slowly() -> None:
    trouble = trouble_of(status(529, {"type": "overloaded_error", "message": "Overloaded"}))
    assert (trouble.kind, trouble.retry) == ("rate-limit", True)
    assert str(trouble) == "HTTP 529: Overloaded"


def test_a_refusal_is_quoted() -> None:
    error = {"type": "invalid_request_error", "message": "max_tokens: must be positive"}
    trouble = trouble_of(status(400, error))
    assert (trouble.kind, trouble.retry) == ("refused", False)
    assert str(trouble) == "HTTP 400: max_tokens: must be positive"


@pytest.mark.parametrize(("code", "fatal"), [(400, False), (401, True), (404, True)])
def test_a_refused_key_or_model_is_fatal(code: int, *, fatal: bool) -> None:
    assert trouble_of(status(code)).fatal is fatal


@pytest.mark.parametrize(
    "said", ["`temperature` is deprecated for this model.", "temperature: Extra inputs are not ok"]
)
def test_a_temperature_that_is_not_taken_is_left_out(said: str) -> None:
    refuse = status(400, {"type": "invalid_request_error", "message": said})
    reply, exchanges = ask(unless({"temperature"}, refuse, good(message())))
    assert isinstance(reply, ModelReply)
    assert [("temperature" in exchange.body) for exchange in exchanges] == [True, False]
    assert reply.sent == Generation(temperature=1.0, max_tokens=50)


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/messages"])
def test_an_address_may_be_written_in_every_usual_way(end: str) -> None:
    client = anthropic_client(f"https://host.example{end}", "key")
    assert client.address == "https://host.example"
