"""The endpoint of `jurybox model serve` on a real model: our own client, and plain HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import msgspec
import pytest

import real_models
from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.models.local.model import LocalModel
from jurybox.models.local.runtimes import chosen
from jurybox.models.openai import OpenAIModel, openai_client
from jurybox.rubric.model import Generation
from jurybox.running.ports import ModelTrouble
from jurybox.sample import Turn
from jurybox.web.model_server.completions import Served
from jurybox.web.model_server.serving import open_port, serve

SMALL: str = real_models.SMALL
# Without room for anything but the score, so that it always comes to its end.
SCHEMA = (
    '{"type":"object","properties":{"score":{"enum":[1,2]}},"required":["score"],'
    '"additionalProperties":false}'
)


def asked(**more: Any) -> ModelRequest:  # noqa: ANN401 - whatever a request has
    turns = (
        Turn(role="system", content="Be brief."),
        Turn(role="user", content="Is Canberra the capital of Australia?"),
    )
    given = {"generation": Generation(max_tokens=4), "messages": turns, **more}
    return ModelRequest(model=f"openai/{SMALL}", **given)


def embedded() -> LocalModel:
    return LocalModel(SMALL, real_models.file_of(SMALL), chosen())


@contextlib.asynccontextmanager
async def serving() -> AsyncGenerator[str]:
    """Serve the model and give the address; what is loaded is loaded once in this process."""
    port = open_port(0)
    url = f"http://127.0.0.1:{port.getsockname()[1]}/v1"
    ready, stopped = asyncio.Event(), asyncio.Event()
    served = Served(id=SMALL, model=embedded())
    task = asyncio.create_task(serve(served, port, ready.set, stopped))
    await ready.wait()
    yield url
    stopped.set()
    await task


def replies(*requests: ModelRequest) -> list[ModelReply]:
    """Ask all at once, each over a client of its own."""

    async def main() -> list[ModelReply]:
        async with serving() as url:
            clients = [OpenAIModel(SMALL, openai_client(url)) for _ in requests]
            pairs = zip(clients, requests, strict=True)
            got = await asyncio.gather(*(client.complete(each) for client, each in pairs))
            for client in clients:
                await client.aclose()
            return got

    return asyncio.run(main())


def test_over_http_a_model_says_what_it_says_in_process() -> None:
    async def in_process() -> ModelReply:
        model = embedded()
        reply = await model.complete(asked(logprobs=3))
        await model.aclose()
        return reply

    (reply,) = replies(asked(logprobs=3))
    inner = asyncio.run(in_process())
    assert (reply.text, reply.usage) == (inner.text, inner.usage)
    assert (reply.model, reply.fingerprint) == (inner.model, inner.fingerprint)
    assert (reply.finish_reason, reply.sent) == (inner.finish_reason, inner.sent)
    assert reply.latency_model_ms is not None
    assert [numbers(each) for each in tokens(reply)] == [numbers(each) for each in tokens(inner)]


def tokens(reply: ModelReply) -> list[dict[str, Any]]:
    assert reply.logprobs is not None
    return msgspec.json.decode(reply.logprobs)["content"]


def numbers(token: dict[str, Any]) -> list[tuple[str, float]]:
    return [(each["token"], each["logprob"]) for each in (token, *token["top_logprobs"])]


def test_a_reply_is_held_to_a_schema_and_a_seed() -> None:
    request = asked(schema=SCHEMA, generation=Generation(max_tokens=40, temperature=1.0, seed=3))
    first, second = replies(request, request)
    assert msgspec.json.decode(first.text)["score"] in {1, 2}
    assert first.text == second.text


def test_two_clients_at_once_get_their_own_answers() -> None:
    turns = [(Turn(role="user", content=f"Count from {number}."),) for number in (1, 7)]
    requests = [asked(messages=messages) for messages in turns]
    together = replies(*requests)
    alone = [replies(request)[0] for request in requests]
    assert [reply.text for reply in together] == [reply.text for reply in alone]


def test_a_prompt_that_is_too_long_is_refused_with_both_numbers() -> None:
    async def main() -> None:
        async with serving() as url:
            client = OpenAIModel(SMALL, openai_client(url))
            long = (Turn(role="user", content="word " * 9000),)
            with pytest.raises(
                ModelTrouble, match=r"the prompt has \d+ tokens.* at most"
            ) as caught:
                await client.complete(asked(messages=long))
            assert not caught.value.retry
            await client.aclose()

    asyncio.run(main())


def test_a_client_that_goes_away_frees_the_model_for_the_next() -> None:
    """A prompt and a reply of thousands of tokens would keep it for many minutes."""

    async def main() -> ModelReply:
        async with serving() as url, aiohttp.ClientSession() as session:
            endless = {
                "model": SMALL,
                "messages": [{"role": "user", "content": "word " * 3000}],
                "max_tokens": 4000,
            }
            going = asyncio.create_task(session.post(f"{url}/chat/completions", json=endless))
            await asyncio.sleep(0.5)
            going.cancel()
            client = OpenAIModel(SMALL, openai_client(url))
            reply = await client.complete(asked())
            await client.aclose()
            return reply

    assert asyncio.run(main()).text
