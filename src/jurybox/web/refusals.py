"""What is said to a request that can't be answered: never more than a person needs."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from jurybox.errors import IncompleteError, InputError
from jurybox.web.place import place_of
from jurybox.web.rendering import json_response, page_response

_WORDS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("the request can't be read", "check the address"),
    401: ("this needs the token", "send it as `Authorization: Bearer`, or sign in"),
    403: ("the request doesn't come from these pages", "load the page again and repeat it"),
    404: ("there is no such page", "begin at the list of runs"),
    405: ("that can't be done here", "use another method"),
    408: ("the request came too slowly", "send it again"),
    413: ("the request is too large", "send less"),
    415: ("that form of content isn't read here", "send a form or JSON"),
    421: ("this server isn't known by that name", "use the address that it printed"),
    500: ("something went wrong here", "the server's own window says more"),
    503: ("the store can't be read", "the server's own window says why"),
}


class Refusal(Exception):  # noqa: N818 - it is an answer, not a fault
    """An answer that isn't what was asked for."""

    def __init__(self, status: int, problem: str = "", mend: str = "", where: str = "") -> None:
        usual = _WORDS.get(status, _WORDS[500])
        super().__init__(problem or usual[0])
        self.status = status
        self.problem = problem or usual[0]
        self.mend = mend or usual[1]
        self.where = where
        self.headers: dict[str, str] = {}


def is_api(scope: Scope) -> bool:
    """Say whether a program is asking."""
    path: str = scope["path"]
    return path == "/api" or path.startswith("/api/")


def error_data(refusal: Refusal) -> dict[str, Any]:
    """Return a refusal as programs get it."""
    told = {"problem": refusal.problem, "mend": refusal.mend, "where": refusal.where}
    return {"error": told}


def refuse(request: Request, refusal: Refusal) -> Response:
    """Return the answer: JSON to a program, a page to a person."""
    if is_api(request.scope):
        response = json_response(error_data(refusal), refusal.status)
    else:
        title = HTTPStatus(refusal.status).phrase
        response = page_response(
            request, "error.html", {"refusal": refusal, "title": title}, refusal.status
        )
    response.headers.update(refusal.headers)
    return response


def _refused(request: Request, error: Exception) -> Response:
    return refuse(request, error if isinstance(error, Refusal) else Refusal(500))


def _by_router(request: Request, error: Exception) -> Response:
    """Give what the router finds wrong in our own words."""
    if not isinstance(error, HTTPException):
        return refuse(request, Refusal(500))
    refusal = Refusal(error.status_code)
    refusal.headers = dict(error.headers or {})
    return refuse(request, refusal)


def _bad_input(request: Request, error: Exception) -> Response:
    if not isinstance(error, InputError):
        return refuse(request, Refusal(500))
    return refuse(request, Refusal(400, error.problem, error.mend, error.where))


def _incomplete(request: Request, error: Exception) -> Response:
    # The message may tell where files are, which is nobody's business but the owner's.
    place_of(request).say(str(error))
    return refuse(request, Refusal(503))


HANDLERS: Final[Mapping[Any, Any]] = {
    Refusal: _refused,
    HTTPException: _by_router,
    InputError: _bad_input,
    IncompleteError: _incomplete,
}
