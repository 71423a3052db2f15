"""The table of a run's samples, which the store searches, sorts and pages."""

from contextlib import suppress
from typing import Annotated, Any, Final

import msgspec
from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from jurybox.engine.records import RunRow
from jurybox.reporting.reasons import failed_rules, main_reason
from jurybox.reporting.release import flag_outcome, read_reviews
from jurybox.reporting.stored import SampleRecord, damaged, rubric_of
from jurybox.rubric.metrics import SAMPLE_SCORE
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import FLAGS, KINDS, Facets, flag_names
from jurybox.storage.store import Store
from jurybox.text_format import cut
from jurybox.web.filters import PageFilter, option
from jurybox.web.lookup import PlaceOf, TheRun
from jurybox.web.template_engine import page_response, segment

SIZE: Final = 50
_MOST_COLUMNS: Final = 8
_LATENCY: Final = "latency_e2e_ms"
_LONGEST: Final = 140
_BEFORE: Final = 30
_METRICS: Final = msgspec.json.Decoder(dict[str, float])
_MEANINGS: Final = {name: kind.meaning for name, kind in KINDS.items()} | {
    "needs_review": "a person should look at it",
    "passed": "every pass rule passes",
    "split": "the votes don't agree",
}


class SampleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sample in the table; texts are excerpts around the searched words."""

    facets: Facets
    task: str
    response: str
    failed: str  # the pass rules that fail
    reasoning: str
    flags: tuple[str, ...]  # the verdict first, and none that another one implies
    outcome: str  # what reviewers decided on its safety flag
    metrics: dict[str, float]
    address: str


def samples_page(
    request: Request, run: TheRun, asked: Annotated[PageFilter, Query()], place: PlaceOf
) -> Response:
    """Answer with a page of the matching samples."""
    store, rubric = place.store, rubric_of(run)
    first = (asked.page - 1) * SIZE
    found = asked.find(store, run, offset=first, limit=SIZE)
    base = f"/runs/{segment(run.id)}/samples"
    try:
        rows = [
            _line(
                store, run, row, asked.search, f"{base}/{row.number}{asked.address(at=first + at)}"
            )
            for at, row in enumerate(found.rows)
        ]
    except msgspec.DecodeError as error:
        raise damaged(run, error) from None
    columns = _columns(rubric, rows)
    data: dict[str, Any] = {
        "title": f"Samples of {run.id}",
        "run": run,
        "base": base,
        "asked": asked,
        "values": asked.model_dump(exclude_none=True),
        "rows": rows,
        "total": found.total,
        "first": first,
        "page": asked.page,
        "more": first + len(rows) < found.total,
        "pages": asked.address() + ("&page=" if asked.address() else "?page="),
        "columns": columns,
        "compared": any(row.facets.winner for row in rows),
        "names": _names(rubric, rows),
        "flags": {name: _MEANINGS.get(name, name) for name in FLAGS},
        "counts": {
            name: found.flags.get(name, 0)
            for name in FLAGS
            if name in found.flags or name in asked.flag
        },
        "groups": store.groups(run.id),
        "option": option,
    }
    return page_response(request, "samples.html", data)


def _line(store: Store, run: RunRow, row: Facets, wanted: str, address: str) -> SampleLine:
    sample = store.sample(row.run_id, row.number)
    task = response = why = failed = ""
    # `verify` reports what can't be read.
    with suppress(msgspec.DecodeError):
        if sample is not None:
            record = SampleRecord(sample)
            task, response, why = record.task, record.response, main_reason(record)
            failed = failed_rules(record)
    flags = _main_flags(flag_names(row.flags))
    rows = store.reviews_of(run.id, row.number) if "safety" in flags else ()
    return SampleLine(
        facets=row,
        task=_excerpt(task, wanted),
        response=_excerpt(response, wanted),
        failed=cut(failed, _LONGEST),
        reasoning=_excerpt(why, wanted),
        flags=flags,
        outcome=flag_outcome(read_reviews(run, rows).every),
        metrics=_METRICS.decode(row.metrics),
        address=address,
    )


def _main_flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags to show: the verdict first, and none that another one implies."""
    implied = {"split"} if "low_confidence" in flags else set[str]()
    if any(flag in KINDS and flag != "failed" for flag in flags):
        implied.add("needs_review")
    verdict = [flag for flag in ("failed", "passed") if flag in flags]
    return tuple(dict.fromkeys((*verdict, *(each for each in flags if each not in implied))))


def _excerpt(text: str, wanted: str) -> str:
    """Return the beginning of a text, or the part around the searched words."""
    at = text.casefold().find(wanted.casefold()) if wanted else 0
    if at + len(wanted) > _LONGEST:
        return cut("..." + text[at - _BEFORE :], _LONGEST)
    return cut(text, _LONGEST)


def _columns(rubric: Rubric, rows: list[SampleLine]) -> list[str]:
    """Return the metrics with their own column: the scores and the latency."""
    scores = [SAMPLE_SCORE] if rubric.components else []
    scores += [rubric.overall_name, *(each.id for each in rubric.criteria)]
    there = {name for row in rows for name in row.metrics}
    kept = [name for name in scores if name in there or not rows][:_MOST_COLUMNS]
    return [*kept, *([_LATENCY] if _LATENCY in there else [])]


def _names(rubric: Rubric, rows: list[SampleLine]) -> list[str]:
    """Return the metrics by which samples can be filtered: those that they have."""
    scores = (SAMPLE_SCORE, rubric.overall_name, *(each.id for each in rubric.criteria))
    there = {name for row in rows for name in row.metrics}
    every = (*scores, "judge_score", _LATENCY, "total_tokens")
    return [name for name in every if name in there or not rows]
