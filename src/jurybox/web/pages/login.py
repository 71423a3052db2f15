"""Showing the token once, in a form: in an address it would end up in logs and histories."""

import asyncio
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from jurybox.web.guard import cookie, form_of, query_of
from jurybox.web.rendering import page_response
from jurybox.web.sessions import SESSION, Sessions, own_name

_PAUSE = 0.5


def login_routes(sessions: Sessions) -> list[BaseRoute]:
    """Return the addresses for coming in and going out."""
    one_wrong = asyncio.Lock()

    async def ask(request: Request) -> Response:
        return _form(request, wanted=dict(query_of(request)).get("next", "/"))

    async def enter(request: Request) -> Response:
        form = form_of(request)
        if not sessions.knows(form.get("token", "").strip()):
            # One after the other, so that guessing takes for ever.
            async with one_wrong:
                await asyncio.sleep(_PAUSE)
            return _form(request, wanted=_wanted(form), wrong=True)
        response = RedirectResponse(_wanted(form), 303)
        response.headers["Set-Cookie"] = cookie(own_name(SESSION, request.scope), sessions.begin())
        return response

    async def leave(request: Request) -> Response:
        name = own_name(SESSION, request.scope)
        sessions.end(request.cookies.get(name, ""))
        response = RedirectResponse("/login", 303)
        response.headers["Set-Cookie"] = cookie(name, "", ends=True)
        return response

    return [
        Route("/login", ask, methods=["GET"]),
        Route("/login", enter, methods=["POST"]),
        Route("/logout", leave, methods=["POST"]),
    ]


def _wanted(form: Mapping[str, str]) -> str:
    """Return the page to go to, which is one of ours: `//elsewhere` isn't."""
    path = form.get("next", "/")
    safe = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if safe and path.isascii() and "\\" not in path else "/"


def _form(request: Request, *, wanted: str, wrong: bool = False) -> Response:
    data = {"wanted": wanted, "wrong": wrong, "title": "Sign in"}
    return page_response(request, "login.html", data, 403 if wrong else 200)
