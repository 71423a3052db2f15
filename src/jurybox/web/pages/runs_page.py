"""The list of runs, with a trend for each suite."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Annotated, Final, Literal

import msgspec
from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from jurybox.app.view_run import view_run
from jurybox.engine.records import RunRow, StoredOutcome
from jurybox.errors import JuryboxError
from jurybox.reporting.metric_text import cost_of, key_metric_of, short_judges
from jurybox.reporting.run_metrics import PlottedMetric
from jurybox.reporting.stored import outcome_of, rubric_of, run_title
from jurybox.reporting.view import ListedRun, RunView, listed_run
from jurybox.rubric.metrics import WIN_RATE
from jurybox.web.app_state import PATIENCE, AppState
from jurybox.web.filters import ListAsked
from jurybox.web.lookup import ANY_TEXT, PlaceOf
from jurybox.web.pages.compare_page import MOST_RUNS
from jurybox.web.template_engine import SIZE, page_response, segment

_SEARCHED: Final = 500
_MOST_TRENDS: Final = 4
_SO_FAR: Final = 1000
"""With more samples, reading those of an unfinished run takes longer than a list should."""


def _overall(row: RunRow, outcome: StoredOutcome) -> tuple[bool, float] | None:
    """Return the overall metric, so that a win rate sorts apart from scores."""
    summary = outcome.conclusion.summary
    name = key_metric_of(summary, rubric_of(row))
    value = summary.get(name)
    return None if value is None else (name != WIN_RATE, value)


_Value = float | tuple[bool, float] | None
_VALUES: Final[dict[str, Callable[[RunRow, StoredOutcome], _Value]]] = {
    "pass_rate": lambda _, outcome: outcome.conclusion.summary.get("pass_rate"),
    "overall": _overall,
    "cost": lambda _, outcome: outcome.cost.get("dollars"),
    "duration": lambda _, outcome: outcome.elapsed_s,
}
"""The numbers that runs are sorted by."""


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the list; if it can be read, with its view and its headline metrics.

    ``source`` is the run that it was rescored from, ``rubric`` its rubric's id and version.
    """

    row: RunRow
    run: ListedRun
    source: RunRow | None = None
    rubric: str = ""
    view: RunView | None = None
    metric: PlottedMetric | None = None
    pass_rate: PlottedMetric | None = None

    @property
    def name(self) -> str:
        """What users call the run."""
        return self.view.name if self.view else self.run.name or self.run.run_id

    @property
    def url(self) -> str:
        """The address of the run's page."""
        return f"/runs/{segment(self.run.run_id)}"

    @property
    def about(self) -> str:
        """The run's suite and its dataset."""
        return ", ".join(filter(None, (self.run.suite[:60], (self.run.dataset or "")[:80])))

    @property
    def judges(self) -> str:
        """Short names of the run's judges, which tell them apart."""
        return ", ".join(short_judges((self.run.judge or "no judge").split(", ")))

    @property
    def label(self) -> str:
        """A short name for the run."""
        run = self.run
        source = self.name.rpartition(" by ")[0] if run.derived_from else ""
        return next(filter(None, (run.name, *run.tags, source)), run.run_id)

    @property
    def answered_at(self) -> tuple[str, str]:
        """When the run's responses were judged, and when it was scored."""
        first = self.source or self.row
        return first.created_at, self.row.created_at

    @property
    def duration(self) -> str:
        """How long the run took; empty if unknown."""
        seconds = None if self.view is None else self.view.elapsed_s
        if seconds is None:
            return ""
        minutes, whole = divmod(int(seconds), 60)
        return f"{minutes}:{whole:02} min" if minutes else f"{seconds:.1f} s"

    @property
    def words(self) -> str:
        """The searchable text of the run."""
        run = self.run
        named = (run.run_id, run.suite, self.name, self.rubric, run.dataset, run.target, run.judge)
        return "\n".join(each for each in (*named, *run.tags) if each).casefold()


class RunFilter(ListAsked):
    """The query parameters of the list of runs."""

    page: int = Field(1, ge=1, le=1_000_000)
    search: str = Field("", max_length=200, pattern=ANY_TEXT)
    tag: str = Field("", max_length=200, pattern=ANY_TEXT)
    verdict: Literal["passes", "undecided", "fails", "stopped", ""] = ""
    sort: Literal["started", "name", "pass_rate", "overall", "cost", "duration"] = "started"
    descending: bool | None = None

    @property
    def filtered(self) -> bool:
        """Whether only some runs are asked for."""
        return bool(self.search or self.tag or self.verdict)

    @property
    def falling(self) -> bool:
        """Whether the highest come first: by default, unless sorted by name."""
        return self.sort != "name" if self.descending is None else self.descending

    def finds(self, line: RunLine) -> bool:
        """Return whether a run matches the search and the tag."""
        found = all(word in line.words for word in self.search.casefold().split())
        return found and (not self.tag or self.tag in line.run.tags)


def runs_page(request: Request, asked: Annotated[RunFilter, Query()], place: PlaceOf) -> Response:
    """Answer with the newest runs, or with those that match all filters, sorted."""
    first = (asked.page - 1) * SIZE
    whole = asked.filtered or (asked.sort, asked.falling) != ("started", True)
    # One run more than fits on the page shows whether there are further pages.
    rows = place.store.runs(_SEARCHED if whole else first + SIZE + 1)
    limited = whole and len(rows) == _SEARCHED
    rows = _sorted(rows, asked, place)
    if not asked.filtered:  # no other runs have to be read
        rows, first = rows[first:][: SIZE + 1], 0
    lines = [line for row in rows if asked.finds(line := _line(row, place))]
    until = time.monotonic() + PATIENCE  # all of them share the time to wait
    verdicts = {
        line.run.run_id: place.verdict(line.view, until - time.monotonic())
        for line in (lines if asked.verdict else lines[first:][:SIZE])
        if line.view is not None
    }
    if asked.verdict:
        tone = "waits" if asked.verdict == "undecided" else asked.verdict
        found = {run_id for run_id, each in verdicts.items() if each.tone == tone}
        found |= {line.run.run_id for line in lines if line.run.status == asked.verdict}
        lines = [line for line in lines if line.run.run_id in found]
    lines = lines[first:]
    until = time.monotonic() + PATIENCE
    shown = [_with_metrics(line, place, until) for line in lines[:SIZE]]
    data = {
        "title": "Runs",
        "lines": shown,
        "verdicts": verdicts,
        "trends": _trends(shown),
        "most_compared": MOST_RUNS,
        "costs": asked.sort == "cost" or any(map(_cost_known, shown)),
        "asked": asked,
        "searched": _SEARCHED if limited else None,
        "more": len(lines) > SIZE,
    }
    return page_response(request, "runs.html", data)


def _sorted(rows: Sequence[RunRow], asked: RunFilter, place: AppState) -> list[RunRow]:
    """Sort runs, which come newest first; those without a value are last."""
    sort, descending = asked.sort, asked.falling
    if sort == "started":
        return [*(rows if descending else reversed(rows))]

    def value(row: RunRow) -> _Value | str:
        with suppress(msgspec.DecodeError, JuryboxError):  # a damaged run
            if sort == "name":
                return run_title(row, place.store).casefold()
            return _VALUES[sort](row, outcome_of(row)) if row.status == "finished" else None
        return None

    valued = [(value(row), row) for row in rows]
    known = [(each, row) for each, row in valued if each is not None]
    known.sort(key=itemgetter(0), reverse=descending)
    return [row for _, row in (*known, *(pair for pair in valued if pair[0] is None))]


def _line(row: RunRow, place: AppState) -> RunLine:
    view, rubric = None, ""
    with suppress(msgspec.DecodeError, JuryboxError):  # one damaged run must not hide the others
        rubric = "{0.id} {0.version}".format(rubric_of(row))
        view = view_run(row, place.store) if row.status == "finished" else None
    run = listed_run(row, place.store, view)
    source = None if run.derived_from is None else place.store.run(run.derived_from)
    return RunLine(row=row, run=run, source=source, rubric=rubric, view=view)


def _with_metrics(line: RunLine, place: AppState, until: float) -> RunLine:
    """Add a run's headline metrics; those of a short unfinished run are so far."""
    view = line.view
    if view is None and 0 < (line.run.samples or 0) <= _SO_FAR and time.monotonic() < until:
        with suppress(msgspec.DecodeError, JuryboxError):
            view = view_run(line.row, place.store)
    if view is None:
        return line
    metrics = view.estimates
    return msgspec.structs.replace(
        line, view=view, metric=metrics.of(view.key_metric), pass_rate=metrics.of("pass_rate")
    )


def _cost_known(line: RunLine) -> bool:
    view = line.view
    return view is not None and not view.derived_from and cost_of(view.cost) != "unknown"


def _trends(lines: Sequence[RunLine]) -> list[tuple[list[RunLine], str]]:
    """Return the scored runs of each suite by one rubric, jury and target, the oldest first.

    The suites are in the order of the list. Next to the runs is a note on others of the suite.
    """
    found: dict[tuple[object, ...], list[RunLine]] = {}
    for each in lines:
        view, metric = each.view, each.metric
        if view is None or view.status != "finished" or metric is None or metric.value is None:
            continue
        target = view.metadata.get("target_name")
        key = each.run.suite, each.run.judge, view.rubric.sha256, target, metric.name
        found.setdefault(key, []).append(each)

    def age(line: RunLine) -> tuple[object, ...]:
        return *line.answered_at, line.run.run_id

    every = [
        (sorted(runs, key=age), _others(key, found)) for key, runs in found.items() if len(runs) > 1
    ]
    return every[:_MOST_TRENDS]


def _others(own: tuple[object, ...], found: Mapping[tuple[object, ...], Sequence[RunLine]]) -> str:
    """Return how many of a suite's runs a trend leaves out and by what they differ."""
    others = [key for key in found if key[0] == own[0] and key != own]
    if not others:
        return ""
    names = ("suite", "judge", "rubric", "target", "metric")
    differ = [name for at, name in enumerate(names) if any(key[at] != own[at] for key in others)]
    many, more = len(found[own]), sum(len(found[key]) for key in others)
    return f"{many} of {many + more} finished runs; {more} by another {' or '.join(differ)}"
