"""The list of runs."""

from typing import Annotated, Final

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from jurybox.reporting.view import listed_run
from jurybox.web.lookup import PlaceOf
from jurybox.web.template_engine import page_response

_SIZE: Final = 25


def runs_page(
    request: Request, place: PlaceOf, page: Annotated[int, Query(ge=1, le=1_000_000)] = 1
) -> Response:
    """Answer with the newest runs."""
    first = (page - 1) * _SIZE
    # One more than fits shows whether there are more.
    rows = place.store.runs(first + _SIZE + 1)[first:]
    listed = [listed_run(row, place.store) for row in rows[:_SIZE]]
    data = {"title": "Runs", "runs": listed, "page": page, "more": len(rows) > _SIZE}
    return page_response(request, "runs.html", data)
