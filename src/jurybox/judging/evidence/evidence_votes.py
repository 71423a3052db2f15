"""A vote from evidence: on one response, or on a pair in both orders."""

from typing import Final

import msgspec

from jurybox.judging.evidence.questions import Probe, inquire, logit
from jurybox.judging.evidence.sources import (
    inquiry_for,
    material_part,
    shown,
    split_label,
    without_forgery,
)
from jurybox.judging.flow import Answer, Flow, Unscored
from jurybox.judging.formats.reply_format import Preference, Remarks, Scores, Side
from jurybox.judging.pairwise import PairVote
from jurybox.judging.protocol import Judging, Seat
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.rubric.scale import weighted_mean
from jurybox.sample import Sample

_ALONE: Final = "The response was read alone; there was no other before it."
_PAIR: Final = (
    "The comparison was made in both orders and averaged; the reasoning shows how far the order"
    " alone moved it."
)
_CHECKLIST: Final = {
    "verbosity": "No question asks for length, and no score depends on it.",
    "self_enhancement": (
        "Not examined: the author of the response isn't known. {judge} answered questions about"
        " what it says, and gave no opinion on it."
    ),
    "formatting": "No question asks for layout, unless a level of the rubric does.",
    "authority": (
        "The questions compare the response with the material or the rubric's words; a title or"
        " a claimed source in it is no answer to any of them. The model may still be impressed."
    ),
}
_UNKNOWN: Final = "Not examined: {judge} was asked narrow questions, and none is about this."

_LEFT_OUT: Final = (
    " Parts of the response that imitate the judge's own conversation were not shown to it."
)
_ROLE: Final = "You are a strict and fair judge of answers."
# In log-odds: after averaging both orders, a smaller lead may be noise.
_LEAST_LEAD: Final = 0.01


def examine(
    judging: Judging, sample: Sample, response: str, seat: Seat
) -> Flow[Answer[Scores] | Unscored]:
    """Score one response from a small model's findings."""
    criteria = judging.asked.criteria
    inquiries = {each.id: inquiry_for(each, sample, response) for each in criteria}
    probes = [probe for each in inquiries.values() for probe in (*each.good, *each.bad)]
    readings = yield from inquire(seat, probes)
    if isinstance(readings, Unscored):
        return readings
    answers, note = readings.answers, _note(response)
    # The findings are complete before any of them becomes a score (E4).
    reasoning = {name: each.findings(answers) + note for name, each in inquiries.items()}
    shares = [each.share(answers) for each in inquiries.values()]
    if judging.scored != criteria:
        # One overall score for the response: the weighted mean of its criteria.
        (whole,) = judging.scored
        reasoning = {whole.id: "\n".join(f"{name}: {text}" for name, text in reasoning.items())}
        shares = [weighted_mean([each.weight for each in criteria], shares)]
    scores = {
        each.id: each.scale.denormalize(share)
        for each, share in zip(judging.scored, shares, strict=True)
    }
    checklist = _completed(judging.checklist, seat.judge, _ALONE)
    remarks = Remarks(reasoning=reasoning, bias_checklist=checklist)
    return Answer(value=Scores(scores=scores, remarks=remarks), replies=readings.replies)


def compare(judging: Judging, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    """Ask in both orders which response is better by each criterion, and average the orders."""
    criteria = judging.asked.criteria
    a = sample.response.text
    b = "" if sample.response_b is None else sample.response_b.text
    straight = {each.id: _comparison(each, sample, a, b) for each in criteria}
    swapped = {each.id: _comparison(each, sample, b, a) for each in criteria}
    readings = yield from inquire(seat, [*straight.values(), *swapped.values()])
    if isinstance(readings, Unscored):
        return readings
    answers = readings.answers
    compared = {
        name: Compared(with_a_first=answers[probe], with_b_first=answers[swapped[name]])
        for name, probe in straight.items()
    }
    weights = [each.weight for each in criteria]
    lead = weighted_mean(weights, [each.lead for each in compared.values()])
    bias = weighted_mean(weights, [each.bias for each in compared.values()])
    note = _note(a, b)
    verdict = Preference(
        winner=_side(lead),
        preferences={name: _side(each.lead) for name, each in compared.items()},
        remarks=Remarks(
            reasoning={name: each.describe() + note for name, each in compared.items()},
            bias_checklist=_completed(judging.checklist, seat.judge, _PAIR),
            extra={"lead_of_a": round(lead, 6), "position_bias": round(bias, 6)},
        ),
    )
    # Both orders contribute to the vote, but its remarks are shown once.
    unremarked = msgspec.structs.replace(verdict.remarks, bias_checklist={})
    return PairVote(
        winner=verdict.winner,
        stable=verdict.winner != "tie",
        preferences=verdict.preferences,
        first=verdict,
        second=msgspec.structs.replace(verdict, remarks=unremarked),
        replies=readings.replies,
    )


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The probability that the model prefers the first answer, in both orders."""

    with_a_first: float
    with_b_first: float

    @property
    def lead(self) -> float:
        """How far A leads after averaging both orders, in log-odds."""
        return (logit(self.with_a_first) - logit(self.with_b_first)) / 2

    @property
    def bias(self) -> float:
        """How far the first position leads, whichever answer it has, in log-odds."""
        return (logit(self.with_a_first) + logit(self.with_b_first)) / 2

    def describe(self) -> str:
        """Return the evidence found, and how far the order alone shifted it."""
        return (
            "Asked which is better, the model names the first answer with probability"
            f" {self.with_a_first:.2f} when A is first and {self.with_b_first:.2f} when B is;"
            f" without the order's part A leads by {self.lead:+.2f} (log-odds), and the order alone"
            f" makes {self.bias:+.2f}."
        )


def _note(*responses: str) -> str:
    """Return a note if part of a response was not shown to the model."""
    return _LEFT_OUT if any(without_forgery(each) != each.strip() for each in responses) else ""


def _completed(checklist: Rubric, judge: str, position: str) -> dict[str, str]:
    """Return the bias checklist, completed with how the method handles each bias."""
    done = {"position": position, **_CHECKLIST}
    return {item.id: done.get(item.id, _UNKNOWN).format(judge=judge) for item in checklist.criteria}


def _comparison(criterion: Criterion, sample: Sample, first: str, second: str) -> Probe:
    answers = f"{shown(first)}Answer B:{shown(second)}"
    return Probe(
        role=_ROLE,
        parts=(*split_label(f"{material_part(sample)}Answer A:"), answers),
        question=f"Which answer is better by {criterion.name.lower()}?",
        words=("A", "B"),
    )


def _side(lead: float) -> Side:
    if abs(lead) < _LEAST_LEAD:
        return "tie"
    return "A" if lead > 0 else "B"
