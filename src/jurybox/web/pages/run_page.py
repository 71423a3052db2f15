"""The page of a run: the report's panels with links, updated while the run is in progress."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from jurybox.app.calibrations import calibration_of_run
from jurybox.engine.records import RunRow
from jurybox.reporting.attention import LATENCY, concerns_of, extremes
from jurybox.reporting.html.page import Baseline, Extras, RunPage, run_page
from jurybox.reporting.html.panels import independence
from jurybox.reporting.metric_text import headline
from jurybox.reporting.stored import rubric_of
from jurybox.reporting.view import RunView
from jurybox.storage.sample_search import Groups
from jurybox.web.app_state import AppState, StatusPending
from jurybox.web.lookup import PlaceOf, TheRun
from jurybox.web.template_engine import page_response, segment

_SHOWN: Final = 5
_PENDING: Final = "Reviews are there; how the judges stand with them is being worked out."


def page_of_run(request: Request, run: TheRun, place: PlaceOf) -> Response:
    """Answer with the page of a run."""
    return page_response(request, "run.html", _data(run, place))


def run_fragment(request: Request, run: TheRun, place: PlaceOf) -> Response:
    """Answer with the panels alone, to update an open page while the run is in progress."""
    return page_response(request, "run_panels.html", _data(run, place))


def warm_newest(place: AppState) -> None:
    """Make ready what the page of the newest run would otherwise wait for."""
    for run in place.store.runs(1):
        if run.digest is not None:
            _data(run, place)
            groups_of(run, place)


def groups_of(run: RunRow, place: AppState) -> Groups:
    """Return the scenarios and demographics of a run's samples."""
    return place.kept("groups", lambda: place.store.groups(run.id), run)


def _data(run: RunRow, place: AppState) -> dict[str, Any]:
    view = place.live.view(run)
    base = f"/runs/{segment(run.id)}"

    def sample_url(number: int) -> str:
        return f"{base}/samples/{number}"

    def list_url(query: str) -> str:
        return f"{base}/samples?{query}"

    return {
        "title": f"{view.suite[:80]}, run {run.id}",
        "run": run,
        "base": base,
        "page": _page(view, run, place),
        "sample_url": sample_url,
        "list_url": list_url,
        "live": view.status == "running",
        "unfinished": view.status != "finished",
        "version": f"{view.status}-{view.summary['samples']}",
    }


def _page(view: RunView, run: RunRow, place: AppState) -> RunPage:
    store, rubric = place.store, rubric_of(run)
    score = headline(view.summary, rubric)

    def look() -> Extras:
        # Both go through all samples in the database, which can do that side by side.
        with ThreadPoolExecutor(1) as beside:
            slowest = beside.submit(extremes, store, run, LATENCY, _SHOWN, highest=True)
            worst = extremes(store, run, score, _SHOWN)
            return Extras(
                worst=worst, slowest=slowest.result(), independence=independence(store, run)
            )

    people = place.standing_soon(run)
    # Reviews may arrive at any time, so they aren't cached.
    extras = msgspec.structs.replace(
        place.kept("extras", look, run),
        baseline=_baseline(view, run, place),
        calibration=calibration_of_run(view, store),
        people=_PENDING if isinstance(people, StatusPending) else people,
    )
    return run_page(view, rubric, concerns_of(store, run, view.conclusion), extras=extras)


def _baseline(view: RunView, run: RunRow, place: AppState) -> Baseline | None:
    """Return the run that this one names as its baseline, unless that was deleted."""
    named: str | None = view.metadata.get("baseline")
    before = None if named is None else place.store.run(named)
    if before is None or run.digest is None:
        return None
    diff = place.comparison(before, run)
    return Baseline(
        run_id=before.id,
        name=diff.a.metadata.get("name") or before.id,
        conclusion=diff.conclusion(),
        values=diff.a.summary,
    )
