"""The list of runs, with a trend for each suite."""

import time
from collections.abc import Sequence
from typing import Annotated, Final, Literal
from urllib.parse import urlencode

import msgspec
from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from jurybox.app.view_run import view_run
from jurybox.engine.records import RunRow
from jurybox.reporting.html.histograms import PlottedMetric, RunMetrics
from jurybox.reporting.stored import run_title
from jurybox.reporting.view import ListedRun, RunView, listed_run
from jurybox.web.app_state import PATIENCE, AppState
from jurybox.web.lookup import ANY_TEXT, PlaceOf
from jurybox.web.template_engine import page_response

_SIZE: Final = 25
_SEARCHED: Final = 500
_MOST_TRENDS: Final = 4


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the list; if it can be read, with its view and its most informative metric.

    ``source`` is what users call the run that it was rescored from.
    """

    run: ListedRun
    source: str = ""
    view: RunView | None = None
    metric: PlottedMetric | None = None

    @property
    def name(self) -> str:
        """What users call the run."""
        return self.view.name if self.view else self.run.name or self.run.run_id

    @property
    def words(self) -> str:
        """The searchable text of the run."""
        run = self.run
        named = (run.run_id, run.suite, run.name, run.dataset, run.target, run.judge, *run.tags)
        return "\n".join(each for each in named if each).casefold()


def runs_page(
    request: Request,
    place: PlaceOf,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    search: Annotated[str, Query(max_length=200, pattern=ANY_TEXT)] = "",
    tag: Annotated[str, Query(max_length=200, pattern=ANY_TEXT)] = "",
    verdict: Literal["passes", "fails", "waits", "stopped", ""] = "",
) -> Response:
    """Answer with the newest runs, or with those that match all filters."""
    first = (page - 1) * _SIZE
    asked = {"search": search, "tag": tag, "verdict": verdict}
    filtered = any(asked.values())
    # One run more than fits on the page shows whether there are further pages.
    rows = place.store.runs(_SEARCHED if filtered else first + _SIZE + 1)
    lines = [_line(row, place) for row in (rows if filtered else rows[first:])]
    lines = [
        line
        for line in lines
        if search.casefold() in line.words and (not tag or tag in line.run.tags)
    ]
    until = time.monotonic() + PATIENCE  # all of them share the time to wait
    verdicts = {
        line.run.run_id: place.verdict(line.view, max(0.0, until - time.monotonic()))
        for line in (lines if verdict else lines[first if filtered else 0 :][:_SIZE])
        if line.view is not None
    }
    if verdict:
        found = {run_id for run_id, each in verdicts.items() if each.tone == verdict}
        lines = [line for line in lines if line.run.run_id in found or line.run.status == verdict]
    lines = lines[first if filtered else 0 :][: _SIZE + 1]
    data = {
        "title": "Runs",
        "lines": lines[:_SIZE],
        "verdicts": verdicts,
        "trends": _trends(lines[:_SIZE]),
        **asked,
        "filtered": filtered,
        "address": "/?" + urlencode({name: each for name, each in asked.items() if each}),
        "page": page,
        "more": len(lines) > _SIZE,
    }
    return page_response(request, "runs.html", data)


def _line(row: RunRow, place: AppState) -> RunLine:
    run = listed_run(row, place.store)
    if run.metric is None:
        return RunLine(run=run)
    view = view_run(row, place.store)
    source = None if run.derived_from is None else place.store.run(run.derived_from)
    return RunLine(
        run=run,
        source="" if source is None else run_title(source, place.store),
        view=view,
        metric=RunMetrics(view.conclusion, view.rubric).of(run.metric),
    )


def _trends(lines: Sequence[RunLine]) -> list[list[RunLine]]:
    """Return the scored runs of each suite by one rubric, jury and target, the oldest first."""
    found: dict[tuple[object, ...], list[RunLine]] = {}
    for each in reversed(lines):
        view, metric = each.view, each.metric
        if view is not None and metric is not None and metric.value is not None:
            target = view.metadata.get("target_name")
            key = each.run.suite, view.rubric.sha256, each.run.judge, target, metric.name
            found.setdefault(key, []).append(each)
    return [runs for runs in found.values() if len(runs) > 1][:_MOST_TRENDS]
