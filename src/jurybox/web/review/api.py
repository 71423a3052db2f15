"""Reviews for programs: the same desk, as JSON."""

from typing import Annotated, Any, Final

import msgspec

from jurybox.calibration.review_input import read_reviewer
from jurybox.calibration.reviews import Circumstances, Order, Queue, Review, read_review
from jurybox.errors import InputError
from jurybox.sample import Turn
from jurybox.web.api.registry import NUMBER, RUN, Call, Endpoint
from jurybox.web.pages.finding import known_run
from jurybox.web.parameters import ANY_TEXT, Parameter
from jurybox.web.refusals import Refusal
from jurybox.wiring.review_cases import Case
from jurybox.wiring.reviewing import Progress, ReviewDesk

_PATH: Final = "/runs/{run}/reviews"
_NAMES: Final = {"run": RUN}
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class ShownResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response to be judged; ``error`` is why there is none."""

    text: str
    error: str | None = None


class AskedCriterion(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be scored, and from where to where; only whole numbers unless ``continuous``."""

    id: str
    name: str
    definition: str
    low: float
    high: float
    continuous: bool


class ShownCase(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as a blind reviewer may see it.

    Two responses come in an ``order`` that was drawn for the reviewer: give it back with a verdict
    that names the first of them A.
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
    """What comes next, if anything, and how far people have come."""

    case: ShownCase | None
    progress: Progress


class GivenReview(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A verdict: ``{"scores": {...}}``, or ``{"winner": "A"}`` with two responses."""

    number: Number
    reviewer: Name
    verdict: dict[str, Any]
    comment: str = ""
    queue: Queue = "picked"
    order: Order = "AB"


class ToldReview(msgspec.Struct, frozen=True, kw_only=True):
    """A review that stands; it names two responses as the run does."""

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


class Undoing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose newest review is taken back."""

    reviewer: Name


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """Which review was taken back, and of which sample; null where there was none."""

    withdrawn: str | None
    number: int | None


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Judges against people so far; null where nobody has reviewed."""

    standing: dict[str, Any] | None


def endpoints() -> tuple[Endpoint, ...]:
    """Return what the queue brings to the API."""
    return (
        Endpoint(
            path="/runs/{run}/review/next",
            name="next_case",
            about="The next sample that a reviewer hasn't reviewed, without the judges' verdict.",
            answer=_next,
            gives=NextCase,
            names=_NAMES,
            query=_NEXT,
        ),
        Endpoint(
            path=_PATH,
            name="review",
            about="Add a review; one that the same person gave of the sample before is replaced.",
            answer=_review,
            gives=ToldReview,
            method="POST",
            names=_NAMES,
            takes=GivenReview,
        ),
        Endpoint(
            path=f"{_PATH}/undo",
            name="undo_review",
            about="Take back a reviewer's newest review.",
            answer=_undo,
            gives=Undone,
            method="POST",
            names=_NAMES,
            takes=Undoing,
        ),
        Endpoint(
            path="/runs/{run}/agreement",
            name="agreement",
            about="The judges against people so far, people among themselves, corrected figures.",
            answer=_standing,
            gives=Standing,
            names=_NAMES,
        ),
    )


_NEXT: Final = (
    Parameter(
        name="reviewer",
        schema={"type": "string", "minLength": 1, "maxLength": 80, "pattern": ANY_TEXT},
        about="Who reviews.",
        needed=True,
    ),
    Parameter(
        name="queue",
        schema={"type": "string", "enum": ["flagged", "random"], "default": "flagged"},
        about="What needs a person, the most urgent first, or all samples in a random order.",
    ),
    Parameter(name="after", schema=NUMBER, about="Go on behind the sample with this number."),
)


def _desk(call: Call) -> ReviewDesk:
    return ReviewDesk(call.place.store, known_run(call.place, call.path["run"]))


def _next(call: Call) -> NextCase:
    desk, query = _desk(call), call.query
    try:
        name = read_reviewer(query["reviewer"])
    except InputError as error:
        # The document can't say which letters a name may have, so that it isn't a bad request.
        raise Refusal(404, error.problem, error.mend, error.where) from None
    case = desk.next(name, kind=query["queue"], after=query.get("after"))
    told = None if case is None else _shown(case)
    return NextCase(case=told, progress=desk.progress(name))


def _review(call: Call) -> ToldReview:
    desk, given = _desk(call), call.body
    try:
        desk.stored(given.number)
    except InputError as error:
        raise Refusal(404, error.problem, error.mend, "number") from None
    shown = Circumstances(queue=given.queue, order=given.order)
    row = desk.submit(given.number, given.reviewer, given.verdict, given.comment, shown=shown)
    return _told(read_review(row))


def _undo(call: Call) -> Undone:
    row = _desk(call).undo(call.body.reviewer)
    return Undone(
        withdrawn=None if row is None else row.of, number=None if row is None else row.number
    )


def _standing(call: Call) -> Standing:
    run = known_run(call.place, call.path["run"])
    found = call.place.standings.of(run)
    return Standing(standing=None if found is None else found.as_data())


def _shown(case: Case) -> ShownCase:
    return ShownCase(
        number=case.number,
        id=case.sample_id,
        repeat=case.repeat,
        task=case.task,
        context=case.context,
        reference=case.reference,
        messages=case.messages,
        responses=tuple(ShownResponse(text=each.text, error=each.error) for each in case.responses),
        order=case.order,
        queue=case.queue,
        blind=case.blind,
        criteria=tuple(
            AskedCriterion(
                id=each.id,
                name=each.name,
                definition=each.definition,
                low=each.scale.low,
                high=each.scale.high,
                continuous=each.scale.continuous,
            )
            for each in case.criteria
        ),
    )


def _told(review: Review) -> ToldReview:
    return ToldReview(
        id=review.id,
        number=review.number,
        reviewer=review.reviewer,
        created_at=review.created_at,
        verdict=review.verdict.as_data(),
        comment=review.comment,
        queue=review.shown.queue,
        order=review.shown.order,
        blind=review.shown.blind,
        record_sha256=review.record_sha256,
    )
