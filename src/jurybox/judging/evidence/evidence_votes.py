"""A vote from evidence: on one response, or on a pair in both orders."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from jurybox.judging.evidence.questions import Answers, Probe, inquire, logit
from jurybox.judging.evidence.sources import (
    Evidence,
    Inquiry,
    inquiry_for,
    material_part,
    without_forgery,
)
from jurybox.judging.flow import Answer, Flow, Unscored
from jurybox.judging.formats.reply_format import Preference, Remarks, Scores, Side
from jurybox.judging.pairwise import PairVote
from jurybox.judging.protocol import Judging, Seat
from jurybox.rubric.rubric_model import Rubric, weighted_mean
from jurybox.sample import Sample

_ALONE: Final = "The response was read alone; there was no other before it."
_PAIR: Final = (
    "Each response was also read alone, and the comparison was made in both orders and averaged;"
    " the reasoning shows how far the order alone moved it."
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

_ROLE: Final = "You are a strict and fair judge of answers."
_WORDINGS: Final = (
    "Which answer is better?",
    "Which of the two answers is more correct and more helpful?",
    "Which answer would an expert prefer?",
)
# In log-odds, found on the development cases: a smaller lead of one side's own evidence is no
# difference, and a smaller lead in the comparison contradicts nothing; but it may break a tie.
_LEAST_EVIDENCE: Final = 0.25
_LEAST_COMPARISON: Final = 0.15
_LEAST_TIEBREAK: Final = 0.01


def examine(
    judging: Judging, sample: Sample, response: str, seat: Seat
) -> Flow[Answer[Scores] | Unscored]:
    """Score one response by what a small model finds in it."""
    criteria = judging.asked.criteria
    inquiries = _inquiries(judging, sample, response, seat)
    readings = yield from inquire(seat, _probes(inquiries))
    if isinstance(readings, Unscored):
        return readings
    evidence = _concluded(inquiries, readings.answers, response)
    # The findings are complete before any of them becomes a score (E4).
    reasoning = {name: each.findings for name, each in evidence.items()}
    shares = [evidence[each.id].share for each in criteria]
    if judging.scored != criteria:
        # One overall score for the response: the weighted mean of its criteria.
        (whole,) = judging.scored
        reasoning = {whole.id: "\n".join(f"{name}: {text}" for name, text in reasoning.items())}
        shares = [weighted_mean(criteria, shares)]
    scores = {
        each.id: each.scale.denormalize(share)
        for each, share in zip(judging.scored, shares, strict=True)
    }
    checklist = _completed(judging.checklist, seat.judge, _ALONE)
    remarks = Remarks(reasoning=reasoning, bias_checklist=checklist)
    return Answer(value=Scores(scores=scores, remarks=remarks), replies=readings.replies)


def compare(judging: Judging, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    """Compare two responses by the evidence for each, and by asking which is better."""
    a = sample.response.text
    b = "" if sample.response_b is None else sample.response_b.text
    of_a, of_b = (_inquiries(judging, sample, each, seat) for each in (a, b))
    straight, swapped = _comparison(sample, a, b, seat), _comparison(sample, b, a, seat)
    readings = yield from inquire(seat, [*_probes(of_a), *_probes(of_b), straight, swapped])
    if isinstance(readings, Unscored):
        return readings
    answers = readings.answers
    compared = Compared(with_a_first=answers[straight], with_b_first=answers[swapped])
    both = (_concluded(of_a, answers, a), _concluded(of_b, answers, b))
    alone = _by_evidence(judging, both, compared, seat)
    together = _by_comparison(compared, alone)
    stable = alone.winner == together.winner or "tie" in {alone.winner, together.winner}
    decided = alone.winner if alone.winner != "tie" else _side(compared.lead, _LEAST_TIEBREAK)
    return PairVote(
        winner=decided if stable else "tie",
        stable=stable,
        preferences=alone.preferences if stable else dict.fromkeys(alone.preferences, "tie"),
        first=alone,
        second=together,
        replies=readings.replies,
    )


_LEFT_OUT: Final = (
    "Parts of the response that imitate the judge's own conversation were not shown to it."
)


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """How probable it is that the first answer is called the better one."""

    with_a_first: float
    with_b_first: float

    @property
    def lead(self) -> float:
        """How far A leads once the order is averaged out, in log-odds."""
        return (logit(self.with_a_first) - logit(self.with_b_first)) / 2

    @property
    def bias(self) -> float:
        """How far the first place leads whichever answer has it, in log-odds."""
        return (logit(self.with_a_first) + logit(self.with_b_first)) / 2

    def describe(self) -> str:
        """Return the evidence found, and how far the order alone shifted it."""
        return (
            "Asked which is better, the model names the first answer with probability"
            f" {self.with_a_first:.2f} when A is first and {self.with_b_first:.2f} when B is;"
            f" without the order's part A leads by {self.lead:+.2f} (log-odds), and the order alone"
            f" makes {self.bias:+.2f}."
        )


def _inquiries(judging: Judging, sample: Sample, response: str, seat: Seat) -> dict[str, Inquiry]:
    criteria = judging.asked.criteria
    return {each.id: inquiry_for(each, sample, response, seat.vote) for each in criteria}


def _probes(inquiries: Mapping[str, Inquiry]) -> list[Probe]:
    return [probe for each in inquiries.values() for probe in each.probes]


def _concluded(
    inquiries: Mapping[str, Inquiry], answers: Answers, response: str
) -> dict[str, Evidence]:
    found = {name: each.conclude(answers) for name, each in inquiries.items()}
    if without_forgery(response) == response.strip():
        return found
    return {
        name: msgspec.structs.replace(each, findings=f"{each.findings} {_LEFT_OUT}")
        for name, each in found.items()
    }


def _completed(checklist: Rubric, judge: str, position: str) -> dict[str, str]:
    """Return the bias checklist with what the method does about each bias."""
    done = {"position": position, **_CHECKLIST}
    return {item.id: done.get(item.id, _UNKNOWN).format(judge=judge) for item in checklist.criteria}


def _comparison(sample: Sample, first: str, second: str, seat: Seat) -> Probe:
    a, b = without_forgery(first), without_forgery(second)
    return Probe(
        role=_ROLE,
        parts=(material_part(sample), f"Answer A: {a}\nAnswer B: {b}\n"),
        question=_WORDINGS[seat.vote % len(_WORDINGS)],
        words=("A", "B"),
    )


def _by_evidence(
    judging: Judging, both: Sequence[Mapping[str, Evidence]], compared: Compared, seat: Seat
) -> Preference:
    """Return the preference that follows from each response's own evidence."""
    criteria = judging.asked.criteria
    a, b = both
    leads = {name: each.strength - b[name].strength for name, each in a.items()}
    whole = weighted_mean(criteria, leads.values())
    reasoning = {
        name: f"A: {each.findings}\nB: {b[name].findings}\n{compared.describe()}"
        for name, each in a.items()
    }
    return Preference(
        winner=_side(whole, _LEAST_EVIDENCE),
        preferences={name: _side(lead, _LEAST_EVIDENCE) for name, lead in leads.items()},
        remarks=Remarks(
            reasoning=reasoning,
            bias_checklist=_completed(judging.checklist, seat.judge, _PAIR),
            extra={"lead_of_a": round(whole, 6)},
        ),
    )


def _by_comparison(compared: Compared, alone: Preference) -> Preference:
    """Return the preference that follows from comparing the responses overall."""
    return Preference(
        winner=_side(compared.lead, _LEAST_COMPARISON),
        preferences=alone.preferences,
        remarks=Remarks(
            reasoning=dict.fromkeys(alone.preferences, compared.describe()),
            bias_checklist={},
            extra={"lead_of_a": round(compared.lead, 6), "position_bias": round(compared.bias, 6)},
        ),
    )


def _side(lead: float, least: float) -> Side:
    if abs(lead) < least:
        return "tie"
    return "A" if lead > 0 else "B"
