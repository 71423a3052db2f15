"""Who reviews, and how they go on: asked once, changed at will."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jurybox.calibration.review_input import read_reviewer
from jurybox.errors import InputError
from jurybox.web.guard import form_of, query_of
from jurybox.web.pages.finding import sample_number
from jurybox.web.rendering import page_response
from jurybox.web.review.reviewers import remember_pace, remember_reviewer, reviewer_of
from jurybox.web.review.visits import TITLES, Visit, base_of, desk_of


def name_page(request: Request) -> Response:
    """Ask who reviews."""
    queue = dict(query_of(request)).get("queue", "")
    return _asked(request, reviewer_of(request) or "", queue)


def take_name(request: Request) -> Response:
    """Remember who reviews, and show the first sample."""
    form = form_of(request)
    given, queue = form.get("reviewer", ""), form.get("queue", "")
    try:
        name = read_reviewer(given)
    except InputError as error:
        return _asked(request, given[:200], queue, problem=f"{error.problem}; {error.mend}")
    told = urlencode({"queue": _queue(queue)})
    response = RedirectResponse(f"{base_of(desk_of(request))}?{told}", 303)
    remember_reviewer(response, name)
    return response


def take_pace(visit: Visit) -> Response:
    """Remember whether to show the judges' verdict after each review, and stay where it was."""
    number = visit.form.get("number", "")
    response = visit.go(f"/{sample_number(number)}" if number else "")
    remember_pace(response, straight=visit.form.get("straight") == "1")
    return response


def _queue(text: str) -> str:
    return text if text in TITLES else "flagged"


def _asked(request: Request, given: str, queue: str, *, problem: str = "") -> Response:
    desk = desk_of(request)
    data = {
        "title": "Who reviews?",
        "run": desk.run,
        "base": base_of(desk),
        "queue": _queue(queue),
        "reviewer": given,
        "known": desk.progress().reviewers,
        "problem": problem,
    }
    return page_response(request, "review/name.html", data, 400 if problem else 200)
