"""Several runs side by side, with their outputs in columns."""

from typing import Annotated, Any, Final

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from jurybox.reporting.compare_runs import ComparedRun, CompareOptions
from jurybox.reporting.side_by_side import SideBySide, side_by_side
from jurybox.web.error_pages import PageError
from jurybox.web.lookup import PlaceOf, known_run
from jurybox.web.template_engine import page_response, segment

_MOST_RUNS: Final = 8
_MOST_SAMPLES: Final = 100
_TWO: Final = 2


def side_by_side_page(
    request: Request, place: PlaceOf, run: Annotated[list[str], Query(default_factory=list)]
) -> Response:
    """Answer with the runs that the address names, in their order."""
    names = list(dict.fromkeys(run))
    if not _TWO <= len(names) <= _MOST_RUNS:
        problem = f"{len(names)} runs can't be compared"
        raise PageError(400, problem, f"name {_TWO} to {_MOST_RUNS} of them as `run`")
    rows = [known_run(place, name) for name in names]

    def compare() -> SideBySide:
        runs = [ComparedRun(row=row, view=place.live.view(row)) for row in rows]
        return side_by_side(place.store, runs, CompareOptions(), most=_MOST_SAMPLES)

    data: dict[str, Any] = {
        "title": "Side by side",
        "compared": place.kept("side by side", compare, *rows),
        "sample_url": _sample_url,
    }
    return page_response(request, "side_by_side.html", data)


def _sample_url(run_id: str, number: int) -> str:
    return f"/runs/{segment(run_id)}/samples/{number}"
