"""The page of a run: the report's panels with links, updated while the run is in progress."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from jurybox.app.view_run import calibration_of_run, view_run
from jurybox.engine.records import RunRow
from jurybox.errors import JuryboxError
from jurybox.reporting.attention import concerns_of
from jurybox.reporting.html.page import Baseline, Extras, RunPage, run_page
from jurybox.reporting.html.panels import (
    OrderMetric,
    order_metrics,
    position_of,
    with_lost_votes,
)
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.stored import run_title
from jurybox.reporting.view import RunView
from jurybox.statistics.jury_agreement import JuryAgreement
from jurybox.web.app_state import PATIENCE, AppState, Pending, soon
from jurybox.web.lookup import PlaceOf, TheRun
from jurybox.web.template_engine import page_response, segment

_MOST_PAIRS: Final = 1000
_PENDING: Final = "There are reviews; how far the judges agree with them will be shown in a moment."


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
    base, (page, pending) = f"/runs/{segment(run.id)}", _page(view, run, place)

    def sample_url(number: int) -> str:
        return f"{base}/samples/{number}"

    def list_url(query: str) -> str:
        return f"{base}/samples?{query}"

    return {
        "title": f"Run {run_title(run, place.store)[:80]}",
        "run": run,
        "base": base,
        "page": page,
        "sample_url": sample_url,
        "list_url": list_url,
        "served": True,
        "live": view.status == "running",
        "pending": pending,
        # An incomplete page has a different version than the complete one.
        "version": f"{view.status}-{view.summary['samples']}{'-pending' if pending else ''}",
    }


def _page(view: RunView, run: RunRow, place: AppState) -> tuple[RunPage, bool]:
    """Return the page, and whether parts of it are still being computed."""
    store, baseline, people = place.store, _baseline(view, run, place), _people(run, place)
    several = run.status == "finished" and (view.metadata.get("votes") or 0) > 1
    jury = _jury(run, place) if several else None
    position = _position(view, run, place)
    extras = Extras(
        baseline=baseline,
        calibration=calibration_of_run(view, store),
        people=people,
        jury_agreement=None if isinstance(jury, Pending) else jury,
        with_lost_votes=with_lost_votes(store, view),
        position=() if isinstance(position, Pending) else position,
    )
    comparing = baseline is not None and baseline.conclusion is None
    # `people` is a string only while reviews are still being compared.
    lacks = any(isinstance(each, Pending) for each in (jury, position))
    pending = comparing or isinstance(people, str) or lacks
    return run_page(view, view.rubric, concerns_of(store, view), extras=extras), pending


def _jury(run: RunRow, place: AppState) -> JuryAgreement | Pending | None:
    """Return how far the votes of the jury agree; None if samples can't be read."""
    try:
        return soon(place.jury(run), PATIENCE / 3)  # the page has waited for other parts before
    except JuryboxError:
        return None  # the page of the damaged sample, and `verify`, say what is wrong


def _position(view: RunView, run: RunRow, place: AppState) -> tuple[OrderMetric, ...] | Pending:
    """Return how the order of pairs affects the votes; empty if responses were scored alone."""
    known = position_of(view)
    if run.status != "finished" or known is None or not known.orders:
        return ()

    def make() -> tuple[OrderMetric, ...]:
        return order_metrics(place.store, run, _MOST_PAIRS)

    try:
        return soon(place.kept("position", make, run, reviews=False), PATIENCE / 3)
    except JuryboxError:
        return ()


def _people(run: RunRow, place: AppState) -> ReviewAgreement | str | None:
    """Return the agreement with reviewers, or that it is pending; None without reviews."""
    if not place.store.review_state(run.id):
        return None
    found = soon(place.agreement(run)) if run.status == "finished" else Pending()
    return _PENDING if isinstance(found, Pending) else found


def _baseline(view: RunView, run: RunRow, place: AppState) -> Baseline | None:
    """Return the comparison with a finished run's baseline or source; None without such a run."""
    before = None if view.before is None else place.store.run(view.before)
    if before is None or run.status != "finished":
        return None
    diff = soon(place.comparison(before, run))
    conclusion = None if isinstance(diff, Pending) else diff.conclusion(titled=True, lettered=False)
    compared = view_run(before, place.store)
    same_rubric = compared.rubric.sha256 == view.rubric.sha256
    return Baseline(before=compared, same_rubric=same_rubric, conclusion=conclusion)
