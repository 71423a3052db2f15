"""Two runs side by side."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jurybox.reporting.run_diff import RunDiff, SampleChange, p_value, places
from jurybox.web.app_state import AppState
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
) -> Response:
    """Answer with a comparison, or with the question which runs are meant.

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
        "runs": [(row.id, row.suite) for row in place.store.runs(_RUNS)],
        "names": names,
        "diff": None,
    }
    if all(names):
        data |= _data(place, names)
    return page_response(request, "compare.html", data)


def _data(place: AppState, names: tuple[str, str]) -> dict[str, Any]:
    diff = place.comparison(known_run(place, names[0]), known_run(place, names[1]))
    counts = diff.counts
    return {
        "title": f"{diff.a.run_id} and {diff.b.run_id}",
        "diff": diff,
        "sides": (("A", diff.a), ("B", diff.b)),
        "records": diff.records_line(),
        "cautions": list(diff.cautions()),
        "conclusion": diff.conclusion(),
        "count_line": str(counts),
        "left": counts.higher + counts.lower + counts.changed - len(diff.samples),
        "one_sided": diff.one_sided(),
        "changes": list(_changes(diff)),
        "verdicts": list(diff.verdicts()),
        "p_value": p_value,
        "only": [
            (name, places(count, listed))
            for name, count, listed in (
                ("A", counts.only_in_a, diff.only_in_a),
                ("B", counts.only_in_b, diff.only_in_b),
            )
            if count
        ],
        "link": partial(_link, place),
        "groupings": [
            (name, groups)
            for name, groups in (
                ("Scenarios", diff.scenarios),
                ("Demographics", diff.demographics),
            )
            if groups
        ],
    }


def _changes(diff: RunDiff) -> Iterator[tuple[SampleChange, Any, list[str]]]:
    for change in diff.samples:
        whole = next((each for each in change.figures if each.figure == diff.headline), None)
        yield change, whole, list(change.details(diff.headline))


def _link(place: AppState, run: str, change: SampleChange) -> str | None:
    row = place.store.find_sample(run, change.id, change.repeat)
    return None if row is None else f"/runs/{segment(run)}/samples/{row.number}"
