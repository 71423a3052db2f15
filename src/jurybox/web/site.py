"""The pages and the JSON API as one application."""

import contextlib
from typing import Any, Final

from fastapi import Depends, FastAPI
from fastapi.dependencies.utils import get_flat_params
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from jurybox import __version__
from jurybox.errors import JuryboxError
from jurybox.reporting.html.html_render import style_sheet
from jurybox.web import run_api
from jurybox.web.app_state import AppState, ServeSettings, app_state_of
from jurybox.web.error_pages import HANDLERS
from jurybox.web.pages import (
    compare_page,
    downloads,
    rubrics_page,
    run_page,
    runs_page,
    sample_page,
    samples_page,
)
from jurybox.web.review import review_api, review_pages
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
_SHOWN: Final = {
    "/": runs_page.runs_page,
    "/compare": compare_page.compare_page,
    "/compare/report.html": downloads.comparison_file,
    "/side-by-side": compare_page.side_by_side_page,
    "/rubrics": rubrics_page.rubrics_page,
    "/rubrics/{rubric}": rubrics_page.rubric_page,
    "/runs/{run}": run_page.page_of_run,
    "/runs/{run}/report.html": downloads.report_file,
    "/runs/{run}/samples.{form}": downloads.samples_file,
    "/runs/{run}/panels": run_page.run_fragment,
    "/runs/{run}/rubric": rubrics_page.rubric_of_run,
    "/runs/{run}/rubric/text": rubrics_page.rubric_text,
    "/runs/{run}/samples": samples_page.samples_page,
    "/runs/{run}/samples/{number}": sample_page.sample_page,
    "/runs/{run}/samples/{number}/text/{part}": sample_page.sample_text,
    "/runs/{run}/review": review_pages.next_page,
    "/runs/{run}/review/name": review_pages.name_page,
    "/runs/{run}/review/agreement": review_pages.agreement_page,
    "/runs/{run}/review/gold.jsonl": review_pages.gold_file,
    "/runs/{run}/review/{number}": review_pages.case_page,
    "/runs/{run}/review/{number}/judged": review_pages.judged_page,
    "/runs/{run}/review/{number}/text/{part}": review_pages.text_page,
}
_SENT: Final = {
    "/runs/{run}/review/name": review_pages.take_name,
    "/runs/{run}/review/undo": review_pages.undo,
    "/runs/{run}/review/{number}": review_pages.submit,
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
        dependencies=[Depends(_refuse_unknown)],
        exception_handlers=dict(HANDLERS),
    )
    app.state.place = AppState(settings)
    for path, page in _SHOWN.items():
        app.add_api_route(path, page, methods=["GET", "HEAD"], include_in_schema=False)
    for path, page in _SENT.items():
        app.add_api_route(path, page, methods=["POST"], include_in_schema=False)
    for router in (guard.router(), run_api.router, review_api.router):
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
        run_page.warm_newest(app.state.place)


def _name(route: APIRoute) -> str:
    return route.name


async def _refuse_unknown(request: Request) -> None:
    """Refuse a parameter that the page or the endpoint doesn't have."""
    if not request.query_params:
        return
    known = {each.alias for each in get_flat_params(request.scope["route"].dependant)}
    for name in request.query_params.keys() - (known - request.path_params.keys()):
        # The error page links to the run.
        request.state.run = app_state_of(request).store.run(request.path_params.get("run", ""))
        error = {"type": "extra_forbidden", "loc": ("query", name), "input": name}
        raise RequestValidationError([error])


async def _report_style(request: Request) -> Response:
    del request
    return Response(style_sheet(), media_type="text/css")
