"""The same data for programs, as JSON."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from jurybox.web.api import runs, samples
from jurybox.web.api.document import document
from jurybox.web.api.registry import Call, Endpoint
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
    return (_SESSION, *runs.ENDPOINTS, *samples.ENDPOINTS, *more)


def routes() -> list[BaseRoute]:
    """Return the addresses of the API."""
    all_of_them = endpoints()
    described = document(all_of_them)

    def describe(request: Request) -> Response:
        del request
        return json_response(described)

    return [
        Route("/api/openapi.json", describe, methods=["GET"]),
        *(each.route() for each in all_of_them),
        Route("/api/{rest:path}", _nothing, methods=["GET"]),
    ]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a write brings in ``X-Jurybox-CSRF``, beside the cookie of the same answer."""

    csrf: str


def _session(call: Call) -> Session:
    return Session(csrf=call.request.scope.get(CSRF, ""))


_SESSION: Final = Endpoint(
    path="/session",
    name="session",
    about="What a write without the token has to bring in the header `X-Jurybox-CSRF`, beside the"
    " cookie that comes with this answer.",
    answer=_session,
    gives=Session,
    missing=False,
)


def _nothing(request: Request) -> Response:
    raise Refusal(404, "there is no such thing", "see /api/openapi.json", request.url.path[:80])
