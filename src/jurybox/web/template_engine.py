"""Renders pages with one Jinja2 environment, in which every text is escaped."""

import math
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from jurybox.engine.records import RunRow
from jurybox.reporting.html.html_render import environment as report_environment
from jurybox.reporting.html.markdown_text import harmless, unmarked
from jurybox.reporting.stored import run_title
from jurybox.storage.store import Store
from jurybox.text_format import cut
from jurybox.web.app_state import app_state_of

CSRF: Final = "csrf"
"""The session key of the token that a form has to send back."""
SIZE: Final = 25
"""How many entries of a list are on a page."""
_LONGEST: Final = 140
_BEFORE: Final = 30


T = TypeVar("T")


def segment(text: object) -> str:
    """Return a text as one path segment, with slashes escaped."""
    return quote(str(text), safe="")


def file_name(run: RunRow, store: Store, *words: object, ending: str) -> str:
    """Return the name of a file to save: the run's name, and the words that are given."""
    parts = (run_title(run, store)[:80], *(str(word)[:40] for word in words if word is not None))
    return re.sub(r"[^\w.]+", "-", "-".join(filter(None, parts))).strip("-.") + ending


def saved_as(name: str) -> dict[str, str]:
    """Return the header that saves an answer as a file of this name."""
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}"}


def highlight(text: str, wanted: str) -> Markup:
    """Return a text or HTML as HTML in which every occurrence of ``wanted`` is marked."""
    html = escape(harmless(text))
    if not wanted:
        return html
    # Tags and entities are skipped: nothing within them is marked.
    pattern = f"({re.escape(str(escape(wanted)))})|<[^>]*>|&[^;\\s]+;"

    def mark(found: re.Match[str]) -> str:
        return f"<mark>{found[1]}</mark>" if found[1] else found[0]

    return Markup(re.sub(pattern, mark, html, flags=re.IGNORECASE))  # noqa: S704 - all is escaped


def excerpt(text: str, wanted: str, *, plain: bool = False) -> str:
    """Return the beginning of a text, or the part around the searched words.

    ``plain`` removes Markdown syntax, which needs the text's lines.
    """
    at = text.casefold().find(wanted.casefold()) if wanted else 0
    start = max(0, at - _BEFORE) if at + len(wanted) > _LONGEST else 0
    part = text[start:]
    part = unmarked(part[: 8 * _LONGEST]) if plain else part
    return cut("..." * (start > 0) + part, _LONGEST)


@cache
def environment() -> Environment:
    """Return the template environment of all pages: the report's, with our own templates."""
    made = report_environment([PackageLoader("jurybox.web", "templates")])
    cast("dict[str, Any]", made.filters).update(
        {"segment": segment, "highlight": highlight, "excerpt": excerpt}
    )
    return made


def warm_up() -> None:
    """Preload the templates and chart code that the first page would otherwise wait for."""
    import_module("jurybox.statistics.intervals")
    made = environment()
    for name in made.list_templates(extensions=["html"]):
        made.get_template(name)


def csrf_of(request: Request) -> str:
    """Return the CSRF token for this browser's forms."""
    session: dict[str, str] = request.scope.get("session", {})
    return session.setdefault(CSRF, secrets.token_urlsafe())


def waiting_page(request: Request, title: str, why: str) -> Response:
    """Return a page that reloads itself until the requested page is ready."""
    return page_response(request, "waiting.html", {"title": title, "why": why})


def page_response(
    request: Request, name: str, data: Mapping[str, Any], status: int = 200
) -> Response:
    """Return a page."""
    place = app_state_of(request)
    template = environment().get_template(name)
    text = template.render(
        csrf=csrf_of(request),
        store_name=place.store_name,
        at_store=place.at_store,
        guarded=place.guarded,
        path=request.scope["path"],
        run_name=partial(run_title, store=place.store),
        **data,
    )
    body = text.encode(errors="replace")
    return Response(body, status, media_type="text/html; charset=utf-8")


def paged(every: Sequence[T], page: int) -> tuple[Sequence[T], dict[str, int]]:
    """Return what a list has on a page, or on its last one, and the page's place."""
    page = min(page, max(1, math.ceil(len(every) / SIZE)))
    more = page * SIZE < len(every)
    return every[(page - 1) * SIZE : page * SIZE], {"page": page, "more": more, "size": SIZE}


def page_of(place: int) -> int:
    """Return the page with the entry at a place in such a list."""
    return place // SIZE + 1


def json_response(data: object, status: int = 200) -> Response:
    """Return JSON."""
    return Response(msgspec.json.encode(data), status, media_type="application/json")


def text_response(text: str) -> Response:
    """Return the full text, unchanged, as plain text."""
    body = text.encode(errors="replace")
    return Response(body, media_type="text/plain; charset=utf-8")
