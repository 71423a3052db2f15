"""The table of a run's samples: found, sorted and cut into pages by the store."""

from typing import Annotated, Any, Final

import msgspec
from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from jurybox.engine.ports import Store
from jurybox.reporting.metric_text import cut
from jurybox.reporting.stored import damaged, rubric_of
from jurybox.rubric.metrics import SAMPLE_SCORE
from jurybox.rubric.rubric_model import Rubric
from jurybox.sample import Row
from jurybox.scoring.review_reasons import KINDS
from jurybox.scoring.sample_index import FLAGS, Facets, flag_names
from jurybox.web.filters import PageFilter, option
from jurybox.web.lookup import PlaceOf, TheRun
from jurybox.web.pages.run_page import groups_of
from jurybox.web.template_engine import page_response, segment

SIZE: Final = 50
_MOST_COLUMNS: Final = 8
_LATENCY: Final = "latency_e2e_ms"
_LONGEST_TASK: Final = 100
_INPUTS: Final = msgspec.json.Decoder(Row)
_FIGURES: Final = msgspec.json.Decoder(dict[str, float])
_MEANINGS: Final = {name: kind.meaning for name, kind in KINDS.items()} | {
    "needs_review": "a person should look at it",
    "passed": "every pass rule passes",
    "split": "the votes don't agree",
}


class SampleLine(msgspec.Struct, frozen=True, kw_only=True):
    """A sample in the table; ``task`` is the beginning of what was asked."""

    facets: Facets
    task: str
    flags: tuple[str, ...]
    figures: dict[str, float]
    address: str


def samples_page(
    request: Request, run: TheRun, asked: Annotated[PageFilter, Query()], place: PlaceOf
) -> Response:
    """Answer with a page of the samples that are asked for."""
    store, rubric = place.store, rubric_of(run)
    first = (asked.page - 1) * SIZE
    groups = groups_of(run, place)
    query = asked.chosen(lambda: groups).query(rubric.overall_name, offset=first, limit=SIZE)
    found = store.find_samples(run.id, query)
    base = f"/runs/{segment(run.id)}/samples"
    try:
        rows = [
            _found(row, _task(store, row), f"{base}/{row.number}{asked.address(at=first + at)}")
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
        "names": _names(rubric, columns),
        "flags": {name: _MEANINGS.get(name, name) for name in FLAGS},
        "groups": groups,
        "option": option,
        "heads": _heads(asked, columns),
    }
    return page_response(request, "samples.html", data)


def _task(store: Store, row: Facets) -> str:
    """Return the beginning of a task; nothing where it can't be read, which `verify` says."""
    sample = store.sample(row.run_id, row.number)
    try:
        return "" if sample is None else cut(_INPUTS.decode(sample.inputs).task, _LONGEST_TASK)
    except msgspec.DecodeError:
        return ""


def _found(row: Facets, task: str, address: str) -> SampleLine:
    return SampleLine(
        facets=row,
        task=task,
        flags=flag_names(row.flags),
        figures=_FIGURES.decode(row.figures),
        address=address,
    )


def _columns(rubric: Rubric, rows: list[SampleLine]) -> list[str]:
    """Return the figures that are worth a column: the scores, and how long it took."""
    scores = [SAMPLE_SCORE] if rubric.components else []
    scores += [rubric.overall_name, *(each.id for each in rubric.criteria)]
    there = {name for row in rows for name in row.figures}
    kept = [name for name in scores if name in there or not rows][:_MOST_COLUMNS]
    return [*kept, *([_LATENCY] if _LATENCY in there else [])]


def _names(rubric: Rubric, columns: list[str]) -> list[str]:
    """Return the figures by which samples can be filtered."""
    scores = (rubric.overall_name, *(each.id for each in rubric.criteria))
    return list(dict.fromkeys((*scores, *columns, "judge_score", "total_tokens")))


def _heads(asked: PageFilter, columns: list[str]) -> dict[str, tuple[str, str]]:
    """Return, for each column that can be sorted by, its address and how it is sorted now."""
    heads: dict[str, tuple[str, str]] = {}
    for name in ("number", "id", "urgency", *(f"figure:{column}" for column in columns)):
        chosen = asked.sort == name
        # What is urgent is wanted first; of scores, the lowest.
        descending = not asked.descending if chosen else name == "urgency"
        now = ("descending" if asked.descending else "ascending") if chosen else "none"
        heads[name] = (asked.address(sort=name, descending=descending), now)
    return heads
