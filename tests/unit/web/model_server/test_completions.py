"""The endpoint over a model that says what it is told to; a real one is in the contract suite."""

import asyncio
import contextlib
import io
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest

from jurybox.errors import InputError
from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.models.scripted import ScriptedModel
from jurybox.running.ports import Model, ModelTrouble
from jurybox.sample import Usage
from jurybox.web.model_server.completions import LARGEST_BODY, Served
from jurybox.web.model_server.serving import open_port, serve

LOGPROBS = (
    '{"content":[{"token":"Hi","logprob":-0.5,"top_logprobs":[{"token":"Hi","logprob":-0.5}]}]}'
)
REPLY = ModelReply(
    text="Hi",
    usage=Usage(input_tokens=12, output_tokens=3, cached_tokens=4),
    model="m sha256:abc",
    fingerprint="runtime 1",
    finish_reason="stop",
    latency_model_ms=12.4,
    logprobs=LOGPROBS,
)
BODY: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
CHAT = "/v1/chat/completions"


class Server:
    """A server under test, and a client for it."""

    def __init__(self, port: int, stopped: asyncio.Event, session: aiohttp.ClientSession) -> None:
        self.port = port
        self.stopped = stopped
        self._session = session

    def call(self, method: str, path: str, **more: Any) -> Any:  # noqa: ANN401 - aiohttp's
        return self._session.request(method, f"http://127.0.0.1:{self.port}{path}", **more)

    async def ask(self, method: str, path: str, **more: Any) -> tuple[int, Any, Any]:  # noqa: ANN401
        async with self.call(method, path, **more) as response:
            return response.status, response.headers, await response.json()

    async def raw(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        return answer


@contextlib.asynccontextmanager
async def serving(model: Model) -> AsyncGenerator[Server]:
    port = open_port(0)
    number = port.getsockname()[1]
    ready, stopped = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(
        serve(Served(id="m", names=("alias",), created=5, model=model), port, ready.set, stopped)
    )
    await ready.wait()
    async with aiohttp.ClientSession() as session:
        yield Server(number, stopped, session)
    stopped.set()
    await task
    assert port.fileno() == -1


def said(*script: ModelReply | ModelTrouble) -> ScriptedModel:
    """Return a model; its first line is for who loads it."""
    return ScriptedModel([REPLY, *script])


def run(model: Model, talk: Callable[[Server], Awaitable[Any]]) -> Any:  # noqa: ANN401
    async def main() -> Any:  # noqa: ANN401
        async with serving(model) as server:
            return await talk(server)

    return asyncio.run(main())


def test_an_answer_has_openais_shape() -> None:
    model = said(REPLY)
    more = {"logprobs": True, "top_logprobs": 1}
    status, headers, answer = run(model, lambda s: s.ask("POST", CHAT, json={**BODY, **more}))
    assert status == 200
    assert headers["openai-processing-ms"] == "12"
    assert headers["Cache-Control"] == "no-store"
    assert answer.pop("id").startswith("chatcmpl-")
    assert answer.pop("created") > 1_700_000_000
    token = {"token": "Hi", "logprob": -0.5, "bytes": None}
    assert answer == {
        "object": "chat.completion",
        "model": "m sha256:abc",
        "system_fingerprint": "runtime 1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi", "refusal": None},
                "logprobs": {"content": [{**token, "top_logprobs": [token]}], "refusal": None},
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 3,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    }
    assert model.requests[1].logprobs == 1


def test_probabilities_come_without_alternatives_where_none_are_wanted() -> None:
    model = said(REPLY)
    _, _, answer = run(model, lambda s: s.ask("POST", CHAT, json={**BODY, "logprobs": True}))
    assert answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"] == []
    # A runtime gives none at all otherwise.
    assert model.requests[1].logprobs == 1


def test_two_requests_without_a_seed_draw_differently() -> None:
    async def talk(server: Server) -> None:
        for _ in range(2):
            await server.ask("POST", CHAT, json=BODY)

    model = said(REPLY, REPLY)
    run(model, talk)
    first, second = (request.generation.seed for request in model.requests[1:])
    assert first != second


@pytest.mark.parametrize("usage", [False, True])
def test_a_stream_has_the_text_the_reason_and_an_end(*, usage: bool) -> None:
    async def talk(server: Server) -> tuple[str, str]:
        more = {"stream": True, "stream_options": {"include_usage": usage}}
        async with server.call("POST", CHAT, json={**BODY, **more}) as response:
            return response.headers["Content-Type"], await response.text()

    kind, text = run(said(REPLY), talk)
    assert kind.partition(";")[0] == "text/event-stream"
    *events, done, end = text.split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    first, last, *rest = [msgspec.json.decode(event.removeprefix("data: ")) for event in events]
    assert first["object"] == "chat.completion.chunk"
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": "Hi"}
    assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")
    assert [event["usage"]["total_tokens"] for event in rest] == ([15] if usage else [])


def test_the_model_is_listed_and_described() -> None:
    async def talk(server: Server) -> list[Any]:
        return [await server.ask("GET", f"/v1/models{name}") for name in ("", "/m", "/alias")]

    (_, _, listed), *described = run(said(), talk)
    model = {"id": "m", "object": "model", "created": 5, "owned_by": "jurybox"}
    assert listed == {"object": "list", "data": [model]}
    assert [each for _, _, each in described] == [model, model]


@pytest.mark.parametrize("name", ["m", "alias", "local/m"])
def test_a_model_has_more_than_one_name(name: str) -> None:
    assert run(said(REPLY), lambda s: s.ask("POST", CHAT, json={**BODY, "model": name}))[0] == 200


JSON = {"Content-Type": "application/json"}
REFUSALS: dict[str, tuple[str, str, dict[str, Any], tuple[int, str | None, str | None]]] = {
    "path": ("GET", "/v1/nothing", {}, (404, None, "unknown_url")),
    "root": ("GET", "/", {}, (404, None, "unknown_url")),
    "model": ("POST", CHAT, {"json": {**BODY, "model": "x"}}, (404, "model", "model_not_found")),
    "described": ("GET", "/v1/models/x", {}, (404, "model", "model_not_found")),
    "method": ("GET", CHAT, {}, (405, None, "method_not_allowed")),
    "preflight": ("OPTIONS", CHAT, {}, (405, None, "method_not_allowed")),
    "field": ("POST", CHAT, {"json": {**BODY, "n": 2}}, (400, "n", "unsupported_value")),
    "garbage": ("POST", CHAT, {"data": b"\x00{", "headers": JSON}, (400, None, "invalid_json")),
    "form": ("POST", CHAT, {"data": {"a": "b"}}, (415, None, "unsupported_media_type")),
    "text": ("POST", CHAT, {"data": "{}"}, (415, None, "unsupported_media_type")),
    "packed": (
        "POST",
        CHAT,
        {"data": b"{}", "headers": {**JSON, "Content-Encoding": "gzip"}},
        (415, None, "unsupported_media_type"),
    ),
    "large": (
        "POST",
        CHAT,
        {"data": io.BytesIO(b" " * (LARGEST_BODY + 1)), "headers": JSON},
        (413, None, "request_too_large"),
    ),
    "host": ("GET", "/v1/models", {"headers": {"Host": "x.test"}}, (403, None, "host_not_allowed")),
    "like a host": (
        "GET",
        "/v1/models",
        {"headers": {"Host": "127.0.0.1.x.test:80"}},
        (403, None, "host_not_allowed"),
    ),
    "origin": (
        "POST",
        CHAT,
        {"json": BODY, "headers": {"Origin": "https://x.test"}},
        (403, None, "origin_not_allowed"),
    ),
    "no origin": (
        "POST",
        CHAT,
        {"json": BODY, "headers": {"Origin": "null"}},
        (403, None, "origin_not_allowed"),
    ),
    "another port": (
        "POST",
        CHAT,
        {"json": BODY, "headers": {"Origin": "http://127.0.0.1:1"}},
        (403, None, "origin_not_allowed"),
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_a_refusal_has_openais_shape_and_its_status(what: str) -> None:
    method, path, more, (status, param, code) = REFUSALS[what]
    model = said(REPLY)
    got, headers, answer = run(model, lambda s: s.ask(method, path, **more))
    error = answer["error"]
    assert (got, error["param"], error["code"]) == (status, param, code)
    assert error["type"] == "invalid_request_error"
    assert error["message"]
    assert not [name for name in headers if name.startswith("Access-Control")]
    assert len(model.requests) == 1, "nothing was asked but to load it"


def test_a_body_without_a_length_is_bounded_too() -> None:
    async def endless() -> AsyncGenerator[bytes]:
        for _ in range(6):
            yield b" " * 1_000_000

    status, _, _ = run(said(), lambda s: s.ask("POST", CHAT, data=endless(), headers=JSON))
    assert status == 413


def test_a_refused_method_says_what_is_allowed() -> None:
    _, headers, _ = run(said(), lambda s: s.ask("GET", CHAT))
    assert headers["Allow"] == "POST"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80"])
def test_this_machine_has_several_names(host: str) -> None:
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert run(said(), lambda s: s.ask("GET", "/v1/models", headers=headers))[0] == 200


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /v1/models HTTP/1.0\r\n\r\n", b"403"),
        (b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: x.test\r\n\r\n", b"40"),
        (b"GET http://x.test/v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n", b"403"),
        (b"garbage\r\n\r\n", b"400"),
    ],
    ids=["no host", "two hosts", "another host in the line", "no HTTP"],
)
def test_requests_that_no_client_sends_are_refused(
    request_: bytes, status: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    head = run(said(), lambda s: s.raw(request_))
    assert head.split(b" ")[1].startswith(status)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("everybody", "status"), [(False, 400), (True, 500)])
def test_trouble_with_a_question_is_the_clients_and_with_the_model_ours(
    *, everybody: bool, status: int
) -> None:
    trouble = ModelTrouble("refused", "too long", retry=False, everybody=everybody)
    got, _, answer = run(said(trouble), lambda s: s.ask("POST", CHAT, json=BODY))
    assert (got, answer["error"]["message"]) == (status, "too long")


def test_a_fault_says_nothing_of_what_was_asked(capfd: pytest.CaptureFixture[str]) -> None:
    def broken(request: ModelRequest) -> ModelReply:
        if request.messages[0].content == "Hello":
            raise ValueError("Hello")
        return REPLY

    status, _, answer = run(ScriptedModel(broken), lambda s: s.ask("POST", CHAT, json=BODY))
    assert status == 500
    assert answer["error"]["type"] == "server_error"
    assert "Hello" not in answer["error"]["message"]
    assert capfd.readouterr() == ("", "")


class Patient:
    """A model that never answers, and notes what becomes of those who ask."""

    endpoint = "patient"

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._loaded = False

    async def complete(self, request: ModelRequest) -> ModelReply:
        del request
        if not self._loaded:
            self._loaded = True
            return REPLY
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return REPLY

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_away_cancels_its_request(*, stream: bool) -> None:
    async def main() -> None:
        model = Patient()
        async with serving(model) as server:
            body = {**BODY, "stream": stream}
            asking = asyncio.create_task(server.ask("POST", CHAT, json=body))
            await model.asked.wait()
            asking.cancel()
            await model.cancelled.wait()
            assert (await server.ask("GET", "/v1/models"))[0] == 200

    asyncio.run(main())


def test_what_is_under_way_is_stopped_with_a_word_when_the_server_ends() -> None:
    async def main() -> tuple[int, Any, Any]:
        model = Patient()
        async with serving(model) as server:
            asking = asyncio.create_task(server.ask("POST", CHAT, json=BODY))
            await model.asked.wait()
            server.stopped.set()
            answer = await asking
            assert model.cancelled.is_set()
            return answer

    status, _, answer = asyncio.run(main())
    assert (status, answer["error"]["code"]) == (503, "server_stopping")


def test_nobody_gets_in_while_the_server_ends() -> None:
    class Slow(Patient):
        """It takes until it is told to end."""

        def __init__(self) -> None:
            super().__init__()
            self.closing, self.closed = asyncio.Event(), asyncio.Event()

        async def aclose(self) -> None:
            self.closing.set()
            await self.closed.wait()

    async def main() -> tuple[int, Any, Any]:
        model = Slow()
        async with serving(model) as server:
            server.stopped.set()
            await model.closing.wait()
            answer = await server.ask("POST", CHAT, json=BODY)
            model.closed.set()
            return answer

    status, _, answer = asyncio.run(main())
    assert (status, answer["error"]["type"]) == (503, "server_error")


def test_a_model_that_cannot_be_loaded_is_one_clear_line() -> None:
    async def main() -> None:
        trouble = ModelTrouble("refused", "can't be loaded", retry=False, everybody=True)
        port = open_port(0)
        served = Served(id="m", model=ScriptedModel([trouble], "local/m"))
        with pytest.raises(InputError, match=r"^local/m: can't be loaded; check the file"):
            await serve(served, port, pytest.fail, asyncio.Event())
        assert port.fileno() == -1

    asyncio.run(main())


def test_a_server_can_be_stopped_before_its_model_is_loaded() -> None:
    async def main() -> None:
        model, stopped = Patient(), asyncio.Event()
        model._loaded = True  # so that the first question waits
        served = Served(id="m", model=model)
        task = asyncio.create_task(serve(served, open_port(0), pytest.fail, stopped))
        await model.asked.wait()
        stopped.set()
        await task
        assert model.cancelled.is_set()

    asyncio.run(main())


def test_a_busy_port_is_one_clear_line() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        number = other.getsockname()[1]
        with pytest.raises(InputError) as caught:
            open_port(number)
    line = f"port {number}: another program uses it; choose another, or 0 for a free one"
    assert str(caught.value) == line


def test_only_this_machine_can_reach_it() -> None:
    with open_port(0) as port:
        assert port.getsockname()[0] == "127.0.0.1"
        assert port.getsockname()[1] > 0
