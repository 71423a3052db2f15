"""The list of runs."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from jurybox.reporting.run_list import listed_run
from jurybox.web.guard import query_of
from jurybox.web.place import place_of
from jurybox.web.refusals import Refusal
from jurybox.web.rendering import page_response

SIZE: Final = 25
_LAST: Final = 1_000_000


def runs_page(request: Request) -> Response:
    """Answer with the newest runs."""
    place = place_of(request)
    page = page_number(dict(query_of(request)).get("page", "1"))
    first = (page - 1) * SIZE
    # One more than fits tells whether there are more.
    rows = place.store.runs(first + SIZE + 1)[first:]
    listed = [listed_run(row, place.store) for row in rows[:SIZE]]
    data = {"title": "Runs", "runs": listed, "page": page, "more": len(rows) > SIZE}
    return page_response(request, "runs.html", data)


def page_number(text: str) -> int:
    """Read the number of a page.

    Raises:
        Refusal: it is none.

    """
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:9]) <= _LAST:
        raise Refusal(
            400, "a page has a number from 1", "leave it out for the first", f"page={text[:40]}"
        )
    return int(text[:9])
