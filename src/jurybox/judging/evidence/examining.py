"""One vote on one response: gather evidence for every criterion, then score by code."""

from jurybox.judging.asking import Judging
from jurybox.judging.evidence.checking import completed
from jurybox.judging.evidence.gathering import gather
from jurybox.judging.flow import Answer, Flow, Unscored
from jurybox.judging.panel import Seat
from jurybox.judging.verdict import Remarks, Scores
from jurybox.rubric.model import weighted_mean
from jurybox.sample import Sample


def examine(
    judging: Judging, sample: Sample, response: str, seat: Seat
) -> Flow[Answer[Scores] | Unscored]:
    """Score one response by what a small model finds in it."""
    criteria = judging.rubric.criteria
    gathered = yield from gather(criteria, sample, (response,), seat)
    if isinstance(gathered, Unscored):
        return gathered
    (evidence,) = gathered.evidence
    # The findings are complete before any of them becomes a score (E4).
    reasoning = {name: each.told() for name, each in evidence.items()}
    shares = [evidence[each.id].share for each in criteria]
    scored = judging.scored
    if scored != criteria:
        # One score for the response as a whole: its criteria by their weights.
        (whole,) = scored
        reasoning = {whole.id: "\n".join(f"{name}: {text}" for name, text in reasoning.items())}
        shares = [weighted_mean(criteria, shares)]
    checklist = completed(judging.checklist, seat.judge, pair=False)
    scores = {each.id: each.scale.at(share) for each, share in zip(scored, shares, strict=True)}
    remarks = Remarks(reasoning=reasoning, bias_checklist=checklist)
    return Answer(value=Scores(scores=scores, remarks=remarks), replies=gathered.readings.replies)
