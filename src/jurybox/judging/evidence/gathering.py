"""Gathering the evidence for all criteria: first the model's own answer, then all questions."""

from collections.abc import Sequence

import msgspec

from jurybox.judging.evidence.inquiry import Evidence, Inquiry
from jurybox.judging.evidence.kinds import inquiry_for, source_for
from jurybox.judging.evidence.own_answer import OwnAnswer, own_answer
from jurybox.judging.evidence.probes import Probe, Readings, inquire
from jurybox.judging.flow import Flow, Unscored
from jurybox.judging.panel import Seat
from jurybox.rubric.model import Criterion
from jurybox.sample import Sample


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence for each response by the criteria's ids, and all that was read."""

    evidence: tuple[dict[str, Evidence], ...]
    readings: Readings


def gather(
    criteria: Sequence[Criterion],
    sample: Sample,
    responses: Sequence[str],
    seat: Seat,
    more: Sequence[Probe] = (),
) -> Flow[Gathered | Unscored]:
    """Ask all that is to be known of some responses, and ``more``; each vote in other words."""
    own: OwnAnswer | None = None
    source = source_for(criteria, sample)
    if source is not None:
        answer = yield from own_answer(seat, sample, source)
        if isinstance(answer, Unscored):
            return answer
        own = answer
    replies = () if own is None else (own.reply,)
    inquiries = [
        {each.id: inquiry_for(each, sample, response, seat.vote, own) for each in criteria}
        for response in responses
    ]
    probes = [probe for side in inquiries for each in side.values() for probe in each.probes]
    readings = yield from inquire(seat, [*probes, *more])
    readings = msgspec.structs.replace(readings, replies=(*replies, *readings.replies))
    if isinstance(readings, Unscored):
        return readings
    evidence = tuple(_concluded(side, readings) for side in inquiries)
    return Gathered(evidence=evidence, readings=readings)


def _concluded(inquiries: dict[str, Inquiry], readings: Readings) -> dict[str, Evidence]:
    return {name: inquiry.conclude(readings.of) for name, inquiry in inquiries.items()}
