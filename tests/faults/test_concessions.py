"""Endpoints that won't have a parameter: what goes out instead, and what the reply says of it."""

import asyncio
from typing import Any

import msgspec
import pytest

import loopback
from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.openai import OpenAIModel, openai_client
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn
from loopback import Fault, Loopback, completion, good, status, unless

REQUEST = ModelRequest(
    model="openai/m",
    messages=(Turn(role="system", content="Judge."), Turn(role="user", content="This.")),
    generation=Generation(temperature=0.7, top_p=0.9, max_tokens=50, seed=7),
)
SCHEMA = '{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"string"}}}'
HELD = msgspec.structs.replace(REQUEST, schema=SCHEMA)


def unsupported(name: str) -> Fault:
    said = f"Unsupported parameter: '{name}' is not supported with this model."
    return status(400, {"message": said, "param": name, "code": "unsupported_parameter"})


def ask_twice(
    fault: Fault, request: ModelRequest, logprobs: int = 0
) -> tuple[ModelReply, list[dict[str, Any]]]:
    """Ask twice, and return the second reply and every body that went out."""

    async def main() -> tuple[ModelReply, list[dict[str, Any]]]:
        async with Loopback(fault) as server:
            model = OpenAIModel("m", openai_client(server.url))
            wanted = msgspec.structs.replace(request, logprobs=logprobs)
            await model.complete(wanted)
            reply = await model.complete(wanted)
            await model.aclose()
            return reply, [exchange.body for exchange in server.requests]

    return asyncio.run(main())


def test_everything_is_sent_where_everything_is_taken() -> None:
    reply, (body, _) = ask_twice(good(), HELD)
    assert body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Judge."},
            {"role": "user", "content": "This."},
        ],
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 50,
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "strict": True, "schema": msgspec.json.decode(SCHEMA)},
        },
    }
    # The order of properties is the order in which a model held to the schema writes them.
    properties = body["response_format"]["json_schema"]["schema"]["properties"]
    assert list(properties) == ["b", "a"]
    assert reply.sent == REQUEST.generation
    assert reply.seed_sent


def test_logprobs_are_asked_for_only_on_demand() -> None:
    _, (body, _) = ask_twice(good(), REQUEST)
    assert "logprobs" not in body
    _, (body, _) = ask_twice(good(), REQUEST, logprobs=3)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 3)


def test_logprobs_are_kept_whenever_they_are_offered() -> None:
    offered = {"content": [{"token": "5", "logprob": -0.25}]}
    reply, _ = ask_twice(good(completion(logprobs=offered)), REQUEST)
    assert reply.logprobs is not None
    assert msgspec.json.decode(reply.logprobs) == offered
    reply, _ = ask_twice(good(completion(logprobs=None)), REQUEST)
    assert reply.logprobs is None


@pytest.mark.parametrize("name", ["seed", "temperature", "top_p"])
def test_a_parameter_that_is_not_taken_is_left_out_and_remembered(name: str) -> None:
    reply, bodies = ask_twice(unless({name}, unsupported(name), good()), REQUEST)
    assert [name in body for body in bodies] == [True, False, False]
    sent = {"seed": 42, "temperature": 1.0, "top_p": 1.0}
    assert reply.sent == msgspec.structs.replace(REQUEST.generation, **{name: sent[name]})
    assert reply.seed_sent == (name != "seed")


def test_a_reasoning_model_gets_its_own_limit_and_no_temperature() -> None:
    value = {
        "message": "Unsupported value: 'temperature' does not support 0.7 with this model. "
        "Only the default (1) value is supported.",
        "param": "temperature",
        "code": "unsupported_value",
    }
    limit = {
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
        "param": "max_tokens",
        "code": "unsupported_parameter",
    }
    endpoint = unless(
        {"max_tokens"}, status(400, limit), unless({"temperature"}, status(400, value), good())
    )
    reply, bodies = ask_twice(endpoint, REQUEST)
    assert len(bodies) == 4
    assert bodies[-1]["max_completion_tokens"] == 50
    assert {"max_tokens", "temperature"} & set(bodies[-1]) == set()
    assert reply.sent == Generation(temperature=1.0, top_p=0.9, max_tokens=50, seed=7)


@pytest.mark.parametrize("name", ["logprobs", "top_logprobs"])
def test_logprobs_that_are_not_taken_are_left_out(name: str) -> None:
    _, bodies = ask_twice(unless({name}, unsupported(name), good()), REQUEST, logprobs=2)
    assert len(bodies) == 3
    assert name not in bodies[-1]


def form(body: dict[str, Any]) -> str | None:
    return body.get("response_format", {}).get("type")


@pytest.mark.parametrize(
    "said",
    [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported",
        "This response_format type is unavailable now",
        "Invalid schema for response_format 'reply': 'required' is required to be supplied",
        "json_schema mode is not implemented",
    ],
)
def test_a_schema_gives_way_to_json_and_json_to_text(said: str) -> None:
    refuse = status(400, {"message": said})

    async def only_objects(exchange: loopback.Exchange) -> None:
        await (refuse if form(exchange.body) == "json_schema" else good())(exchange)

    _, bodies = ask_twice(only_objects, HELD)
    assert [form(body) for body in bodies] == ["json_schema", "json_object", "json_object"]
    _, bodies = ask_twice(unless({"response_format"}, refuse, good()), HELD)
    assert [form(body) for body in bodies] == ["json_schema", "json_object", None, None]


def test_422_with_a_list_of_details_is_understood() -> None:
    async def strict(exchange: loopback.Exchange) -> None:
        said = b'{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}'
        if "seed" in exchange.body:
            await exchange.answer(said, status=422)
        else:
            await good()(exchange)

    reply, bodies = ask_twice(strict, REQUEST)
    assert len(bodies) == 3
    assert not reply.seed_sent


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens is too large: 50. This model has at most 40 completion tokens",
        "temperature must be between 0 and 0.5",
        "This model's maximum context length is 8192 tokens; reduce max_tokens or the messages",
        "no such model",
        "",
    ],
)
def test_a_wrong_value_is_the_users_to_mend(said: str) -> None:
    async def main() -> int:
        async with Loopback(status(400, {"message": said})) as server:
            model = OpenAIModel("m", openai_client(server.url))
            with pytest.raises(ModelError) as caught:
                await model.complete(HELD)
            await model.aclose()
            assert not caught.value.retry
            return len(server.requests)

    assert asyncio.run(main()) == 1


def test_giving_way_comes_to_an_end() -> None:
    """An endpoint that refuses everything is believed after everything was tried."""
    said = "unsupported: response_format, max_tokens, max_completion_tokens, temperature, top_p, "

    async def main() -> int:
        async with Loopback(status(400, {"message": f"{said} seed, logprobs"})) as server:
            model = OpenAIModel("m", openai_client(server.url))
            with pytest.raises(ModelError):
                await model.complete(msgspec.structs.replace(HELD, logprobs=1))
            await model.aclose()
            return len(server.requests)

    assert asyncio.run(main()) == 8
