"""The parts of a sample that a reviewer sees, before and after scoring it."""

import msgspec

from jurybox.calibration.gold import JudgeVerdict
from jurybox.judging.evaluation_report import Confidence
from jurybox.judging.formats.reply_format import Side
from jurybox.review.reviews import Circumstances, HumanVerdict, Order, Queue, Review
from jurybox.rubric.rubric_model import Criterion
from jurybox.sample import Response, Turn


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
    # One, or two in the ``order`` drawn at random for this reviewer.
    responses: tuple[Response, ...]
    order: Order
    # The criteria to score; for two responses, a winner per criterion is optional.
    criteria: tuple[Criterion, ...]
    queue: Queue  # the review queue that the sample is in
    blind: bool  # whether this reviewer hasn't seen the judges' verdicts yet
    # Why it is queued; empty before a blind review, since reasons reveal the verdict.
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
    """The verdict that a run's metrics use, the judges' or the rules', and why it needs review.

    ``preferences`` are per criterion, with two responses named as in the run.
    """

    overall: float | None
    preferences: dict[str, Side]
    confidence: Confidence | None
    reasons: tuple[str, ...]


class Revealed(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer sees after scoring: the verdicts of the judges and of other reviewers.

    Two responses are named as in the run, because the judges' reasoning names them so; ``order`` is
    the order in which this reviewer saw them. ``mine`` is None if the review wasn't blind.
    """

    number: int
    order: Order
    judged: JudgedSample
    mine: Review | None
    others: tuple[Review, ...] = ()
