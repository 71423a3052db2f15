"""The parts of a sample that a reviewer sees, before and after scoring it."""

import msgspec

from jurybox.engine.records import SampleRow
from jurybox.engine.replay import StoredResponses
from jurybox.reporting.stored import SampleRecord
from jurybox.review.review_case import JudgedSample, ReviewCase
from jurybox.review.reviews import Order, Queue, Review
from jurybox.review.selection import pair_order
from jurybox.rubric.rubric_model import Rubric
from jurybox.rubric.scenarios import scenario_texts
from jurybox.sample import Row
from jurybox.scoring.sample_index import KINDS


class StoredSample(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed stored sample."""

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
    record = SampleRecord(sample)
    responses = record.responses
    given = {"response": responses.response, "response_b": responses.response_b}
    return StoredSample(
        sample=sample,
        row=msgspec.structs.replace(record.inputs, **given),
        responses=responses,
        judged=_judged(record, rubric),
    )


def _judged(record: SampleRecord, rubric: Rubric) -> JudgedSample:
    """Return the verdict that the run's metrics are made of: the judges', or that of the rules."""
    result, criteria = record.result, () if record.report is None else record.report.criteria
    return JudgedSample(
        scores={each.id: result.metrics.get(each.id) for each in rubric.criteria},
        overall=result.metrics.get(rubric.overall_name),
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
    """Return a sample as shown to a reviewer, the same on every visit."""
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
