"""The same data for programs, as JSON."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from jurybox.web.api import runs, samples
from jurybox.web.api.document import document
from jurybox.web.api.registry import Endpoint
from jurybox.web.refusals import Refusal
from jurybox.web.rendering import CSRF, json_response

_REVIEW: Final = "jurybox.web.review"


def endpoints() -> tuple[Endpoint, ...]:
    """Return all that can be asked for, with what the review queue brings."""
    more: tuple[Endpoint, ...] = ()
    if find_spec(_REVIEW) is not None:
        own: Callable[[], tuple[Endpoint, ...]] | None
        own = getattr(import_module(_REVIEW), "endpoints", None)
        more = () if own is None else tuple(own())
    return (*runs.ENDPOINTS, *samples.ENDPOINTS, *more)


def routes() -> list[BaseRoute]:
    """Return the addresses of the API."""
    all_of_them = endpoints()
    described = document(all_of_them)

    def describe(request: Request) -> Response:
        del request
        return json_response(described)

    return [
        Route("/api/openapi.json", describe, methods=["GET"]),
        Route("/api/session", _session, methods=["GET"]),
        *(each.route() for each in all_of_them),
        Route("/api/{rest:path}", _nothing, methods=["GET"]),
    ]


def _session(request: Request) -> Response:
    """Tell what a write has to bring in `X-Jurybox-CSRF`, beside the cookie of the same answer."""
    told: dict[str, Any] = {"csrf": request.scope.get(CSRF, "")}
    return json_response(told)


def _nothing(request: Request) -> Response:
    raise Refusal(404, "there is no such thing", "see /api/openapi.json", request.url.path[:80])
