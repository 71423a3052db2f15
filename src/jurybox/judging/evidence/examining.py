"""One vote on one response: gather evidence for every criterion, then score by code."""

from collections.abc import Mapping, Sequence

from jurybox.judging.asking import Judging
from jurybox.judging.evidence.checking import completed_checklist
from jurybox.judging.evidence.inquiry import Evidence, Inquiry
from jurybox.judging.evidence.kinds import inquiry_for
from jurybox.judging.evidence.probes import Readings, inquire
from jurybox.judging.flow import Answer, Flow, Unscored
from jurybox.judging.panel import Seat
from jurybox.judging.verdict import Remarks, Scores
from jurybox.rubric.model import Criterion
from jurybox.sample import Sample


def examine(
    judging: Judging, sample: Sample, response: str, seat: Seat
) -> Flow[Answer[Scores] | Unscored]:
    """Score one response by what a small model finds in it."""
    inquiries = inquiries_for(judging.rubric.criteria, sample, response, seat.vote)
    readings = yield from inquire(
        seat, [probe for inquiry in inquiries.values() for probe in inquiry.probes]
    )
    if isinstance(readings, Unscored):
        return readings
    evidence = concluded(inquiries, readings)
    # The findings are complete before any of them becomes a score (E4).
    reasoning = {name: told(each) for name, each in evidence.items()}
    checklist = completed_checklist(judging.checklist, seat.judge, pair=False)
    remarks = Remarks(reasoning=_reasoning(judging, reasoning), bias_checklist=checklist)
    scores = _scores(judging, evidence)
    return Answer(value=Scores(scores=scores, remarks=remarks), replies=readings.replies)


def inquiries_for(
    criteria: Sequence[Criterion], sample: Sample, response: str, vote: int
) -> dict[str, Inquiry]:
    """Return what is asked for each criterion; each vote asks in other words."""
    return {each.id: inquiry_for(each, sample, response, vote) for each in criteria}


def concluded(inquiries: Mapping[str, Inquiry], readings: Readings) -> dict[str, Evidence]:
    """Return the evidence for each criterion."""
    return {name: inquiry.conclude(readings.of) for name, inquiry in inquiries.items()}


def told(evidence: Evidence) -> str:
    """Return the findings as a reasoning."""
    return " ".join(evidence.findings)


def _scores(judging: Judging, evidence: Mapping[str, Evidence]) -> dict[str, float]:
    scored = judging.scored()
    if scored == judging.rubric.criteria:
        return {each.id: each.scale.at(evidence[each.id].share) for each in scored}
    # One score for the response as a whole: its criteria by their weights.
    (whole,) = scored
    criteria = judging.rubric.criteria
    weight = sum(each.weight for each in criteria)
    share = sum(each.weight * evidence[each.id].share for each in criteria) / weight
    return {whole.id: whole.scale.at(share)}


def _reasoning(judging: Judging, reasoning: dict[str, str]) -> dict[str, str]:
    scored = judging.scored()
    if scored == judging.rubric.criteria:
        return reasoning
    (whole,) = scored
    return {whole.id: "\n".join(f"{name}: {text}" for name, text in reasoning.items())}
