"""Two runs compared, and several side by side with their outputs in columns."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, cast
from urllib.parse import urlencode

from fastapi import Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jurybox.app.view_run import view_run
from jurybox.engine.records import RunRow
from jurybox.reporting.attention import SamplePlace
from jurybox.reporting.compare_runs import CompareOptions
from jurybox.reporting.html.comparison import comparison_data
from jurybox.reporting.html.html_text import moment
from jurybox.reporting.run_changes import CHANGES, ChangeFilter
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.run_verdict import Verdict, verdict_of
from jurybox.reporting.side_by_side import SideBySide, changed_outputs, side_by_side
from jurybox.reporting.stored import metadata_of, plan_of, run_title
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import WIN_RATE
from jurybox.statistics.metric_differences import RIGHT, MetricDifference
from jurybox.storage.store import Store
from jurybox.web.app_state import AppState
from jurybox.web.error_pages import PageError
from jurybox.web.filters import refuse_unknown
from jurybox.web.lookup import PlaceOf, known_run
from jurybox.web.template_engine import page_of, page_response, paged, segment, waiting_page

Page = Annotated[int, Query(ge=1, le=1_000_000)]

_RUNS: Final = 100
_TWO: Final = 2
_PATIENCE: Final = 2.0  # seconds until a page says that runs are being compared


def compare_page(  # noqa: PLR0913, PLR0917 - those of the query
    request: Request,
    place: PlaceOf,
    run: Annotated[Sequence[str], Query(max_length=_RUNS)] = (),
    chosen: Annotated[Sequence[str], Query(max_length=_RUNS)] = (),
    a: str = "",
    b: str = "",
    change: str = "",
    page: Page = 1,
    written: Literal["true", ""] = "",
) -> Response:
    """Answer with a comparison, or with a form to choose runs.

    The others are compared with the last ``run``. Those ``chosen`` in the list may be in any order.
    """
    run = run or _baselines_last(place, chosen)
    if len(run) > _TWO:
        address = urlencode([("run", each) for each in reversed(run)])
        return RedirectResponse(f"/side-by-side?{address}", 303)
    if run:
        b, a = run[0], (*run[1:], a)[0]
    names = (a, b)
    data: dict[str, Any] = {
        "title": "Compare",
        "runs": _choices(place.store),
        "names": names,
        "diff": None,
    }
    if all(names):
        rows = [known_run(place, name) for name in names]
        made = place.comparison(rows[0], rows[1])
        if not _is_ready(place, rows, made):
            return _comparing(request, _TWO)
        diff = made.result()
        verdicts = verdicts_of(place, (diff.a, diff.b))
        refuse_unknown("change", change, diff.counts.kinds)
        only = cast("ChangeFilter | None", change or None)
        data |= _data(place, rows, diff, only, page) | {"written": written}
        data |= comparison_data(diff, verdicts) | {"file_url": _file_url(names)}
    return page_response(request, "compare.html", data)


def _baselines_last(place: AppState, names: Sequence[str]) -> list[str]:
    """Return runs, the newest first, but each before those that it is to be compared with."""
    rows = sorted((known_run(place, name) for name in names), key=attrgetter("created_at", "id"))
    waiting, ordered = {row.id: row for row in rows}, list[str]()

    def add(name: str | None) -> None:
        row = waiting.pop(name or "", None)
        if row is not None:
            add(plan_of(row).derived_from)
            add(metadata_of(row).get("baseline"))
            ordered.append(row.id)

    for row in rows:
        add(row.id)
    return ordered[::-1]


def _is_ready(place: AppState, rows: Sequence[RunRow], made: Future[Any]) -> bool:
    """Return whether a comparison and the agreement with reviewers in each run are ready soon."""
    return not wait((made, *map(place.agreement, rows)), _PATIENCE).not_done


def verdicts_of(place: AppState, views: Sequence[RunView]) -> list[Verdict]:
    """Return the verdicts on runs, with what their reviews say."""
    return [verdict_of(each, place.agreement(each.row).result()) for each in views]


def _comparing(request: Request, count: int) -> Response:
    return waiting_page(
        request, f"Comparing {count} runs", "Every sample of these runs is being read."
    )


def _data(
    place: AppState, rows: Sequence[RunRow], diff: RunDiff, only: ChangeFilter | None, page: int
) -> dict[str, Any]:
    if only == "changed" and diff.counts.other_winner == diff.counts.changed:
        only = "other_winner"  # the same samples
    if only == "changed" and diff.counts.changed == diff.counts.changes:
        only = None
    every = diff.listed_changes(only)
    shown, pages = paged(every, page)
    page, changes = pages["page"], [*changed_outputs(place.store, diff, shown)]
    query = partial(list_query, rows[0].id, rows[1].id)
    walk = "?" + query(only or "", page)
    listed = {each.number for _, shown in changes for each in shown.outputs[1:] if each}
    kinds = {
        (each.id, each.repeat): query(kind, page_of(at))
        for kind in CHANGES
        for at, each in enumerate(diff.listed_changes(kind))
    }

    def address(sample: SamplePlace) -> str:
        row, number = f"#row-{sample.number}", sample.number or 0
        kind = kinds.get((sample.id, sample.repeat))
        if number in listed:
            return row
        if kind is None:
            return _sample_url(diff.b.run_id, number)
        return f"/compare?{kind}{row}"

    one, other, counts = diff.a.run_id, diff.b.run_id, diff.counts
    here = f"/compare?{query('', 1)}"
    shared = (
        _list_url(one, also_in=other if counts.only_in_a else ""),
        _list_url(other, also_in=one if counts.only_in_b else ""),
    )
    return {
        "title": " and ".join(view.name[:80] for view in (diff.a, diff.b)),
        "only": only,
        "changes": changes,
        "others": (),
        **pages,
        "listed": len(every),
        "address": address,
        "here": here,
        "change_url": f"{here}&change={{}}#changed".format,
        "list_urls": (_list_url(one), _list_url(other)),
        "shared_urls": shared,
        "n_query": partial(_of_test, diff, shared),
        "sample_url": partial(_sample_url, query=walk),
    }


def _list_url(run_id: str, also_in: str = "") -> Callable[[str], str]:
    """Return the address of a list of samples by its query, of those that another run has too."""
    only = f"{urlencode({'also_in': also_in})}&" if also_in else ""
    return f"/runs/{segment(run_id)}/samples?{only}{{}}".format


def _of_test(
    diff: RunDiff, shared: Sequence[Callable[[str], str]], tested: MetricDifference
) -> str | None:
    """Return the list of the samples that a test uses; None if no list has exactly these."""
    if tested.metric == RIGHT:
        return f"/compare?{list_query(diff.a.run_id, diff.b.run_id, 'labeled', 1)}#changed"
    if tested.comparison.n == diff.counts.in_both:
        return shared[1]("")
    # A sample with a score has a verdict and a valid vote, so as many samples with a score are the
    # same ones.
    scores = (each for each in diff.tested if each.of_responses and not each.is_share)
    alike = (each for each in scores if each.comparison.n == tested.comparison.n)
    score = next(alike, None) if tested.metric in {"passed", "safety_flag"} else tested
    if score is None or score.is_share or (score.only_in_a and score.only_in_b):
        return None
    query = "winner=any" if score.metric == WIN_RATE else f"metric={score.metric}"
    return shared[1 if score.only_in_a else 0](query)


def list_query(a: str, b: str, change: str, page: int) -> str:
    """Return the query for a page of the changed samples."""
    given = {"a": a, "b": b, "change": change, "page": page if page > 1 else ""}
    return urlencode({name: value for name, value in given.items() if value})


def _choices(store: Store, chosen: Sequence[RunRow] = ()) -> list[tuple[str, str]]:
    """Return the ids and names of runs for a form: those chosen, then the newest of the others.

    Runs that would have the same name are told apart by their ids.
    """
    rows = {row.id: row for row in (*chosen, *store.runs(_RUNS))}
    called = {
        run: ", ".join((run_title(row, store)[:80], row.suite[:60], moment(row.created_at)))
        for run, row in rows.items()
    }
    many = Counter(called.values())
    return [(run, f"{name}, {run}" if many[name] > 1 else name) for run, name in called.items()]


MOST_RUNS: Final = 8
_MOST_SAMPLES: Final = 250


def side_by_side_page(
    request: Request,
    place: PlaceOf,
    run: Annotated[list[str], Query(default_factory=list)],
    page: Page = 1,
    written: Literal["true", ""] = "",
) -> Response:
    """Answer with the runs in the address, in their order."""
    names = list(dict.fromkeys(run))
    if len(names) < _TWO:
        return RedirectResponse(f"/compare?{urlencode({'run': names}, doseq=True)}", 303)
    if len(names) > MOST_RUNS:
        raise PageError(400, f"{len(names)} runs don't fit on a page", f"choose 2 to {MOST_RUNS}")
    made = runs_side_by_side(place, names)
    rows = [known_run(place, name) for name in names]
    if not _is_ready(place, rows, made):
        return _comparing(request, len(names))
    compared = made.result()
    verdicts = verdicts_of(place, compared.runs)
    shown, pages = paged(compared.samples, page)
    walk = "?" + beside_query(names, pages["page"])
    data: dict[str, Any] = {
        "title": "Side by side",
        "runs": _choices(place.store, rows),
        "chosen": {each: _beside(sorted(names, key=each.__ne__)) for each in names},
        "address": _beside(names),
        "file_url": _file_url(names),
        "listed": len(compared.samples),
        "compared": compared,
        "shown": shown,
        **pages,
        "written": written,
        "sample_url": partial(_sample_url, query=walk),
        "verdicts": verdicts,
    }
    return page_response(request, "side_by_side.html", data)


def runs_side_by_side(place: AppState, names: Sequence[str]) -> Future[SideBySide]:
    """Compare runs by their ids with the first of them."""
    rows = [known_run(place, name) for name in names]

    def compare() -> SideBySide:
        views = [view_run(row, place.store) for row in rows]
        return side_by_side(place.store, views, CompareOptions(), most=_MOST_SAMPLES)

    return place.kept("side by side", compare, *rows)


def _file_url(names: Sequence[str]) -> str:
    return "/compare/report.html?" + urlencode({"run": names}, doseq=True)


def _beside(names: Sequence[str]) -> str:
    return "/side-by-side?" + urlencode({"run": names}, doseq=True)


def beside_query(
    names: Sequence[str], page: int, *, called: Literal["beside", "run"] = "beside"
) -> str:
    """Return the query of a page of several runs, or of a sample that was opened from it."""
    return urlencode({called: names, "page": page}, doseq=True)


def _sample_url(run_id: str, number: int, query: str = "") -> str:
    return f"/runs/{segment(run_id)}/samples/{number}{query}"
