"""The pages and the JSON API as one application."""

import contextlib
from typing import Any, Final

from fastapi import FastAPI
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from jurybox import __version__
from jurybox.errors import JuryboxError
from jurybox.reporting.html.html_render import style_sheet
from jurybox.web import pages, review, run_api
from jurybox.web.app_state import AppState, ServeSettings
from jurybox.web.error_pages import HANDLERS
from jurybox.web.pages.run_page import warm_newest
from jurybox.web.review import review_api
from jurybox.web.security import Guard
from jurybox.web.template_engine import warm_up

# FastAPI would otherwise report addresses and stack traces to any OpenTelemetry provider that the
# environment configures.
_NO_TELEMETRY: Final[TelemetryConfig] = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def application(settings: ServeSettings) -> FastAPI:
    """Return the application; the caller closes the store."""
    guard = Guard(settings)
    app = _Application(
        title="jurybox",
        version=__version__,
        description="The runs of a store, as its pages show them.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        telemetry=_NO_TELEMETRY,
        generate_unique_id_function=_name,
        middleware=guard.middleware(),
        exception_handlers=dict(HANDLERS),
    )
    app.state.place = AppState(settings)
    for router in (review.router, pages.router, guard.router(), run_api.router, review_api.router):
        app.include_router(router)
    # A report contains the style sheet; here it is served as a file.
    app.add_route("/static/report.css", _report_style)
    app.mount("/static", StaticFiles(packages=[("jurybox.web", "static")]))
    return app


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        return run_api.described(super().openapi())


def warm(app: FastAPI) -> None:
    """Preload modules for the first page, and the results of the newest run."""
    warm_up()
    # The page reports the error.
    with contextlib.suppress(JuryboxError):
        warm_newest(app.state.place)


def _name(route: APIRoute) -> str:
    return route.name


async def _report_style(request: Request) -> Response:
    del request
    return Response(style_sheet(), media_type="text/css")
