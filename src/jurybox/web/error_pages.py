"""Error responses, which reveal only what the user needs to know."""

import re
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from jurybox.errors import IncompleteError, InputError
from jurybox.web.app_state import app_state_of
from jurybox.web.template_engine import json_response, page_response

_WORDS: Final[Mapping[int, tuple[str, str]]] = {
    400: ("the request can't be read", "check the address"),
    401: ("access requires a token", "send it as `Authorization: Bearer`, or sign in"),
    403: ("the form wasn't sent from this site", "reload the page and try again"),
    404: ("there is no such page", "go to the list of runs"),
    405: ("that can't be done here", "use another method"),
    408: ("the request took too long to arrive", "send it again"),
    413: ("the request is too large", "send a smaller one"),
    500: ("something went wrong here", "the server's terminal shows more"),
    503: ("the store can't be read", "the server's terminal shows why"),
}


class PageError(Exception):
    """A response with an error status."""

    def __init__(
        self,
        status: int,
        problem: str = "",
        hint: str = "",
        where: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        usual = _WORDS.get(status, _WORDS[500])
        super().__init__(problem or usual[0])
        self.status = status
        self.problem = problem or usual[0]
        self.hint = hint or usual[1]
        self.where = where
        self.headers = headers or {}


def is_api(scope: Scope) -> bool:
    """Return whether a request is for the API."""
    path: str = scope["path"]
    return path == "/api" or path.startswith("/api/")


def answer_to(request: Request, error: Exception) -> Response:
    """Return the error response: JSON for a program, a page for a browser."""
    if isinstance(error, HTTPException) and error.status_code == HTTPStatus.SEE_OTHER:
        return Response(status_code=error.status_code, headers=error.headers)
    refusal = _refusal(request, error)
    if is_api(request.scope):
        body = {"problem": refusal.problem, "hint": refusal.hint, "where": refusal.where}
        response = json_response({"error": body}, refusal.status)
    else:
        where = f"{refusal.where[:200]}: " if refusal.where else ""
        problem = refusal.problem if where else refusal.problem[:1].upper() + refusal.problem[1:]
        title = f"{where}{problem[:500]}"
        run = getattr(request.state, "run", None)  # if the address names one that exists
        data = {"refusal": refusal, "title": title.replace("`", ""), "heading": title, "run": run}
        query = request.query_params.multi_items()
        rest = [(name, value) for name, value in query if name != refusal.where]
        data["without"] = urlencode(rest) if len(rest) < len(query) else None
        response = page_response(request, "error.html", data, refusal.status)
    response.headers.update(refusal.headers)
    return response


def _refusal(request: Request, error: Exception) -> PageError:
    match error:
        case PageError():
            return error
        case HTTPException():
            return PageError(error.status_code, headers=error.headers)
        case RequestValidationError():
            return _invalid(error, "see /api/openapi.json" if is_api(request.scope) else _TAKE_OUT)
        case InputError():
            return PageError(400, error.problem, error.hint, error.where)
        case IncompleteError():
            # The message may contain file paths, which only the owner of the server may see.
            app_state_of(request).say(str(error))
            return PageError(503)
        case _:
            lines = traceback.format_exception(error)
            app_state_of(request).say(f"internal error: {type(error).__name__}: {error}")
            for line in "".join(lines).splitlines():
                app_state_of(request).say(f"  {line}")
            return PageError(500)


_TAKE_OUT: Final = "remove it from the address"
_NOT_ALLOWED: Final = "`{input}` isn't an allowed value"
_PROBLEMS: Final = {
    "bool_parsing": "`{input}` is neither true nor false",
    "extra_forbidden": "there is no such parameter",
    "finite_number": "`{input}` isn't a number",
    "float_parsing": "`{input}` isn't a number",
    "greater_than_equal": "`{input}` is less than {ge}",
    "int_parsing": "`{input}` isn't a whole number",
    "less_than_equal": "`{input}` is more than {le}",
    "literal_error": _NOT_ALLOWED,
    "missing": "it is missing",
    "string_pattern_mismatch": _NOT_ALLOWED,
    "string_too_long": "it has more than {max_length} characters",
}


def _invalid(error: RequestValidationError, hint: str) -> PageError:
    first: dict[str, Any] = error.errors()[0]
    part, *names = first["loc"]
    if part == "path":
        return PageError(404)
    context: dict[str, Any] = first.get("ctx", {})
    written = _PROBLEMS.get(first["type"])
    given = {**context, "input": str(first["input"])[:80]}
    problem = first["msg"] if written is None else written.format_map(given)
    # Of a pattern, only a list of words can be read by people.
    words = re.fullmatch(r"\^\(([a-z_|]+)(\|metric:.*)?\)\$", context.get("pattern", ""))
    if words:
        more = ["metric:NAME"] if words[2] else []
        hint = f"use one of {', '.join((*words[1].split('|'), *more))}"
    elif "expected" in context:
        values = re.findall(r"'(\w+)'", context["expected"])
        hint = f"use one of {', '.join(values)}"
    elif first["type"] == "string_too_long":
        hint = "shorten it"
    where = ".".join(name for name in names if isinstance(name, str))
    return PageError(400, problem, hint, where)


HANDLERS: Final[Mapping[Any, Any]] = dict.fromkeys(
    (PageError, HTTPException, RequestValidationError, InputError, IncompleteError), answer_to
)
