"""One suite over every model: the same request in, a reply or trouble out."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Literal

import msgspec
import pytest

import loopback
import real_models
from jurybox.engine.driver import Callers
from jurybox.engine.ports import Model, ModelError
from jurybox.judging.flow import Failure, ModelReply, ModelRequest
from jurybox.models.anthropic import AnthropicModel, anthropic_client
from jurybox.models.function import FunctionModel
from jurybox.models.local.files import ModelFile
from jurybox.models.local.local_model import LocalModel
from jurybox.models.openai import OpenAIModel, openai_client
from jurybox.models.recorded import Recorder, ReplayModel
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Turn, Usage

REQUEST = ModelRequest(
    model="provider/m",
    messages=(Turn(role="system", content="Judge."), Turn(role="user", content="How good?")),
    generation=Generation(max_tokens=2),
)
USAGE = Usage(input_tokens=12, output_tokens=3, cached_tokens=4)
REPLY = ModelReply(text="fine", usage=USAGE)
VOTES = 20

State = Literal["working", "broken"]
Making = Callable[[State], AbstractAsyncContextManager[Model]]


@asynccontextmanager
async def openai(state: State) -> AsyncGenerator[Model]:
    fault = loopback.good() if state == "working" else loopback.status(401)
    async with loopback.Loopback(fault) as server:
        yield OpenAIModel("m", openai_client(server.url, "key"))


@asynccontextmanager
async def anthropic(state: State) -> AsyncGenerator[Model]:
    fault = loopback.good(loopback.message()) if state == "working" else loopback.status(401)
    async with loopback.Loopback(fault) as server:
        yield AnthropicModel("m", anthropic_client(server.url, "key"))


@asynccontextmanager
async def function(state: State) -> AsyncGenerator[Model]:
    def judge(_: str) -> ModelReply:
        if state == "broken":
            raise ValueError("broken")
        return REPLY

    yield FunctionModel(judge, "python/m:judge")


@asynccontextmanager
async def replay(state: State) -> AsyncGenerator[Model]:
    with closing(Recorder(f"{state}.jsonl")) as recorder:
        for vote in range(VOTES if state == "working" else 0):
            recorder(msgspec.structs.replace(REQUEST, vote=vote), REPLY)
    yield ReplayModel(f"{state}.jsonl")


@asynccontextmanager
async def local(state: State) -> AsyncGenerator[Model]:
    file = real_models.file_of(real_models.SMALL)
    yield LocalModel(real_models.SMALL, file if state == "working" else half(file))


def half(file: ModelFile) -> ModelFile:
    path = Path("half.gguf").absolute()
    path.write_bytes(file.path.read_bytes()[: file.path.stat().st_size // 2])
    return ModelFile(path=path, sha256="0" * 64)


MODELS: dict[str, Making] = {
    "openai": openai,
    "anthropic": anthropic,
    "local": local,
    "function": function,
    "replay": replay,
}
every_model = pytest.mark.parametrize("making", MODELS.values(), ids=MODELS.keys())


@every_model
def test_a_request_gets_a_reply_with_text_and_usage(making: Making) -> None:
    async def main() -> ModelReply:
        async with making("working") as model:
            reply = await model.complete(REQUEST)
            await model.aclose()
            return reply

    reply = asyncio.run(main())
    if making is local:
        # A real model says what it likes.
        assert reply.text
        assert reply.usage.input_tokens
        assert reply.usage.output_tokens == REQUEST.generation.max_tokens
    else:
        assert (reply.text, reply.usage) == ("fine", USAGE)


@every_model
def test_trouble_is_trouble_and_says_what(making: Making) -> None:
    async def main() -> ModelError:
        async with making("broken") as model:
            with pytest.raises(ModelError) as caught:
                await model.complete(REQUEST)
            await model.aclose()
            return caught.value

    trouble = asyncio.run(main())
    # A function that raises an exception refuses nothing.
    kind = "failed" if making is function else "refused"
    assert (trouble.kind, trouble.retry, trouble.retry_after) == (kind, False, None)
    assert str(trouble)


@every_model
def test_many_may_ask_at_once(making: Making) -> None:
    async def main() -> list[ModelReply]:
        async with making("working") as model:
            # A real model answers one after the other, and takes half a second for each.
            votes = 5 if making is local else VOTES
            requests = [msgspec.structs.replace(REQUEST, vote=vote) for vote in range(votes)]
            replies = await asyncio.gather(*(model.complete(request) for request in requests))
            await model.aclose()
            return replies

    (text,) = {reply.text for reply in asyncio.run(main())}
    assert text == "fine" or (making is local and text)


@every_model
def test_closing_twice_or_unused_is_fine(making: Making) -> None:
    async def main() -> None:
        async with making("working") as model:
            await model.aclose()
            await model.complete(REQUEST)
            await model.aclose()
            await model.aclose()

    asyncio.run(main())


@every_model
def test_an_endpoint_has_a_name_that_stays(making: Making) -> None:
    async def main() -> tuple[str, str]:
        async with making("working") as model:
            before = model.endpoint
            await model.complete(REQUEST)
            await model.aclose()
            return before, model.endpoint

    before, after = asyncio.run(main())
    assert before == after != ""


@every_model
def test_a_caller_adds_the_latency_and_the_place_of_trouble(making: Making) -> None:
    async def main() -> None:
        async with making("working") as model:
            reply = await Callers().caller(model)(REQUEST)
            assert isinstance(reply, ModelReply)
            assert reply.latency_ms is not None
            assert reply.latency_ms >= 0
            await model.aclose()
        async with making("broken") as model:
            failure = await Callers().caller(model)(REQUEST)
            assert isinstance(failure, Failure)
            assert failure.message.startswith(f"{model.endpoint}: ")
            await model.aclose()

    asyncio.run(main())


@every_model
def test_after_a_cancelled_request_it_goes_on_answering(making: Making) -> None:
    async def main() -> ModelReply:
        async with making("working") as model:
            task = asyncio.create_task(model.complete(REQUEST))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            reply = await model.complete(REQUEST)
            await model.aclose()
            return reply

    text = asyncio.run(main()).text
    assert text == "fine" or (making is local and text)
