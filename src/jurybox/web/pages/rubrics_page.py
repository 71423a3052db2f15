"""Rubrics: the documents that runs were judged by, and which versions of them were used."""

from functools import lru_cache
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from jurybox.engine.records import RunRow, text_hash
from jurybox.errors import JuryboxError
from jurybox.reporting.html.markdown_text import render_markdown
from jurybox.reporting.stored import plan_of, run_title
from jurybox.rubric import parse_rubric
from jurybox.rubric.rubric_model import Rubric
from jurybox.storage.store import Store
from jurybox.web.error_pages import PageError
from jurybox.web.lookup import PlaceOf, TheRun
from jurybox.web.template_engine import page_response, text_response

_LOOKED_AT: Final = 2000
_FENCE: Final = "---"


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a rubric, and the runs that used it, the newest first."""

    rubric_id: str
    title: str
    version: str
    sha256: str
    runs: tuple[str, ...]
    names: tuple[str, ...]  # what users call these runs
    last_used: str


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of a store's rubrics, found in ``looked_at`` runs."""

    versions: tuple[Used, ...]
    looked_at: int
    more: bool


def rubric_history(store: Store) -> History:
    """Return which versions of which rubrics the runs of a store used, the newest first."""
    rows = store.runs(_LOOKED_AT + 1)
    found: dict[tuple[str, str, str, str], list[RunRow]] = {}
    for row in rows[:_LOOKED_AT]:
        # One damaged run must not hide the others.
        if rubric := _rubric(row):
            named = rubric.id, rubric.title, rubric.version, rubric.sha256
            found.setdefault(named, []).append(row)
    versions = [
        Used(
            rubric_id=rubric_id,
            title=title,
            version=version,
            sha256=sha256,
            runs=tuple(run.id for run in runs),
            names=tuple(run_title(run, store) for run in runs),
            last_used=runs[0].created_at,
        )
        for (rubric_id, title, version, sha256), runs in found.items()
    ]
    return History(
        versions=tuple(versions), looked_at=min(len(rows), _LOOKED_AT), more=len(rows) > _LOOKED_AT
    )


def _rubric(row: RunRow) -> Rubric | None:
    try:
        document = plan_of(row).rubric
        return _parsed(document.text, document.origin)
    except JuryboxError:
        return None


_parsed = lru_cache(maxsize=256)(parse_rubric)


def rubrics_page(request: Request, place: PlaceOf) -> Response:
    """Answer with the rubrics of the store."""
    history = rubric_history(place.store)
    return page_response(request, "rubrics.html", {"title": "Rubrics", "history": history})


def rubric_page(request: Request, rubric: str, place: PlaceOf) -> Response:
    """Answer with the newest version of a rubric that a run used, and the other versions."""
    history = rubric_history(place.store)
    mine = [each for each in history.versions if each.rubric_id == rubric]
    if not mine:
        raise PageError(404, "no run used this rubric", "look at the list of rubrics", rubric[:80])
    run = place.store.run(mine[0].runs[0])
    if run is None:
        raise PageError(404)
    return _answer(request, run, history)


def rubric_of_run(request: Request, run: TheRun, place: PlaceOf) -> Response:
    """Answer with the rubric that a run was judged by, as it was then."""
    return _answer(request, run, rubric_history(place.store))


def rubric_text(run: TheRun) -> Response:
    """Answer with the document itself."""
    return text_response(plan_of(run).rubric.text)


def _answer(request: Request, run: RunRow, history: History) -> Response:
    document = plan_of(run).rubric
    rubric = _rubric(run)
    front, body = _parts(document.text)
    title = document.origin if rubric is None else rubric.title
    data: dict[str, Any] = {
        "title": f"Rubric {title[:80]}",
        "run": run,
        "rubric": rubric,
        "heading": title,
        "sha256": text_hash(document.text) if rubric is None else rubric.sha256,
        "front": front,
        "body": render_markdown(body),
        "plain": body,
        "versions": [each for each in history.versions if rubric and each.rubric_id == rubric.id],
        "history": history,
    }
    return page_response(request, "rubric.html", data)


def _parts(text: str) -> tuple[str | None, str]:
    """Return the front matter and the rest of a document."""
    lines = text.split("\n")
    if lines[0].strip() != _FENCE:
        return None, text
    for place, line in enumerate(lines[1:], start=1):
        if line.strip() == _FENCE:
            return "\n".join(lines[1:place]), "\n".join(lines[place + 1 :])
    return None, text
