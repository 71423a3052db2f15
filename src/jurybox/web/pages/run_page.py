"""The page of a run: the report's panels, with links, live while the run goes on."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from jurybox.app.calibrations import calibration_of_run
from jurybox.engine.ports import Groups, SampleQuery, Store
from jurybox.engine.records import RunRow
from jurybox.reporting.attention import LATENCY, concerns_of
from jurybox.reporting.html.page import Baseline, Calibrated, Extras, RunPage, run_page
from jurybox.reporting.html.people import People, people_of
from jurybox.reporting.html.sample_panels import SampleCard, card, independence
from jurybox.reporting.metric_text import headline
from jurybox.reporting.stored import damaged, rubric_of
from jurybox.reporting.view import RunView
from jurybox.web.app_state import AppState
from jurybox.web.lookup import PlaceOf, TheRun
from jurybox.web.review_status import StatusPending
from jurybox.web.template_engine import page_response, segment

_SHOWN: Final = 5
_PENDING: Final = "Reviews are there; how the judges stand with them is being worked out."


def page_of_run(request: Request, run: TheRun, place: PlaceOf) -> Response:
    """Answer with the page of a run."""
    return page_response(request, "run.html", _data(run, place))


def run_fragment(request: Request, run: TheRun, place: PlaceOf) -> Response:
    """Answer with the panels alone, for a page that is open while the run goes on."""
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
            slowest = beside.submit(_ends, store, run, LATENCY, descending=True)
            worst = _ends(store, run, score, descending=False)
            return Extras(
                worst=worst, slowest=slowest.result(), independence=independence(store, run)
            )

    # People may be asked at any time, so what they say isn't kept.
    extras = msgspec.structs.replace(
        place.kept("extras", look, run),
        baseline=_baseline(view, run, place),
        calibration=_calibrated(view, store),
        people=_people(run, place),
    )
    return run_page(view, rubric, concerns_of(store, run, view.conclusion), extras=extras)


def _ends(store: Store, run: RunRow, figure: str, *, descending: bool) -> tuple[SampleCard, ...]:
    """Return the samples with the lowest or the highest value of a figure."""
    query = SampleQuery(figure=figure, sort=f"figure:{figure}", descending=descending, limit=_SHOWN)
    cards: list[SampleCard] = []
    for row in store.find_samples(run.id, query).rows:
        try:
            value = msgspec.json.decode(row.figures, type=dict[str, float]).get(figure)
        except msgspec.DecodeError as error:
            raise damaged(run, error) from None
        sample = None if value is None else store.sample(run.id, row.number)
        if sample is not None and value is not None:
            cards.append(card(sample, figure, value))
    return tuple(cards)


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


def _calibrated(view: RunView, store: Store) -> Calibrated | None:
    found = calibration_of_run(view, store)
    if found is None:
        return None
    if isinstance(found, str):
        return Calibrated(line=found, holds=False)
    return Calibrated(line=found.line, holds=not found.stale)


def _people(run: RunRow, place: AppState) -> People | None:
    found = place.standings.soon(run)
    if isinstance(found, StatusPending):
        return People(lines=(_PENDING,))
    return None if found is None else people_of(found.as_data())
