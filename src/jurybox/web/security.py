"""Access control: tokens, allowed hosts, and protection of writes (CSRF)."""

import asyncio
import hashlib
import ipaddress
import secrets
import time
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from fastapi import APIRouter, Query
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from jurybox.web.app_state import ServeSettings
from jurybox.web.error_pages import PageError, answer_to, is_api
from jurybox.web.template_engine import CSRF, page_response

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_TEXT_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; sandbox"
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, a browser would send `Origin: null` with our own forms, and writes are
    # checked by their origin. Other sites get no referrer either way.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}
_HEADER: Final = "X-Jurybox-CSRF"
_SIGNED_IN: Final = "signed_in"
_OPEN: Final = ("/login", "/static/")
_OURS: Final = ("same-origin", "none")
_SESSION_SECONDS: Final = 12 * 3600
_MAX_BODY: Final = 1_000_000
_BODY_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.5


class Guard:
    """Checks every request before a page sees it."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._token = None if settings.token is None else _digest(settings.token)
        self._sessions: set[str] = set()
        self._one_wrong = asyncio.Lock()

    def middleware(self) -> list[Middleware]:
        """Return the layers around the application, the outermost first."""
        settings = self._settings
        hosts = _AnyAddress if settings.addresses else TrustedHostMiddleware
        return [
            Middleware(BaseHTTPMiddleware, dispatch=_with_headers),
            Middleware(hosts, allowed_hosts=sorted(settings.names), www_redirect=False),
            Middleware(
                SessionMiddleware,
                secret_key=secrets.token_hex(32),  # new at each start, which ends all sessions
                # Browsers share cookies among all ports of a host.
                session_cookie=f"jurybox_session_{settings.port}",
                max_age=None if settings.token is None else _SESSION_SECONDS,
                same_site="strict",
            ),
            Middleware(RequestBodyLimitMiddleware, max_body_size=_MAX_BODY),
            Middleware(BaseHTTPMiddleware, dispatch=self._checked),
        ]

    def router(self) -> APIRouter:
        """Return the routes for signing in and out."""
        router = APIRouter(include_in_schema=False)
        router.add_api_route("/login", _ask, methods=["GET", "HEAD"])
        router.add_api_route("/login", self._sign_in, methods=["POST"])
        router.add_api_route("/logout", self._sign_out, methods=["POST"])
        return router

    async def _checked(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        try:
            await self._check(request)
        except (PageError, HTTPException) as error:
            return answer_to(request, error)
        return await call_next(request)

    async def _check(self, request: Request) -> None:
        query = parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if "\x00" in request.scope["path"] or any("\x00" in text for _, text in query):
            raise PageError(400)  # stores refuse NUL
        if _is_foreign(request):
            raise PageError(403)
        given = [(name, text) for name, text in query if text]
        if len(given) < len(query) and request.method != "POST" and not is_api(request.scope):
            # A form also sends its empty fields, which an address is better without.
            page = request.scope["raw_path"].decode("ascii").rpartition("/")[2]
            where = f"./{page}?{urlencode(given)}" if given else f"./{page}"
            raise HTTPException(303, headers={"Location": where})
        by_token = await self._let_in(request)
        if request.method == "POST":
            await _take_form(request, by_token=by_token)

    async def _let_in(self, request: Request) -> bool:
        """Require the token if one is set; return True if the request itself contains it."""
        if self._token is None:
            return False
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            if await self._is_token(token):
                return True
            raise _needs_token()
        if request.session.get(_SIGNED_IN) in self._sessions or request.url.path.startswith(_OPEN):
            return False
        if is_api(request.scope):
            raise _needs_token()
        raise HTTPException(303, headers={"Location": f"/login{_next(request)}"})

    async def _is_token(self, text: str) -> bool:
        # Compares hashes in constant time, so that timing reveals nothing, not even the length.
        if self._token is not None and secrets.compare_digest(_digest(text.strip()), self._token):
            return True
        async with self._one_wrong:  # serializes wrong guesses
            await asyncio.sleep(_PAUSE_SECONDS)
        return False

    async def _sign_in(self, request: Request) -> Response:
        form = form_of(request)
        wanted = _safe_path(form.get("next", "/"))
        if not await self._is_token(form.get("token", "")):
            return _login_page(request, wanted, wrong=True)
        request.session.clear()
        request.session[_SIGNED_IN] = secrets.token_urlsafe()
        self._sessions.add(request.session[_SIGNED_IN])
        return RedirectResponse(wanted, 303)

    async def _sign_out(self, request: Request) -> Response:
        self._sessions.discard(request.session.get(_SIGNED_IN, ""))
        request.session.clear()
        return RedirectResponse("/login", 303)


class _AnyAddress(TrustedHostMiddleware):
    """Accepts any IP address as host, for a server that listens on all addresses.

    Another site's host name can point here (DNS rebinding), but an IP address can't.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            ipaddress.ip_address(urlsplit(f"//{Headers(scope=scope).get('host')}").hostname or "")
        except ValueError:
            await super().__call__(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of the form that was sent; none if the request isn't one."""
    form: Mapping[str, str] = getattr(request.state, "form", {})
    return form


async def _with_headers(request: Request, call_next: RequestResponseEndpoint) -> Response:
    began = time.perf_counter()
    try:
        response = await call_next(request)
    except Exception as error:  # noqa: BLE001 - no client ever sees a traceback
        response = answer_to(request, error)
    is_text = response.headers.get("content-type", "").startswith("text/plain")
    kept = request.url.path.startswith("/static/")
    response.headers.update(_HEADERS)
    response.headers["Content-Security-Policy"] = _TEXT_POLICY if is_text else _POLICY
    response.headers["Cache-Control"] = "no-cache" if kept else "no-store"
    response.headers["Server-Timing"] = f"app;dur={1000 * (time.perf_counter() - began):.1f}"
    return response


def _is_foreign(request: Request) -> bool:
    """Return whether another site sent the request; followed links are allowed."""
    headers = request.headers
    site = headers.get("sec-fetch-site", "none")
    if request.method == "POST":
        # In addition to the CSRF token: pages at another port of this host could set our cookie.
        origin = headers.get("origin")
        foreign = origin is not None and urlsplit(origin).netloc != headers["host"]
        return foreign or site not in _OURS
    followed = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest"))
    return site not in _OURS and followed != ("navigate", "document")


async def _take_form(request: Request, *, by_token: bool) -> None:
    """Read a form, and check that one of our pages sent it."""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await request.body()
    except TimeoutError:
        raise PageError(408) from None
    is_form = request.headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    )
    form = dict(parse_qsl(body.decode("latin-1"), keep_blank_values=True)) if is_form else {}
    sent = form.get("csrf") or request.headers.get(_HEADER, "")
    ours: str = request.session.get(CSRF, "")
    # With the access token, no CSRF token is needed: other sites can't make a browser send it.
    if not by_token and not (ours and secrets.compare_digest(sent.encode(), ours.encode())):
        raise PageError(403)
    request.state.form = form


def _ask(request: Request, wanted: Annotated[str, Query(alias="next")] = "/") -> Response:
    return _login_page(request, wanted)


def _login_page(request: Request, wanted: str, *, wrong: bool = False) -> Response:
    data = {"wanted": wanted, "wrong": wrong, "title": "Sign in"}
    return page_response(request, "login.html", data, 403 if wrong else 200)


def _next(request: Request) -> str:
    """Return the query string that returns to a page after signing in."""
    if request.method == "POST":
        return ""
    path, query = request.scope["raw_path"].decode("ascii"), request.url.query
    return f"?next={quote(f'{path}?{query}' if query else path, safe='')}"


def _safe_path(path: str) -> str:
    """Return a path only if it is on this site; `//elsewhere` isn't."""
    safe = path.startswith("/") and not path.startswith("//") and "\\" not in path
    return path if safe and path.isascii() and path.isprintable() else "/"


def _needs_token() -> PageError:
    return PageError(401, headers={"WWW-Authenticate": "Bearer"})


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
