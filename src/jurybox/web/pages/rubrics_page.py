"""Rubrics: the documents that runs were judged by, their versions, and what changed in them."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from fastapi import Query
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from jurybox.engine.records import RunRow, text_hash
from jurybox.errors import JuryboxError
from jurybox.reporting.html.html_text import marked
from jurybox.reporting.html.markdown_text import render_markdown
from jurybox.reporting.stored import plan_of, run_title
from jurybox.rubric import parse_rubric
from jurybox.rubric.rubric_model import Rubric
from jurybox.storage.store import Store
from jurybox.web.app_state import AppState
from jurybox.web.error_pages import PageError
from jurybox.web.lookup import ANY_TEXT, PlaceOf, TheRun, known_run
from jurybox.web.template_engine import highlight, page_response, text_response

_LOOKED_AT: Final = 2000
_FENCE: Final = "---"
_AROUND: Final = 2
"""How many lines are shown around a change."""
Since = Annotated[str, Query(max_length=200, pattern=ANY_TEXT)]


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a rubric, and the runs that used it, the newest first."""

    rubric_id: str
    title: str
    version: str
    sha256: str
    runs: tuple[str, ...]
    names: tuple[str, ...]  # what users call these runs
    first_use: tuple[str, str]  # when, and the run, by which versions are sorted
    last_used: str


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of a store's rubrics, found in ``looked_at`` runs."""

    versions: tuple[Used, ...]
    looked_at: int
    more: bool

    def before(self, version: Used) -> Used | None:
        """Return the next older version of the same rubric, in the order of the list."""
        older = self.versions[self.versions.index(version) + 1 :]
        return next((each for each in older if each.rubric_id == version.rubric_id), None)


def rubric_history(store: Store) -> History:
    """Return which versions of which rubrics the runs of a store used, the newest first.

    The rubrics themselves are in the order of their last use.
    """
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
            first_use=(runs[-1].created_at, runs[-1].id),
            last_used=runs[0].created_at,
        )
        for (rubric_id, title, version, sha256), runs in found.items()
    ]
    versions.sort(key=_age, reverse=True)
    order = {rubric_id: at for at, (rubric_id, *_) in reversed([*enumerate(found)])}
    versions.sort(key=lambda each: order[each.rubric_id])
    return History(
        versions=tuple(versions), looked_at=min(len(rows), _LOOKED_AT), more=len(rows) > _LOOKED_AT
    )


def _age(used: Used) -> tuple[list[int], tuple[str, str]]:
    """Return what versions are sorted by: their numbers, and of the same version the first use."""
    return [*map(int, filter(None, used.version.split(".")))], used.first_use


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


def rubric_page(request: Request, rubric: str, place: PlaceOf, since: Since = "") -> Response:
    """Answer with the newest version of a rubric that a run used, and the other versions."""
    history = rubric_history(place.store)
    mine = [each for each in history.versions if each.rubric_id == rubric]
    if not mine:
        raise PageError(404, "no run used this rubric", "look at the list of rubrics", rubric[:80])
    return _answer(request, place, known_run(place, mine[0].runs[0]), history, since)


def rubric_of_run(request: Request, run: TheRun, place: PlaceOf, since: Since = "") -> Response:
    """Answer with the rubric that a run was judged by, and what changed ``since`` another run."""
    return _answer(request, place, run, rubric_history(place.store), since)


def rubric_text(run: TheRun) -> Response:
    """Answer with the document itself."""
    return text_response(plan_of(run).rubric.text)


def _answer(
    request: Request, place: AppState, run: RunRow, history: History, since: str
) -> Response:
    document = plan_of(run).rubric
    rubric = _rubric(run)
    this = next((each for each in history.versions if run.id in each.runs), None)
    before = None if this is None else history.before(this)
    source = place.store.run(plan_of(run).derived_from or "")
    older = known_run(place, since) if since else source
    if older is None and before is not None:
        older = known_run(place, before.runs[0])
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
        "this": this,
        "older": older,
        "was": older and _rubric(older),
        "changes": older and list(changed_lines(plan_of(older).rubric.text, document.text)),
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


def changed_lines(old: str, new: str) -> Iterator[tuple[str, list[tuple[str, Markup]]]]:
    """Yield each place at which two documents differ: the heading above it, and its lines.

    Lines that both documents have are in one HTML element, and each other line in its own.
    """
    before, after = ([f"{line}\n" for line in text.splitlines()] for text in (old, new))
    for group in SequenceMatcher(None, before, after).get_grouped_opcodes(_AROUND):
        at, kind = next((each[3], each[0]) for each in group if each[0] != "equal")
        above = after[: at + (kind != "delete")]
        heading = next((line.strip("# \n") for line in above[::-1] if line.startswith("#")), "")
        lines = list[tuple[str, Markup]]()
        for kind, start, end, first, last in group:
            was, now = (
                highlight("".join(each), "") for each in (before[start:end], after[first:last])
            )
            if kind == "equal":
                lines.append(("div", now))
                continue
            for tag, text in (("del", marked(now, was, "a")), ("ins", marked(was, now, "b"))):
                lines += [(tag, line) for line in text.splitlines(keepends=True)]
        yield heading, lines
