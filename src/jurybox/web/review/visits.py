"""Somebody at the desk of a run: who they are, which queue they work in, where they go next."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jurybox.calibration.reviews import QUEUES, Queue
from jurybox.web.guard import form_of, query_of
from jurybox.web.pages.finding import sample_number
from jurybox.web.place import place_of
from jurybox.web.refusals import Refusal
from jurybox.web.rendering import page_response, segment
from jurybox.web.review.reviewers import goes_straight_on, reviewer_of
from jurybox.wiring.reviewing import ReviewDesk

TITLES: Final[Mapping[Queue, str]] = {"flagged": "Flagged", "random": "Random part"}
_NOTICES: Final = {
    "saved": "Saved.",
    "undone": "Your last review is taken back; here is its sample again.",
    "nothing": "There is no review of yours to take back.",
    "known": "You have reviewed this sample already.",
}


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A request of a reviewer."""

    request: Request
    desk: ReviewDesk
    reviewer: str
    queue: Queue

    @property
    def form(self) -> Mapping[str, str]:
        """The fields that were sent."""
        return form_of(self.request)

    @property
    def query(self) -> Mapping[str, str]:
        """What stands behind the question mark."""
        return dict(query_of(self.request))

    @property
    def number(self) -> int:
        """The sample that the address names.

        Raises:
            Refusal: it can't be one.

        """
        return sample_number(self.request.path_params["number"])

    def link(self, path: str = "", **query: str | int) -> str:
        """Return the address of a page of this desk, in the same queue."""
        told = urlencode({"queue": self.queue, **query})
        return f"{base_of(self.desk)}{path}?{told}"

    def go(self, path: str = "", **query: str | int) -> Response:
        """Send the reviewer to a page of this desk."""
        return RedirectResponse(self.link(path, **query), 303)

    def page(self, name: str, status: int = 200, **data: Any) -> Response:  # noqa: ANN401
        """Return a page of this desk."""
        mine = [each for each in self.desk.reviews() if each.reviewer == self.reviewer]
        shared = {
            "title": f"Review {self.desk.run.id}",
            "run": self.desk.run,
            "base": base_of(self.desk),
            "queue": self.queue,
            "queues": [{"name": name, "title": title} for name, title in TITLES.items()],
            "reviewer": self.reviewer,
            "progress": self.desk.progress(self.reviewer),
            "last": mine[-1].id if mine else "",
            "straight": goes_straight_on(self.request),
            "notice": _NOTICES.get(self.query.get("said", ""), ""),
        }
        return page_response(self.request, f"review/{name}.html", {**shared, **data}, status)


Seated = Callable[[Visit], Response]


def seated(answer: Seated, usual: Queue = "flagged") -> Callable[[Request], Response]:
    """Return an answer to a request; who hasn't said who they are is asked first."""

    def answered(request: Request) -> Response:
        desk = desk_of(request)
        queue = _queue_of(request, usual)
        reviewer = reviewer_of(request)
        if reviewer is None:
            told = urlencode({"queue": queue})
            return RedirectResponse(f"{base_of(desk)}/name?{told}", 303)
        return answer(Visit(request=request, desk=desk, reviewer=reviewer, queue=queue))

    return answered


def desk_of(request: Request) -> ReviewDesk:
    """Return the desk of the run that a request names.

    Raises:
        Refusal: there is no such run.

    """
    place = place_of(request)
    run = place.run(request.path_params["run"])
    if run is None:
        raise Refusal(404, "there is no such run", "begin at the list of runs")
    return ReviewDesk(place.store, run)


def base_of(desk: ReviewDesk) -> str:
    """Return the address below which all pages of a desk are."""
    return f"/runs/{segment(desk.run.id)}/review"


def _queue_of(request: Request, usual: Queue) -> Queue:
    given = form_of(request).get("queue") or dict(query_of(request)).get("queue", "")
    return given if given in QUEUES else usual
