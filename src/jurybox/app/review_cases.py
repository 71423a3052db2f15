"""What a reviewer is shown of a sample: before they have scored it, and after."""

from typing import Final

import msgspec

from jurybox.engine.records import SampleRow, read_result
from jurybox.engine.replay import StoredResponses
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.review.review_case import JudgedSample, ReviewCase
from jurybox.review.reviews import Order, Queue, Review
from jurybox.review.selection import pair_order
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scenarios import scenario_texts
from jurybox.sample import Row
from jurybox.scoring.review_reasons import KINDS

_INPUTS: Final = msgspec.json.Decoder(Row)
_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)
_REPORT: Final = msgspec.json.Decoder(EvaluationReport)


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
    """Read a sample."""
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
        scenario_text=scenario_texts(rubric).get(row.scenario or ""),
        responses=shown if order == "AB" else shown[::-1],
        order=order,
        criteria=rubric.criteria,
        queue=queue,
        blind=blind,
        reasons=() if blind else stored.judged.reasons,
        mine=None if mine is None else mine.verdict.in_order(order),
        comment="" if mine is None else mine.comment,
    )
