"""One vote on a pair: each side's own evidence, and a comparison in both orders.

The two are kept apart. A small model names the answer in one place nearly always, the first or the
second by how it is asked, so one order alone says next to nothing; the mean of both takes that out.
Where the two ways name different sides, the vote is unstable (E8).
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from jurybox.judging.asking import Judging
from jurybox.judging.evidence.checking import completed
from jurybox.judging.evidence.gathering import gather
from jurybox.judging.evidence.inquiry import Evidence
from jurybox.judging.evidence.material import context_part, question_part
from jurybox.judging.evidence.probes import Probe
from jurybox.judging.evidence.telling import logit, shown
from jurybox.judging.flow import Flow, Unscored
from jurybox.judging.pairwise import PairVote
from jurybox.judging.panel import Seat
from jurybox.judging.verdict import Preference, Remarks, Side
from jurybox.rubric.model import weighted_mean
from jurybox.sample import Sample

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

    def told(self) -> str:
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
    criteria = judging.rubric.criteria
    straight, swapped = _comparison(sample, a, b, seat.vote), _comparison(sample, b, a, seat.vote)
    gathered = yield from gather(criteria, sample, (a, b), seat, (straight, swapped))
    if isinstance(gathered, Unscored):
        return gathered
    readings = gathered.readings
    compared = Compared(with_a_first=readings.of[straight], with_b_first=readings.of[swapped])
    alone = _alone(judging, gathered.evidence, compared.told(), seat)
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
    criteria = judging.rubric.criteria
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
    return f"A: {a.told()}\nB: {b.told()}\n{compared}"


def _together(compared: Compared, alone: Preference) -> Preference:
    """Return what follows from the comparison; it is made of the responses as a whole."""
    return Preference(
        winner=_side(compared.lead, _LEAST_COMPARISON),
        preferences=alone.preferences,
        remarks=Remarks(
            reasoning=dict.fromkeys(alone.preferences, compared.told()),
            bias_checklist={},
            extra={"lead_of_a": round(compared.lead, 6), "position_bias": round(compared.bias, 6)},
        ),
    )


def _side(lead: float, least: float) -> Side:
    if abs(lead) < least:
        return "tie"
    return "A" if lead > 0 else "B"
