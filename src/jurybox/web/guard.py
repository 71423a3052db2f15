"""What stands before every page: who may ask, under which name, and what may write."""

import asyncio
import traceback
from collections.abc import Callable, Mapping
from typing import Final, cast
from urllib.parse import parse_qsl, quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jurybox.web.headers import with_headers
from jurybox.web.hosts import is_known, is_ours, may_look
from jurybox.web.place import ServeSettings, place_of
from jurybox.web.refusals import Refusal, is_api, refuse
from jurybox.web.rendering import CSRF
from jurybox.web.sessions import FIELD, HEADER, MARK, SESSION, Sessions, own_name

FORM: Final = "jurybox.form"
BODY: Final = "jurybox.body"
QUERY: Final = "jurybox.query"

_OPEN: Final = ("/login", "/static/")
_METHODS: Final = frozenset({"GET", "HEAD", "POST"})
_MOST_FIELDS: Final = 100
_LARGEST: Final = 1_000_000
_SLOWEST: Final = 10.0
_PAUSE: Final = 0.5
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_JSON_TYPE: Final = "application/json"

Pairs = tuple[tuple[str, str], ...]


class Guard:
    """Lets a request through to the pages, or answers it itself."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServeSettings,
        sessions: Sessions,
        writable: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._settings = settings
        self._sessions = sessions
        self._writable = writable
        self._one_wrong = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        send = with_headers(send, kept=scope["path"].startswith("/static/"))
        told = _Told(send)
        request = Request(scope, receive)
        try:
            receive = await self._checked(request, told, receive)
            await self._app(scope, receive, told.send)
        except Refusal as refusal:
            await refuse(request, refusal)(scope, receive, told.send)
        except _Answered as answer:
            await answer.response(scope, receive, told.send)
        except Exception as error:  # noqa: BLE001 - nobody out there ever sees a traceback
            place_of(request).say(f"a fault of ours: {type(error).__name__}: {error}")
            for line in traceback.format_exc().splitlines():
                place_of(request).say(f"  {line}")
            if not told.begun:
                await refuse(request, Refusal(500))(scope, receive, told.send)

    async def _checked(self, request: Request, told: "_Told", receive: Receive) -> Receive:
        scope, headers = request.scope, request.headers
        if len(headers.getlist("host")) != 1 or not is_known(
            headers["host"], self._settings.names, addresses=self._settings.addresses
        ):
            raise Refusal(421)
        if scope["method"] not in _METHODS:
            refusal = Refusal(405)
            refusal.headers = {"Allow": "GET, HEAD, POST"}
            raise refusal
        if any(letter in scope["path"] for letter in "\x00\ufffd"):
            raise Refusal(404)
        scope[QUERY] = _pairs(scope["query_string"])
        if scope["method"] != "POST" and not may_look(headers):
            raise Refusal(403)
        # Read by Starlette, as everywhere: a cookie of somebody else that is none spoils no other.
        cookies = request.cookies
        mark = cookies.get(own_name(MARK, scope), "")
        if not self._sessions.made(mark):
            mark = self._sessions.mark()
            told.cookie = cookie(own_name(MARK, scope), mark)
        scope[CSRF] = mark
        by_token = await self._let_in(request, cookies)
        if scope["method"] == "POST" and self._writable(scope):
            return await self._write(request, cookies, receive, by_token=by_token)
        return receive

    async def _let_in(self, request: Request, cookies: Mapping[str, str]) -> bool:
        """Ask for the token where one is needed; True where it was shown itself."""
        if not self._sessions.needed:
            return False
        path: str = request.scope["path"]
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            if self._sessions.knows(token.strip()):
                return True
            await self.delay()
            raise _needs_token()
        if self._sessions.holds(
            cookies.get(own_name(SESSION, request.scope), "")
        ) or path.startswith(_OPEN):
            return False
        if is_api(request.scope):
            raise _needs_token()
        raise _Answered(RedirectResponse(f"/login{_wanted(request.scope)}", 303))

    async def delay(self) -> None:
        """Wait, one wrong token after the other: guessing takes for ever."""
        async with self._one_wrong:
            await asyncio.sleep(_PAUSE)

    async def _write(
        self, request: Request, cookies: Mapping[str, str], receive: Receive, *, by_token: bool
    ) -> Receive:
        """Read what is sent, and see that it was sent by one of our pages."""
        headers = request.headers
        if not is_ours(headers, request.scope["scheme"]):
            raise Refusal(403)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in {_FORM_TYPE, _JSON_TYPE}:
            raise Refusal(415)
        body = await _read(headers, receive)
        form = dict(_pairs(body)) if kind == _FORM_TYPE else {}
        sent = form.get(FIELD) or headers.get(HEADER.decode(), "")
        # No other site can have a browser send the token itself.
        if not by_token and not self._sessions.agree(
            cookies.get(own_name(MARK, request.scope), ""), sent
        ):
            raise Refusal(403)
        request.scope[BODY], request.scope[FORM] = body, form
        return _again(body, receive)


class _Told:
    """Sends, and remembers whether it has begun; the first answer brings the cookie."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self.cookie: str | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            if self.cookie is not None:
                MutableHeaders(scope=message).append("Set-Cookie", self.cookie)
        await self._send(message)


class _Answered(Exception):  # noqa: N818 - it is an answer, not a fault
    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def _needs_token() -> Refusal:
    refusal = Refusal(401)
    refusal.headers = {"WWW-Authenticate": "Bearer"}
    return refusal


def _wanted(scope: Scope) -> str:
    """Return, for the address of the form, what to show after it; what was sent is lost."""
    if scope["method"] == "POST":
        return ""
    path = scope.get("raw_path") or scope["path"].encode()
    query = scope["query_string"]
    return f"?next={quote(path + b'?' + query if query else path, safe='')}"


def cookie(name: str, value: str, *, ends: bool = False) -> str:
    """Return a cookie that no script reads and no other site sends."""
    over = "; Max-Age=0" if ends else ""
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict{over}"


def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of the form that was sent."""
    return cast("Mapping[str, str]", request.scope.get(FORM, {}))


def body_of(request: Request) -> bytes:
    """Return what was sent."""
    return cast("bytes", request.scope.get(BODY, b""))


def query_of(request: Request) -> Pairs:
    """Return what stands behind the question mark, in order."""
    return cast("Pairs", request.scope.get(QUERY, ()))


def _pairs(text: bytes) -> Pairs:
    try:
        found = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError:
        raise Refusal(400) from None
    if any("\x00" in part for pair in found for part in pair):
        raise Refusal(400)
    return tuple(found)


async def _read(headers: Headers, receive: Receive) -> bytes:
    """Read all that is sent, as long as it is neither too much nor too slow."""
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > _LARGEST:
        raise Refusal(413)
    body = bytearray()
    try:
        async with asyncio.timeout(_SLOWEST):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refusal(400)
                body += message.get("body", b"")
                if len(body) > _LARGEST:
                    raise Refusal(413)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Refusal(408) from None


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that hands out what was read once more."""
    told = False

    async def receiving() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving
