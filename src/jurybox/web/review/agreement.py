"""How far judges and people agree so far."""

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from jurybox.web.place import place_of
from jurybox.web.rendering import page_response
from jurybox.web.review.visits import base_of, desk_of


def agreement_page(request: Request) -> Response:
    """Show the judges against people, people among themselves, and what that makes of figures."""
    desk = desk_of(request)
    data = {
        "title": f"Agreement {desk.run.id}",
        "run": desk.run,
        "base": base_of(desk),
        "standing": place_of(request).standings.of(desk.run),
        "counts": Counter(each.reviewer for each in desk.reviews()),
    }
    return page_response(request, "review/agreement.html", data)
