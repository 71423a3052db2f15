"""OpenAI's chat completions, made by one embedded model."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.running.ports import Model, ModelTrouble
from jurybox.web.model_server.refusals import SECURE, Refused, json_response, of_library
from jurybox.web.model_server.replies import Stamp, completion, events
from jurybox.web.model_server.requests import Asked, read_request
from jurybox.web.model_server.visitors import check_visitor

LARGEST_BODY: Final = 4 * 1024 * 1024
_SEEDS: Final = 2**32 - 1
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """A model that is offered to others.

    Attributes:
        id: what it is called.
        names: whatever else it may be called by.
        created: when its file was made, in seconds since 1970.

    """

    id: str
    names: tuple[str, ...] = ()
    created: int = 0
    model: Model


class Completions:
    """The paths of an endpoint, and the requests that are under way."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._under_way: set[asyncio.Task[ModelReply]] = set()
        self._stopping = False

    def application(self) -> web.Application:
        """Return what a server runs."""
        app = web.Application(middlewares=[self._guarded], client_max_size=LARGEST_BODY)
        app.router.add_get("/v1/models", self._list)
        app.router.add_get("/v1/models/{name}", self._describe)
        app.router.add_post("/v1/chat/completions", self._complete)
        return app

    def stop(self) -> None:
        """Stop what is under way, and take nothing more."""
        self._stopping = True
        for task in self._under_way:
            task.cancel()

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse in one shape, whoever refuses."""
        try:
            check_visitor(request)
            return _ending().response() if self._stopping else await handler(request)
        except Refused as refused:
            return refused.response()
        except web.HTTPException as error:
            return of_library(error)
        except web.RequestPayloadError:
            return Refused(400, "the body is cut off or damaged", code="invalid_body").response()
        except Exception as error:  # noqa: BLE001 - what it says may hold words of a conversation
            return Refused(500, f"a fault of the server: {type(error).__name__}").response()

    async def _list(self, _: web.Request) -> web.Response:
        return json_response({"object": "list", "data": [self._described()]})

    async def _describe(self, request: web.Request) -> web.Response:
        self._check_name(request.match_info["name"])
        return json_response(self._described())

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        asked = read_request(await _body(request), secrets.randbelow(_SEEDS))
        self._check_name(asked.model)
        reply = await self._reply(asked)
        stamp = Stamp(id=f"chatcmpl-{secrets.token_hex(12)}", created=int(time.time()))
        headers = {"openai-processing-ms": f"{reply.latency_model_ms or 0:.0f}"}
        if not asked.stream:
            return json_response(completion(asked, reply, stamp), headers=headers)
        response = web.StreamResponse(headers={**SECURE, **headers})
        response.content_type = "text/event-stream"
        # Who has gone doesn't want the rest.
        with contextlib.suppress(ConnectionError):
            await response.prepare(request)
            for event in events(asked, reply, stamp):
                await response.write(event)
            await response.write_eof()
        return response

    async def _reply(self, asked: Asked) -> ModelReply:
        request = ModelRequest(
            model=self._served.id,
            messages=asked.messages,
            generation=asked.generation,
            schema=asked.schema,
            logprobs=0 if asked.logprobs is None else max(asked.logprobs, 1),
        )
        task = asyncio.ensure_future(self._served.model.complete(request))
        self._under_way.add(task)
        try:
            await asyncio.wait([task])
        finally:
            # The client has gone, unless it is done.
            task.cancel()
            self._under_way.discard(task)
        if task.cancelled():
            raise _ending()
        try:
            return task.result()
        except ModelTrouble as trouble:
            # A question that this model can't answer, or a model that can't answer any.
            raise Refused(500 if trouble.everybody else 400, str(trouble)) from None

    def _check_name(self, name: str) -> None:
        served = self._served
        if name.removeprefix("local/") not in {served.id, *served.names}:
            message = f"there is no model `{name}` here; `{served.id}` is"
            raise Refused(404, message, param="model", code="model_not_found")

    def _described(self) -> dict[str, Any]:
        served = self._served
        return {
            "id": served.id,
            "object": "model",
            "created": served.created,
            "owned_by": "jurybox",
        }


def _ending() -> Refused:
    return Refused(503, "the server is ending", code="server_stopping")


async def _body(request: web.Request) -> bytes:
    # Another type, such as a form's, is what a web page can send without being asked first.
    if request.content_type != "application/json":
        raise Refused(415, "the body isn't `application/json`", code="unsupported_media_type")
    if request.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise Refused(415, "the body is packed; send it as it is", code="unsupported_media_type")
    if (request.content_length or 0) > LARGEST_BODY:
        raise web.HTTPRequestEntityTooLarge(LARGEST_BODY)
    return await request.read()
