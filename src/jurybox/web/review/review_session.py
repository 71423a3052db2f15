"""A reviewer's session: their name, their queue, and their next sample."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec
from fastapi import Depends, Query
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from jurybox.app.review_desk import ReviewDesk
from jurybox.engine.records import RunRow, SampleRow
from jurybox.reporting.stored import run_title
from jurybox.review.reviews import QUEUES, Queue
from jurybox.web.app_state import AppState
from jurybox.web.lookup import LARGEST, PlaceOf, TheRun, known_sample
from jurybox.web.pages.sample_page import SampleAddress, Way
from jurybox.web.security import form_of
from jurybox.web.template_engine import page_response, segment

REVIEWER: Final = "reviewer"
"""The session key of the reviewer's name."""
TITLES: Final[Mapping[Queue, str]] = {"flagged": "Flagged", "random": "Random subset"}
_NOTICES: Final = {
    "saved": "Saved.",
    "yes": "Saved: you confirmed the concern.",
    "no": "Saved: you dismissed the concern.",
    "picked": "Saved. The flagged queue follows: no review leads back to a list of samples here,"
    " because lists show the judge's verdict.",
    "undone": "Your review of this sample was taken back.",
    "restored": "Your last change was taken back; your review before it counts again.",
    "nothing": "There is no review of yours to take back.",
    "known": "You have already reviewed this sample.",
    "only": "This queue has no other sample for you now; here is the one that you skipped.",
    "undecided": "Only a decision is left for you: confirm or dismiss this sample's safety flag.",
}


def _desk(run: TheRun, place: PlaceOf) -> ReviewDesk:
    return ReviewDesk(
        place.store,
        run,
        reveals=place.reveal,
        overlap=place.overlap,
        reviewers=place.reviewers,
    )


TheDesk = Annotated[ReviewDesk, Depends(_desk)]


class ReviewAddress(SampleAddress):
    """The query parameters of the review pages, with the list that a picked sample was opened from.

    ``after`` is the sample to continue after, ``number`` the one to open once the name is known.
    ``then`` is the sample that was next in the list when the review began, because a review may
    move its sample in the list; the reviewed sample itself if it was the last one.
    """

    queue: Queue | None = None
    notice: str = ""
    again: str = ""
    after: int | None = Field(None, ge=0, le=LARGEST)
    number: str = ""
    then: int | None = Field(None, ge=0, le=LARGEST)

    def given(self, *without: str, **changes: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
        """Return the parameters of the list."""
        own = ReviewAddress.model_fields.keys() - SampleAddress.model_fields.keys()
        return super().given(*own, *without, **changes)

    @property
    def listed(self) -> list[tuple[str, Any]]:
        """The parameters of the list, and the position in it."""
        return self.given(at=self.at, page=self.page, then=self.then)

    def way(self, place: AppState, run: RunRow, row: SampleRow) -> Way:
        """Return where to go from a reviewed sample."""
        found = super().way(place, run, row)
        if self.then in {None, found.then}:
            return found
        near = self.address(at=self.at, page=self.page)
        link = f"/runs/{segment(run.id)}/samples/{self.then}{near}"
        return msgspec.structs.replace(found, next=None if self.then == row.number else link)


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """A request from a reviewer."""

    request: Request
    desk: ReviewDesk
    reviewer: str
    queue: Queue
    asked: ReviewAddress

    @property
    def form(self) -> Mapping[str, str]:
        """The fields that were sent."""
        return form_of(self.request)

    @property
    def undecided(self) -> list[int]:
        """The samples that this reviewer has reviewed, but whose flag no review has settled."""
        return sorted(self.desk.undecided(self.reviewer))

    def named(self, numbers: Iterable[int], most: int = 50) -> list[tuple[int, str]]:
        """Return the first of these samples, with their ids."""
        return [(each, self.desk.stored(each).id) for each in sorted(numbers)[:most]]

    def link(self, path: str = "", **query: str | int) -> str:
        """Return the address of a page of this desk, in the same queue or list."""
        listed = self.asked.listed if self.queue == "picked" else ()
        return address(self.desk, path, *listed, queue=self.queue, **query)

    def go(self, path: str = "", **query: str | int) -> Response:
        """Send the reviewer to a page of this desk."""
        return RedirectResponse(self.link(path, **query), 303)

    def page(self, name: str, status: int = 200, **data: Any) -> Response:  # noqa: ANN401
        """Return a page of this desk."""
        reviews = self.desk.reviews()
        mine = [each for each in reviews if each.reviewer == self.reviewer]
        counts = Counter(each.number for each in reviews).values()
        share, enough, left = not_mine(self.desk, self.reviewer, "flagged")
        release = self.desk.release()
        passed = every = self.desk.random_subset().passed
        if passed and self.desk.reviewers:  # those of others aren't for this reviewer to open
            passed &= self.desk.share(self.reviewer, "random")
        shared = {
            "title": f"Review {run_title(self.desk.run, self.desk.store)[:80]}",
            "run": self.desk.run,
            "base": address(self.desk),
            "queue": self.queue,
            "queues": [{"name": name, "title": title} for name, title in TITLES.items()],
            "reviewer": self.reviewer,
            "progress": self.desk.progress(self.reviewer),
            "reviewed": len(mine),
            "by_anyone": len(counts),
            "by_enough": sum(1 for count in counts if count >= self.desk.overlap),
            "overlap": self.desk.overlap,
            "passed": self.named(passed, 4),
            "passed_others": len(every) - len(passed),
            "own_share": len(share - enough),
            "own_left": len(left),
            "release": release,
            "repair": self.desk.repair,
            "assigned": bool(self.desk.reviewers),
            "undecided": self.undecided,
            "undo_link": self.link("/undo"),
            "last": mine[-1].id if mine else "",
            "last_id": self.desk.stored(mine[-1].number).id if mine else "",
            # If a review reveals the judge's verdict, what follows a withdrawn one isn't blind.
            "undo_loses": self.desk.reveals and bool(mine) and mine[-1].shown.blind,
            "reveals": self.desk.reveals,
            "way": None,
            "notice": _NOTICES.get(self.asked.notice, ""),
        }
        return page_response(self.request, f"review/{name}.html", {**shared, **data}, status)


def _visit(request: Request, desk: TheDesk, asked: Annotated[ReviewAddress, Query()]) -> Visit:
    """Return the reviewer's visit; if their name isn't known, redirect to its form."""
    usual: Queue = "picked" if "number" in request.path_params else "flagged"
    queue = queue_of(form_of(request), asked.queue or usual)
    reviewer: str | None = request.session.get(REVIEWER)
    if reviewer is None:
        number: str = request.path_params.get("number", "")[:15]
        wanted = {"queue": queue}
        if number.isdecimal():
            known_sample(desk.store, desk.run, int(number))
            wanted["number"] = number
        to = address(desk, "/name", *asked.listed, **wanted)
        raise HTTPException(303, headers={"Location": to})
    return Visit(request=request, desk=desk, reviewer=reviewer, queue=queue, asked=asked)


TheVisit = Annotated[Visit, Depends(_visit)]


def address(desk: ReviewDesk, path: str = "", *listed: tuple[str, Any], **query: str | int) -> str:
    """Return the address of a page of a desk; ``listed`` are the parameters of a list."""
    given = [*query.items(), *listed]
    search = f"?{urlencode(given, errors='replace')}" if given else ""
    return f"/runs/{segment(desk.run.id)}/review{path}{search}"


def queue_of(form: Mapping[str, str], usual: Queue = "flagged") -> Queue:
    """Return the queue that a form names."""
    given = form.get("queue")
    return given if given in QUEUES else usual


def not_mine(desk: ReviewDesk, reviewer: str, queue: Queue) -> tuple[frozenset[int], ...]:
    """Return a reviewer's share of a queue, and its parts that others reviewed or have to."""
    reviews, share = desk.reviews(), desk.share(reviewer, queue)
    left = share.difference(each.number for each in reviews if each.reviewer == reviewer)
    enough = left & desk.enough(reviewer, queue)
    return share, enough, left - enough
