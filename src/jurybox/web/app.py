"""The pages and the JSON API as one application."""

from importlib import import_module
from importlib.util import find_spec
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from jurybox.web.api import routes as api_routes
from jurybox.web.guard import Guard
from jurybox.web.pages import routes as page_routes
from jurybox.web.pages.login import login_routes
from jurybox.web.place import Place, ServeSettings
from jurybox.web.refusals import HANDLERS
from jurybox.web.sessions import Sessions
from jurybox.web.static_files import static_file

_REVIEW: Final = "jurybox.web.review"


def application(settings: ServeSettings) -> Starlette:
    """Return the application; whoever serves it closes the store."""
    sessions = Sessions(settings.token)
    routes: list[BaseRoute] = [
        *_review_routes(),
        *page_routes(),
        *login_routes(sessions),
        *api_routes(),
        Route("/static/{name}", static_file, methods=["GET"]),
    ]

    def writable(scope: Scope) -> bool:
        """Say whether somebody takes what is sent; else the router says what is wrong."""
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    guard = Middleware(Guard, settings=settings, sessions=sessions, writable=writable)
    app = Starlette(routes=routes, middleware=[guard], exception_handlers=HANDLERS)
    app.router.redirect_slashes = False
    app.state.place = Place(settings)
    return app


def _review_routes() -> list[BaseRoute]:
    if find_spec(_REVIEW) is None:
        return []
    routes: list[BaseRoute] = import_module(_REVIEW).routes()
    return routes
