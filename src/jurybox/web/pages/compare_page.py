"""Two runs compared, and several side by side with their outputs in columns."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

import msgspec
from fastapi import Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jurybox.app.view_run import view_run
from jurybox.engine.records import RunRow
from jurybox.reporting.attention import SamplePlace
from jurybox.reporting.compare_runs import CompareOptions
from jurybox.reporting.html.histograms import Axis, PlottedMetric
from jurybox.reporting.run_diff import ChangeKind
from jurybox.reporting.side_by_side import SideBySide, changed_outputs, side_by_side
from jurybox.statistics.metric_differences import MetricDifference
from jurybox.web.app_state import AppState
from jurybox.web.error_pages import PageError
from jurybox.web.lookup import PlaceOf, known_run
from jurybox.web.template_engine import page_response, segment

_RUNS: Final = 100
_TWO: Final = 2


def compare_page(
    request: Request,
    place: PlaceOf,
    run: Annotated[Sequence[str], Query(max_length=_RUNS)] = (),
    a: str = "",
    b: str = "",
    change: ChangeKind | Literal[""] = "",
) -> Response:
    """Answer with a comparison, or with a form to choose runs.

    Runs that were chosen in the list, the newest first, are compared with the oldest of them.
    """
    if len(run) > _TWO:
        address = urlencode([("run", each) for each in reversed(run)])
        return RedirectResponse(f"/side-by-side?{address}", 303)
    if run:
        b, a = run[0], (*run[1:], a)[0]
    names = (a, b)
    data: dict[str, Any] = {
        "title": "Compare",
        "runs": [_choice(row) for row in place.store.runs(_RUNS)],
        "names": names,
        "diff": None,
    }
    if all(names):
        data |= _data(place, names, change or None)
    return page_response(request, "compare.html", data)


def _data(place: AppState, names: tuple[str, str], only: ChangeKind | None) -> dict[str, Any]:
    rows = [known_run(place, name) for name in names]
    diff = place.comparison(rows[0], rows[1]).result()
    samples = diff.samples if only is None else diff.by_kind.get(only, ())
    changes = [*changed_outputs(place.store, diff, samples)]
    if only == "higher":
        changes.reverse()
    listed = {each.number for _, shown in changes for each in shown.outputs[1:] if each}

    def address(sample: SamplePlace) -> str:
        row, number = f"#row-{sample.number}", sample.number or 0
        return row if number in listed else _sample_url(diff.b.run_id, number)

    whole = [each for each in diff.tested if each.metric == diff.headline]
    return {
        "title": f"{diff.a.run_id} and {diff.b.run_id}",
        "diff": diff,
        "only": only,
        "changes": changes,
        "address": address,
        "plotted": [_plotted(each) for each in diff.tested],
        "explained": whole or diff.tested[:1],
        "sample_url": _sample_url,
    }


def _choice(row: RunRow) -> tuple[str, str]:
    """Return a run's id and name for a form."""
    metadata: dict[str, Any] = msgspec.json.decode(row.metadata)
    named = metadata.get("name") or row.id
    return row.id, ", ".join((named, row.suite[:60], row.created_at[:16].replace("T", " ")))


def _plotted(tested: MetricDifference) -> PlottedMetric:
    """Return a difference for drawing around zero."""
    made = tested.comparison
    ends = () if made.interval is None else (made.interval.low, made.interval.high)
    far = max((abs(each) for each in (made.difference or 0.0, *ends)), default=0.0) or 1.0
    return PlottedMetric(
        name=tested.metric,
        value=made.difference,
        n=made.n,
        interval=made.interval,
        reason=made.reason,
        axis=Axis(low=-far, high=far, bounded=False),
    )


_MOST_RUNS: Final = 8
_MOST_SAMPLES: Final = 100


def side_by_side_page(
    request: Request, place: PlaceOf, run: Annotated[list[str], Query(default_factory=list)]
) -> Response:
    """Answer with the runs in the address, in their order."""
    names = list(dict.fromkeys(run))
    if not _TWO <= len(names) <= _MOST_RUNS:
        problem = f"{len(names)} runs can't be compared"
        raise PageError(400, problem, f"name 2 to {_MOST_RUNS} of them as `run`")
    rows = [known_run(place, name) for name in names]

    def compare() -> SideBySide:
        views = [view_run(row, place.store) for row in rows]
        return side_by_side(place.store, views, CompareOptions(), most=_MOST_SAMPLES)

    data: dict[str, Any] = {
        "title": "Side by side",
        "compared": place.kept("side by side", compare, *rows).result(),
        "sample_url": _sample_url,
    }
    return page_response(request, "side_by_side.html", data)


def _sample_url(run_id: str, number: int) -> str:
    return f"/runs/{segment(run_id)}/samples/{number}"
