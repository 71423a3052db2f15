"""What a reviewer is shown of a sample: before they have scored it, and after."""

from typing import Final

import msgspec

from jurybox.engine.records import SampleRow, read_result
from jurybox.engine.replay import StoredResponses
from jurybox.judging.evaluation_report import Confidence, EvaluationReport
from jurybox.judging.verdict import Side
from jurybox.review.reviews import Circumstances, HumanVerdict, Order, Queue, Review
from jurybox.review.selection import pair_order
from jurybox.rubric.model import Criterion, Rubric
from jurybox.sample import Response, Row, Turn
from jurybox.scoring.review_reasons import KINDS

_INPUTS: Final = msgspec.json.Decoder(Row)
_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)
_REPORT: Final = msgspec.json.Decoder(EvaluationReport)


class ReviewCase(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as a blind reviewer may see it: no verdict, no score, no word of the judges.

    The row's metadata are left out too, since they may name models or hold labels.

    Attributes:
        number: the sample's, as are ``sample_id`` and ``repeat``.
        responses: one, or two in the ``order`` that was drawn for this reviewer.
        criteria: what is asked for; for two responses the winner, and by criterion if they like.
        queue: where it came from.
        blind: whether what the judges say is still unknown to this reviewer.
        reasons: why it is queued; empty while it is to be scored blind, since that tells.
        mine: what this reviewer has said of it before, in the order that is shown.
        comment: what they added then.

    """

    run_id: str
    number: int
    sample_id: str
    repeat: int
    task: str
    context: str | None
    reference: str | None
    messages: tuple[Turn, ...]
    scenario: str | None
    responses: tuple[Response, ...]
    order: Order
    criteria: tuple[Criterion, ...]
    queue: Queue
    blind: bool
    reasons: tuple[str, ...] = ()
    mine: HumanVerdict | None = None
    comment: str = ""

    @property
    def is_pair(self) -> bool:
        """Whether two responses are compared."""
        return len(self.responses) > 1

    @property
    def shown(self) -> Circumstances:
        """How it is shown, to be handed back with the verdict."""
        return Circumstances(queue=self.queue, order=self.order, blind=self.blind)


class JudgedSample(msgspec.Struct, frozen=True, kw_only=True):
    """What the judges, or the rubric's rules, say of a sample; two responses as the run has them.

    Attributes:
        scores: by criterion, None where there is none.
        overall: the whole, from 0 to 1.
        preferences: by criterion, of two responses.
        reasons: what is the matter with it, as runs name that.

    """

    scores: dict[str, float | None]
    overall: float | None
    reasoning: dict[str, str]
    winner: Side | None
    preferences: dict[str, Side]
    stable: bool | None
    confidence: Confidence | None
    reasons: tuple[str, ...]


class Revealed(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer sees after they have scored: the judges' verdict, and other people's.

    Everything names two responses as the run does, for so do the judges in their reasoning;
    ``order`` is in which this reviewer saw them. ``mine`` is None where nothing was blind.
    """

    number: int
    order: Order
    judged: JudgedSample
    mine: Review | None
    others: tuple[Review, ...] = ()


class StoredSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample as it is stored, read."""

    sample: SampleRow
    row: Row
    responses: StoredResponses
    judged: JudgedSample

    @property
    def is_pair(self) -> bool:
        """Whether two responses are compared."""
        return self.responses.response_b is not None


def read_stored(sample: SampleRow, rubric: Rubric) -> StoredSample:
    """Read a sample.

    Raises:
        msgspec.DecodeError: it can't be read.

    """
    responses = _RESPONSES.decode(sample.responses)
    row = _INPUTS.decode(sample.inputs)
    return StoredSample(
        sample=sample,
        row=msgspec.structs.replace(
            row, response=responses.response, response_b=responses.response_b
        ),
        responses=responses,
        judged=_judged(sample, rubric),
    )


def _judged(sample: SampleRow, rubric: Rubric) -> JudgedSample:
    """Return the verdict that the run's figures are made of: the judges', or that of the rules."""
    result = read_result(sample.result)
    report = None if sample.report is None else _REPORT.decode(sample.report)
    criteria = () if report is None else report.criteria
    return JudgedSample(
        scores={each.id: result.figures.get(each.id) for each in rubric.criteria},
        overall=result.figures.get(rubric.overall_name),
        reasoning={each.id: each.reasoning for each in criteria if each.reasoning},
        winner=result.winner,
        preferences={each.id: each.preference for each in criteria if each.preference},
        stable=result.stable,
        confidence=result.confidence,
        reasons=tuple(name for name, kind in KINDS.items() if kind.concerns(result)),
    )


def case_of(
    stored: StoredSample,
    rubric: Rubric,
    reviewer: str,
    queue: Queue,
    mine: Review | None,
    *,
    blind: bool,
) -> ReviewCase:
    """Return what a reviewer is shown of a sample, the same whenever they come back to it."""
    sample, row, responses = stored.sample, stored.row, stored.responses
    order: Order = "AB"
    shown = (responses.response,)
    if responses.response_b is not None:
        order = pair_order(sample.run_id, sample.number, reviewer)
        shown = (responses.response, responses.response_b)
    return ReviewCase(
        run_id=sample.run_id,
        number=sample.number,
        sample_id=sample.sample_id,
        repeat=sample.repeat,
        task=row.task,
        context=row.context,
        reference=row.reference,
        messages=row.messages,
        scenario=row.scenario,
        responses=shown if order == "AB" else shown[::-1],
        order=order,
        criteria=rubric.criteria,
        queue=queue,
        blind=blind,
        reasons=() if blind else stored.judged.reasons,
        mine=None if mine is None else mine.verdict.in_order(order),
        comment="" if mine is None else mine.comment,
    )
