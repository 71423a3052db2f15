"""Files to download: the report on a run, its samples as rows, and runs compared."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from tempfile import TemporaryFile
from typing import Annotated, BinaryIO, Final, Literal

from fastapi import Query
from starlette.responses import Response, StreamingResponse

from jurybox.app.gold_sets import labels_for_diff
from jurybox.app.view_run import report_parts, view_run
from jurybox.reporting.compare_runs import CompareOptions, compare_runs
from jurybox.reporting.export_rows import export_shape, export_writer, exported_rows
from jurybox.reporting.html.html_render import MOST_COMPARED, comparison_html, side_by_side_html
from jurybox.reporting.metric_text import plain_words
from jurybox.reporting.release import REVIEW_STATES
from jurybox.reporting.reports import write_report
from jurybox.reporting.side_by_side import side_by_side
from jurybox.reporting.stored import rubric_of, run_title
from jurybox.web.app_state import AppState
from jurybox.web.filters import PageFilter
from jurybox.web.lookup import PlaceOf, TheRun, known_run
from jurybox.web.pages.compare_page import MOST_RUNS, verdicts_of
from jurybox.web.template_engine import file_name, saved_as

_AT_ONCE: Final = 1 << 16
_TWO: Final = 2


async def report_file(run: TheRun, place: PlaceOf) -> Response:
    """Answer with the report on a run, as `jurybox report` writes it."""

    def write(file: BinaryIO) -> dict[str, str]:
        view = view_run(run, place.store)
        write_report(file, "html", view, place.store, report_parts(view, place.store, "html"))
        return saved_as(file_name(run, place.store, "report", ending=".html"))

    return await _written(place, "text/html", write)


async def comparison_file(
    run: Annotated[list[str], Query(min_length=2, max_length=MOST_RUNS)], place: PlaceOf
) -> Response:
    """Answer with two or more runs compared, as `jurybox diff -o` writes them."""
    rows, store = [known_run(place, name) for name in run], place.store

    def write(file: BinaryIO) -> dict[str, str]:
        views = [view_run(row, store) for row in rows]
        verdicts = verdicts_of(place, views)
        if len(rows) > _TWO:
            compared = side_by_side(store, views, CompareOptions(), MOST_COMPARED)
            text = side_by_side_html(compared, verdicts)
        else:
            gold = labels_for_diff(store, rows[0], rows[1], None)
            options = CompareOptions(limit=MOST_COMPARED, gold=gold)
            diff = compare_runs(store, views[0], views[1], options)
            text, _ = comparison_html(store, diff, verdicts)
        file.write(text.encode(errors="replace"))
        names = (run_title(row, store) for row in rows[1:])
        return saved_as(file_name(rows[0], store, *names, "compared", ending=".html"))

    return await _written(place, "text/html", write)


async def samples_file(
    run: TheRun,
    form: Literal["jsonl", "csv"],
    asked: Annotated[PageFilter, Query()],
    place: PlaceOf,
) -> Response:
    """Answer with the matching samples in the page's order, as `jurybox export` writes them."""

    def write(file: BinaryIO) -> dict[str, str]:
        asked.is_ready(place, run, None)
        numbers = place.store.sorted_numbers(run.id, asked.query_for(place.store, run))
        shape = export_shape(run)
        rows = exported_rows(place.store, run, shape, [*numbers])
        count = export_writer(f"samples.{form}")(file, shape.columns, rows)
        chosen = (*map(plain_words, asked.flag), REVIEW_STATES.get(asked.review or ""))
        others = (words for words, _ in asked.in_words(rubric_of(run)))
        words = (*chosen, *others, asked.scenario, asked.demographic, asked.search, count)
        return saved_as(file_name(run, place.store, *words, ending=f".{form}"))

    kind = "text/csv" if form == "csv" else "application/jsonl"
    return await _written(place, kind, write)


async def _written(
    place: AppState, kind: str, write: Callable[[BinaryIO], dict[str, str]]
) -> Response:
    """Answer with a file once it is complete: what can't be read is an error, not a short file."""

    def make() -> tuple[BinaryIO, dict[str, str]]:
        file = TemporaryFile()  # noqa: SIM115 - closed when it is sent
        try:
            return file, write(file)
        except BaseException:
            file.close()
            raise

    file, named = await asyncio.wrap_future(place.downloads.submit(make))
    headers = {**named, "Content-Length": str(file.tell())}
    file.seek(0)
    return StreamingResponse(_sent(file), headers=headers, media_type=f"{kind}; charset=utf-8")


def _sent(file: BinaryIO) -> Iterator[bytes]:
    with file:
        yield from iter(partial(file.read, _AT_ONCE), b"")
