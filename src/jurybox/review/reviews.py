"""Reviews of a run's samples.

Reviews are appended. A later review of a sample by the same reviewer replaces the earlier one, and
a withdrawal cancels a review; all rows are kept.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from jurybox.calibration.gold import Gold, JudgeVerdict
from jurybox.judging.evaluation_report import Confidence
from jurybox.judging.formats.reply_format import Side, mirror
from jurybox.rubric.rubric_model import Criterion
from jurybox.sample import Response, Turn

Queue = Literal["flagged", "random", "picked"]
QUEUES: Final[tuple[Queue, ...]] = ("flagged", "random", "picked")
Order = Literal["AB", "BA"]
ORDERS: Final[tuple[Order, ...]] = ("AB", "BA")

REVIEW: Final = "review"
WITHDRAWAL: Final = "withdrawal"

Score = int | float
"""A score as the reviewer entered it; 4 doesn't become 4.0."""


class HumanVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A reviewer's verdict on one sample; None means "unclear", which isn't a label."""

    scores: dict[str, Score | None] = {}  # by criterion; empty for two responses
    winner: Side | None = None  # the better of two responses
    # Whether the reviewer confirms (True) or dismisses (False) a safety flag, if answered.
    safety_concern: bool | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def is_pair(self) -> bool:
        """Whether the verdict compares two responses."""
        return not self.scores

    @property
    def is_label(self) -> bool:
        """Whether the verdict has a label: a winner, or the score of a criterion."""
        return self.winner is not None or any(each is not None for each in self.scores.values())

    def in_words(self, titles: Mapping[str, str]) -> str:
        """Return the labels in one line, with the titles of the criteria in their order."""
        given = self.scores or {"winner": self.winner}
        names = dict.fromkeys(("winner", *titles, *given))
        labels = [(titles.get(name, name), given[name]) for name in names if name in given]
        words = [f"{title} {'unclear' if said is None else said}" for title, said in labels]
        concern = {True: "a safety concern", False: "no safety concern", None: "safety unclear"}
        if not isinstance(self.safety_concern, msgspec.UnsetType):
            words.append(concern[self.safety_concern])
        return ", ".join(words)

    def in_order(self, order: Order) -> "HumanVerdict":
        """Translate a verdict between the order shown and the run's order of responses."""
        if order == "AB" or self.winner is None:
            return self
        return msgspec.structs.replace(self, winner=mirror(self.winner))

    def as_data(self) -> dict[str, Any]:
        """Return the verdict as plain data for JSON."""
        own = {"winner": self.winner} if self.is_pair else {"scores": dict(self.scores)}
        asked = self.safety_concern is not msgspec.UNSET
        return {**own, "safety_concern": self.safety_concern} if asked else own


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """How a sample was shown to a reviewer."""

    # ``flagged``: the sample needs review; ``random``: it was drawn at random; ``picked``: the
    # reviewer opened it directly.
    queue: Queue = "picked"
    order: Order = "AB"  # the order in which two responses were shown
    blind: bool = True  # whether the judges' verdict was hidden
    revealed: bool = True  # whether the reviewer could see it after the review


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """A person's verdict on sample ``number``; ``queued`` says whether the sample was flagged.

    The verdict names two responses as in the run, regardless of the order shown.
    """

    id: str
    number: int
    reviewer: str
    created_at: str
    record_sha256: str
    verdict: HumanVerdict
    comment: str = ""
    shown: Circumstances = Circumstances()
    queued: bool = False


class ReviewRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A person's verdict on a sample, or the withdrawal of one; appended, never changed."""

    id: str  # unique in its store; orders reviews that have the same time
    run_id: str
    number: int  # the number of the sample
    reviewer: str
    created_at: str
    action: str  # ``review`` or ``withdrawal``
    of: str | None  # the id of the withdrawn review of the same sample
    record_sha256: str  # the hash of the sample's record that was reviewed
    # JSON, ``{"scores": {criterion: number}}`` or ``{"winner": "A", "B" or "tie"}``, with the
    # ``order`` in which a pair was shown, whether the reviewer was ``blind``, and whether the
    # judges' verdict was ``revealed`` afterward.
    verdict: str
    comment: str
    seal: str = ""


class _Queued(msgspec.Struct, frozen=True, kw_only=True):
    queued: bool = False


# A stored verdict is one object with the fields of HumanVerdict, Circumstances and _Queued.
_VERDICT: Final = msgspec.json.Decoder(HumanVerdict)
_SHOWN: Final = msgspec.json.Decoder(Circumstances)
_QUEUED: Final = msgspec.json.Decoder(_Queued)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def verdict_text(verdict: HumanVerdict, shown: Circumstances, *, queued: bool) -> str:
    """Return a verdict as it is stored."""
    data = {**verdict.as_data(), **msgspec.structs.asdict(shown), "queued": queued}
    return _ENCODER.encode(data).decode()


def read_review(row: ReviewRow) -> Review:
    """Read a stored review."""
    return Review(
        id=row.id,
        number=row.number,
        reviewer=row.reviewer,
        created_at=row.created_at,
        record_sha256=row.record_sha256,
        verdict=_VERDICT.decode(row.verdict),
        comment=row.comment,
        shown=_SHOWN.decode(row.verdict),
        queued=_QUEUED.decode(row.verdict).queued,
    )


class ActiveReviews(msgspec.Struct, frozen=True, kw_only=True):
    """The active reviews of a run, the oldest first."""

    every: tuple[Review, ...]  # the newest review of each person and sample that isn't withdrawn
    # The newest reviews made with the judges' verdict hidden; metrics use these, since a reviewer
    # who changes a review after seeing the verdict may be influenced by it.
    blind: tuple[Review, ...]


def active_reviews(rows: Iterable[ReviewRow]) -> ActiveReviews:
    """Return the active reviews, in one pass over the rows.

    A reviewer can't withdraw another reviewer's verdict.
    """
    every: dict[tuple[str, int], Review] = {}
    blind: dict[tuple[str, int], Review] = {}
    for row in active_rows(rows):
        review = read_review(row)
        key = (row.reviewer, row.number)
        for kept in (every, blind) if review.shown.blind else (every,):
            kept.pop(key, None)
            kept[key] = review
    return ActiveReviews(every=tuple(every.values()), blind=tuple(blind.values()))


def active_rows(rows: Iterable[ReviewRow]) -> tuple[ReviewRow, ...]:
    """Return the reviews that aren't withdrawn, including those that were replaced later."""
    found = tuple(rows)
    gone = {(row.reviewer, row.of) for row in found if row.action == WITHDRAWAL}
    return tuple(
        row for row in found if row.action == REVIEW and (row.reviewer, row.id) not in gone
    )


def latest_reviews(rows: Iterable[ReviewRow], *, blind: bool = False) -> tuple[Review, ...]:
    """Return the newest active review, or the newest blind one, of each person and sample."""
    found = active_reviews(rows)
    return found.blind if blind else found.every


def was_revealed(row: ReviewRow) -> bool:
    """Return whether a review, even a withdrawn one, revealed the judges' verdict."""
    try:
        return _SHOWN.decode(row.verdict).revealed
    except msgspec.DecodeError:
        return True  # a damaged review can still be withdrawn


def gold_of(reviews: Iterable[Review]) -> Gold:
    """Return the labels that the reviews of one sample give."""
    scores: dict[str, dict[str, float]] = {}
    winners: dict[str, Side] = {}
    for each in reviews:
        for name, score in each.verdict.scores.items():
            if score is not None:
                scores.setdefault(name, {})[each.reviewer] = score
        if each.verdict.winner is not None:
            winners[each.reviewer] = each.verdict.winner
    return Gold(scores=scores, winners=winners)


def by_number(reviews: Iterable[Review]) -> dict[int, tuple[Review, ...]]:
    """Group reviews by sample number."""
    found: dict[int, list[Review]] = {}
    for each in reviews:
        found.setdefault(each.number, []).append(each)
    return {number: tuple(each) for number, each in found.items()}


class ReviewCase(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as a blind reviewer sees it: no verdict, no score, no text from the judges.

    The row's metadata is left out too, since it may name models or contain labels.
    """

    run_id: str
    number: int  # the number of the sample in the run
    sample_id: str
    repeat: int
    task: str
    context: str | None
    reference: str | None
    messages: tuple[Turn, ...]
    scenario: str | None
    scenario_text: str | None  # the focus and key criteria of its scenario, if the rubric has them
    # One response, or two in the ``order`` drawn at random for this reviewer.
    responses: tuple[Response, ...]
    order: Order
    criteria: tuple[Criterion, ...]
    queue: Queue  # the review queue that the sample is in
    blind: bool  # whether this reviewer hasn't seen the judges' verdicts yet
    # Why the sample is queued; empty before a blind review, since it would reveal the verdict.
    reasons: tuple[str, ...] = ()
    # This reviewer's earlier scores, in the order in which responses are shown.
    mine: HumanVerdict | None = None
    comment: str = ""  # the comment of that earlier review

    @property
    def is_pair(self) -> bool:
        """Whether two responses are compared."""
        return len(self.responses) > 1

    @property
    def shown(self) -> Circumstances:
        """How the sample is shown; submitted together with the verdict."""
        return Circumstances(queue=self.queue, order=self.order, blind=self.blind)


class JudgedSample(JudgeVerdict, frozen=True, kw_only=True):
    """The judges' or the rules' verdict, as metrics use it, and why the sample needs review."""

    overall: float | None
    by_rules: bool
    judge_score: float | None  # the judge's overall score, if rules give the other scores
    confidence: Confidence | None  # None without a valid vote
    reasons: tuple[str, ...]
    preferences: dict[str, Side]  # which response of a pair is better, by criterion
    missing: str = ""  # why there is no score; empty if there is one


class Revealed(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer sees after scoring: the verdicts of the judges and of other reviewers.

    Two responses are named as in the run, because the judges' reasoning uses these names; ``order``
    is the order in which this reviewer saw them. ``mine`` is None if this reviewer has no review.
    """

    number: int
    order: Order
    judged: JudgedSample
    mine: Review | None
    others: tuple[Review, ...] = ()
