"""The review queue as a JSON API."""

from typing import Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from jurybox.app.review_desk import ReviewProgress
from jurybox.errors import InputError
from jurybox.review.review_input import read_reviewer
from jurybox.review.reviews import Circumstances, Order, Queue, Review, ReviewCase, read_review
from jurybox.sample import Turn
from jurybox.web.error_pages import PageError
from jurybox.web.lookup import ANY_TEXT, LARGEST, PlaceOf, TheRun
from jurybox.web.review.review_session import TheDesk
from jurybox.web.run_api import REFUSED, answers
from jurybox.web.template_engine import json_response

router: Final = APIRouter(prefix="/api/runs/{run}", responses=REFUSED)
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=ANY_TEXT)]
Number = Annotated[int, Field(ge=0, le=LARGEST)]


class ShownResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response to judge; ``error`` is why it is missing."""

    text: str
    error: str | None = None


class AskedCriterion(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion to score, with its scale: whole numbers, or any if ``continuous``."""

    id: str
    name: str
    definition: str
    low: float
    high: float
    continuous: bool


class ShownCase(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as a blind reviewer may see it.

    Two responses come in an ``order`` drawn at random for each reviewer; send it back with the
    verdict, in which A is the response shown first.
    """

    number: int
    id: str
    repeat: int
    task: str
    context: str | None
    reference: str | None
    messages: tuple[Turn, ...]
    responses: tuple[ShownResponse, ...]
    order: Order
    queue: Queue
    blind: bool
    criteria: tuple[AskedCriterion, ...]


class NextCase(msgspec.Struct, frozen=True, kw_only=True):
    """The next sample, if any, and the progress of reviews."""

    case: ShownCase | None
    progress: ReviewProgress


class NextAsked(BaseModel):
    """The reviewer, and where to continue."""

    reviewer: Name
    queue: Literal["flagged", "random"] = "flagged"
    after: Number | None = Field(None, description="Continue after the sample with this number.")


class GivenReview(BaseModel, extra="forbid", strict=True):
    """A verdict: ``{"scores": {...}}``, or ``{"winner": "A"}`` with two responses.

    ``"safety_concern": true`` in it confirms a safety flag, ``false`` dismisses it.
    """

    number: Number
    reviewer: Name
    verdict: dict[str, Any]
    comment: str = ""
    queue: Queue = "picked"
    order: Order = "AB"


class ReportedReview(msgspec.Struct, frozen=True, kw_only=True):
    """An active review. In a pair, A and B are the run's, not the order that the reviewer saw."""

    id: str
    number: int
    reviewer: str
    created_at: str
    verdict: dict[str, Any]
    comment: str
    queue: Queue
    order: Order
    blind: bool
    record_sha256: str


class Undoing(BaseModel, extra="forbid", strict=True):
    """The reviewer whose newest review is withdrawn."""

    reviewer: Name


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """The withdrawn review and its sample; null if there was none."""

    withdrawn: str | None
    number: int | None


class AgreementReply(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of judges with people so far; null without reviews."""

    agreement: dict[str, Any] | None


@router.get("/review/next", responses=answers(NextCase))
def next_case(asked: Annotated[NextAsked, Query()], desk: TheDesk) -> Response:
    """Return the next sample that a reviewer hasn't reviewed, without the judges' verdict."""
    try:
        name = read_reviewer(asked.reviewer)
    except InputError as error:
        # The API's schema can't express which characters a name may have, so this isn't a 400.
        raise PageError(404, error.problem, error.hint, error.where) from None
    case = desk.next(name, kind=asked.queue, after=asked.after)
    shown = None if case is None else _shown(case)
    return json_response(NextCase(case=shown, progress=desk.progress(name)))


@router.post("/reviews", responses=answers(ReportedReview))
def review(given: GivenReview, desk: TheDesk) -> Response:
    """Add a review; it replaces an earlier one by the same person."""
    try:
        desk.stored(given.number)
    except InputError as error:
        raise PageError(404, error.problem, error.hint, "number") from None
    shown = Circumstances(queue=given.queue, order=given.order)
    row = desk.submit(given.number, given.reviewer, given.verdict, given.comment, shown=shown)
    return json_response(_reported(read_review(row)))


@router.post("/reviews/undo", responses=answers(Undone))
def undo_review(given: Undoing, desk: TheDesk) -> Response:
    """Withdraw a reviewer's newest review."""
    row = desk.undo(given.reviewer)
    withdrawn, number = (None, None) if row is None else (row.of, row.number)
    return json_response(Undone(withdrawn=withdrawn, number=number))


@router.get("/agreement", responses=answers(AgreementReply))
def agreement(run: TheRun, place: PlaceOf) -> Response:
    """Return the agreement of judges with people and among people, and corrected metrics."""
    found = place.agreement(run).result()
    return json_response(AgreementReply(agreement=None if found is None else found.as_data()))


def _shown(case: ReviewCase) -> ShownCase:
    asdict = msgspec.structs.asdict
    criteria = [asdict(each) | asdict(each.scale) for each in case.criteria]
    data = asdict(case) | {"id": case.sample_id, "criteria": criteria}
    return msgspec.convert(data, ShownCase, from_attributes=True)


def _reported(review: Review) -> ReportedReview:
    data = msgspec.structs.asdict(review) | msgspec.structs.asdict(review.shown)
    return msgspec.convert(data | {"verdict": review.verdict.as_data()}, ReportedReview)
