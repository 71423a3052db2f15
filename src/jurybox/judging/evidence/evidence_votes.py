"""A vote from evidence: on one response, or on a pair in both orders."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from jurybox.judging.evidence.questions import (
    Evidence,
    Inquiry,
    Probe,
    Readings,
    context_part,
    inquire,
    logit,
    question_part,
    shown,
)
from jurybox.judging.evidence.sources import OwnAnswer, inquiry_for, own_answer, source_for
from jurybox.judging.flow import Answer, Flow, Unscored
from jurybox.judging.formats.reply_format import Preference, Remarks, Scores, Side
from jurybox.judging.pairwise import PairVote
from jurybox.judging.protocol import Judging, Seat
from jurybox.rubric.rubric_model import Criterion, Rubric, weighted_mean
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


_ALWAYS: Final = {
    "verbosity": "No question asks for length, and no score depends on it.",
    "self_enhancement": (
        "Not looked into: who wrote the response isn't known. {judge} answered questions about"
        " what it says, and gave no opinion on it."
    ),
    "formatting": "No question asks for layout, unless a level of the rubric does.",
    "authority": (
        "The questions hold the response against the material or the rubric's words; a title or"
        " a claimed source in it is no answer to any of them. The model may still be impressed."
    ),
}
_UNKNOWN: Final = "Not looked into: {judge} was asked narrow questions, and none is about this."

_ALONE: Final = "The response was read alone; there was no other to stand before it."
_PAIR: Final = (
    "Each response was also read alone, and the comparison was made in both orders and averaged;"
    " the reasoning says how far the order alone moved it."
)


def completed(checklist: Rubric, judge: str, *, pair: bool) -> dict[str, str]:
    """Return the bias checklist with what the method does against each bias."""
    against = {"position": _PAIR if pair else _ALONE, **_ALWAYS}
    return {
        item.id: against.get(item.id, _UNKNOWN).format(judge=judge) for item in checklist.criteria
    }


_ROLE: Final = "You are a strict and fair judge of answers."
_WORDINGS: Final = (
    "Which answer is better?",
    "Which of the two answers is more correct and more helpful?",
    "Which answer would an expert prefer?",
)
_SIDES: Final = ("A", "B")

# In log-odds, found on the development cases: a smaller lead of one side's own evidence is no
# difference, and a smaller lead in the comparison contradicts nothing; but it may break a tie.
_LEAST_EVIDENCE: Final = 0.25
_LEAST_COMPARISON: Final = 0.15
_LEAST_TIEBREAK: Final = 0.01


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """How probable it is that the answer which stands first is called the better one."""

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
        """Say what was found, and how far the order alone moved it."""
        return (
            "Asked which is better, the model names the first answer with probability"
            f" {shown(self.with_a_first)} when A stands first and {shown(self.with_b_first)}"
            f" when B does; without the order's part A leads by {self.lead:+.2f} (log-odds), and"
            f" the order alone makes {self.bias:+.2f}."
        )


def compare(judging: Judging, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    """Compare two responses by evidence."""
    a = sample.response.text
    b = "" if sample.response_b is None else sample.response_b.text
    criteria = judging.asked.criteria
    straight, swapped = _comparison(sample, a, b, seat.vote), _comparison(sample, b, a, seat.vote)
    gathered = yield from gather(criteria, sample, (a, b), seat, (straight, swapped))
    if isinstance(gathered, Unscored):
        return gathered
    readings = gathered.readings
    compared = Compared(with_a_first=readings.of[straight], with_b_first=readings.of[swapped])
    alone = _alone(judging, gathered.evidence, compared.describe(), seat)
    together = _together(compared, alone)
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


def _comparison(sample: Sample, first: str, second: str, vote: int) -> Probe:
    return Probe(
        role=_ROLE,
        head=f"{context_part(sample)}{question_part(sample)}",
        body=f"Answer A: {first}\nAnswer B: {second}\n",
        question=_WORDINGS[vote % len(_WORDINGS)],
        words=_SIDES,
    )


def _alone(
    judging: Judging,
    evidence: Sequence[Mapping[str, Evidence]],
    compared: str,
    seat: Seat,
) -> Preference:
    """Return what follows from each side's own evidence."""
    criteria = judging.asked.criteria
    a, b = evidence
    leads = {each.id: a[each.id].strength - b[each.id].strength for each in criteria}
    reasoning = {each.id: _both(a[each.id], b[each.id], compared) for each in criteria}
    whole = weighted_mean(criteria, leads.values())
    return Preference(
        winner=_side(whole, _LEAST_EVIDENCE),
        preferences={name: _side(lead, _LEAST_EVIDENCE) for name, lead in leads.items()},
        remarks=Remarks(
            reasoning=reasoning,
            bias_checklist=completed(judging.checklist, seat.judge, pair=True),
            extra={"lead_of_a": round(whole, 6)},
        ),
    )


def _both(a: Evidence, b: Evidence, compared: str) -> str:
    return f"A: {a.describe()}\nB: {b.describe()}\n{compared}"


def _together(compared: Compared, alone: Preference) -> Preference:
    """Return what follows from the comparison; it is made of the responses as a whole."""
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


def examine(
    judging: Judging, sample: Sample, response: str, seat: Seat
) -> Flow[Answer[Scores] | Unscored]:
    """Score one response by what a small model finds in it."""
    criteria = judging.asked.criteria
    gathered = yield from gather(criteria, sample, (response,), seat)
    if isinstance(gathered, Unscored):
        return gathered
    (evidence,) = gathered.evidence
    # The findings are complete before any of them becomes a score (E4).
    reasoning = {name: each.describe() for name, each in evidence.items()}
    shares = [evidence[each.id].share for each in criteria]
    scored = judging.scored
    if scored != criteria:
        # One score for the response as a whole: its criteria by their weights.
        (whole,) = scored
        reasoning = {whole.id: "\n".join(f"{name}: {text}" for name, text in reasoning.items())}
        shares = [weighted_mean(criteria, shares)]
    checklist = completed(judging.checklist, seat.judge, pair=False)
    scores = {
        each.id: each.scale.denormalize(share) for each, share in zip(scored, shares, strict=True)
    }
    remarks = Remarks(reasoning=reasoning, bias_checklist=checklist)
    return Answer(value=Scores(scores=scores, remarks=remarks), replies=gathered.readings.replies)
