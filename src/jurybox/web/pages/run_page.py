"""The page of a run: the report's panels with links, updated while the run is in progress."""

import time
from concurrent.futures import Future
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from jurybox.app.view_run import calibration_of_run, view_run
from jurybox.calibration.bias_results import BiasMetric
from jurybox.engine.records import RunRow
from jurybox.errors import JuryboxError
from jurybox.reporting.attention import Concern, concerns_of
from jurybox.reporting.html.extras import unstable_winners, vote_metrics, with_lost_votes
from jurybox.reporting.html.page import Extras, run_page
from jurybox.reporting.stored import run_title
from jurybox.reporting.view import RunView
from jurybox.statistics.jury_agreement import JuryAgreement
from jurybox.web.app_state import PATIENCE, AppState, Pending, soon
from jurybox.web.lookup import PlaceOf, TheRun
from jurybox.web.template_engine import page_response, segment

_MANY: Final = 10_000
"""With more samples, finding the worst takes longer than a page should."""
_FEW, _SOON = 1000, 0.75
"""With so few samples, a page waits so many seconds to be complete at once.

With more, it waits less, since the rest would take longer than anyone wants to wait.
"""


def page_of_run(request: Request, run: TheRun, place: PlaceOf) -> Response:
    """Answer with the page of a run."""
    return page_response(request, "run.html", _data(run, place))


def run_fragment(request: Request, run: TheRun, place: PlaceOf) -> Response:
    """Answer with the panels alone, to update an open page while the run is in progress."""
    return page_response(request, "run_panels.html", _data(run, place))


def warm_newest(place: AppState) -> None:
    """Precompute the results for the page of the newest run."""
    for run in place.store.runs(1):
        if run.status == "finished":
            _data(run, place)


def _data(run: RunRow, place: AppState) -> dict[str, Any]:
    view = view_run(run, place.store)
    base, (concerns, pending) = f"/runs/{segment(run.id)}", _concerns(view, run, place)
    extras = _extras(view, run, place)
    pending = pending or extras.pending
    return {
        "title": f"Run {run_title(run, place.store)[:80]}",
        "run": run,
        "base": base,
        "page": run_page(view, concerns, extras=extras),
        "sample_url": f"{base}/samples/{{}}".format,
        "list_url": f"{base}/samples?{{}}".format,
        "served": True,
        "live": view.status == "running",
        "pending": pending,
        # An incomplete page has a different version than the complete one.
        "version": f"{view.status}-{view.summary['samples']}{'-pending' if pending else ''}",
    }


def _concerns(view: RunView, run: RunRow, place: AppState) -> tuple[tuple[Concern, ...], bool]:
    """Return what needs attention, and whether the worst samples of it will follow."""
    if run.status != "finished" or view.planned <= _MANY:
        return concerns_of(place.store, view), False
    made = place.kept("concerns", lambda: concerns_of(place.store, view), run)
    found = soon(made, PATIENCE / 3)
    is_late = isinstance(found, Pending)
    return concerns_of(place.store, view, 0) if is_late else found, is_late


def _extras(view: RunView, run: RunRow, place: AppState) -> Extras:
    """Return the parts of the page that need samples; if some aren't ready, none of these."""
    store = place.store
    known = Extras(
        calibration=calibration_of_run(view, store),
        with_lost_votes=with_lost_votes(store, view),
        unstable_winners=unstable_winners(store, view),
    )
    if run.status != "finished":
        return known

    def votes() -> tuple[JuryAgreement | None, tuple[BiasMetric, ...]]:
        try:
            return vote_metrics(store, view)
        except JuryboxError:
            return None, ()  # the page of the damaged sample, and `verify`, say what is wrong

    before = None if view.before is None else store.run(view.before)
    made: dict[str, Future[Any] | None] = {
        "people": place.agreement(run) if store.review_state(run.id) else None,
        "baseline": before and place.comparison(before, run),
        "votes": place.kept("votes", votes, run, reviews=False),
    }
    until = time.monotonic() + _SOON * min(1, _FEW / view.planned)
    found: dict[str, Any] = {
        name: part and soon(part, until - time.monotonic()) for name, part in made.items()
    }
    if any(isinstance(part, Pending) for part in found.values()):
        return msgspec.structs.replace(known, pending=True)
    jury, position = found.pop("votes")
    return msgspec.structs.replace(known, jury_agreement=jury, position=position, **found)
