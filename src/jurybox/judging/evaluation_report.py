"""The report of a jury on one sample."""

from typing import Any, Literal

import msgspec

from jurybox.documents.numbers import show_number
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.safety import SafetyFinding
from jurybox.rubric.rubric_model import ReviewReason, Rubric
from jurybox.rubric.scale import Scale
from jurybox.sample import Usage

Method = Literal["reference", "rubric", "pairwise", "rules"]
Confidence = Literal["high", "moderate", "low"]

CONFIDENCES: tuple[Confidence, ...] = ("low", "moderate", "high")
"""All confidences, from the lowest to the highest."""


class RubricName(msgspec.Struct, frozen=True, kw_only=True):
    """The rubric's id, version and hash."""

    id: str
    version: str
    sha256: str

    @classmethod
    def of(cls, rubric: Rubric) -> "RubricName":
        """Return what identifies a rubric."""
        return cls(id=rubric.id, version=rubric.version, sha256=rubric.sha256)


class CriterionReport(msgspec.Struct, frozen=True, kw_only=True):
    """The jury's result for one criterion: a score, or a preference for a pair; None if unscored.

    Comparisons of runs use ``vote_mean``, the mean of the valid votes, not the majority.
    """

    id: str
    score: float | None
    scale: tuple[float, float]
    weight: float
    reasoning: str
    confidence: Confidence
    votes: tuple[float | Side, ...]
    vote_mean: float | None = None
    preference: Side | None = None

    @property
    def majority(self) -> float | Side | None:
        """The value of more than half of the votes."""
        if self.preference == "tie" and self.confidence == "low":
            return None  # votes that change with the order are ties, but don't agree on one
        for vote in self.votes:
            if 2 * self.votes.count(vote) > len(self.votes):
                return vote
        return None

    @property
    def agreement(self) -> float:
        """The share of the votes that the majority has; 0 if there is no majority."""
        return round(self.votes.count(self.majority) / len(self.votes), 6)

    def normalize(self, score: float) -> float:
        """Return a score's position on the criterion's scale, from 0 to 1."""
        low, high = self.scale
        return Scale(low=low, high=high).normalize(score)


def show_vote(vote: float | Side) -> str:
    """Return a score or a side as text."""
    return vote if isinstance(vote, str) else show_number(vote)


class LostVote(msgspec.Struct, frozen=True, kw_only=True):
    """A vote without a valid reply, and the reason."""

    vote: int
    judge: str
    reason: str
    cause: Literal["defect", "failure"]


class SideReport(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one of two responses."""

    criteria: tuple[CriterionReport, ...]
    total_score: float | None
    max_score: float
    overall: float | None
    confidence: Confidence
    overall_by_votes: float | None = None


class EvaluationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The complete result of judging one sample.

    ``overrides`` are parameters that deliberately differ from the rubric's; ``reported_models`` are
    the versions that the providers report. ``votes_skipped`` counts the votes that no judge was
    asked for, because they couldn't have changed the outcome.
    ``overall_by_votes`` is the overall score computed from the mean votes instead of the
    majorities; ``winner_votes`` are the votes on a compared pair.
    """

    rubric: RubricName
    method: Method
    criteria: tuple[CriterionReport, ...]
    total_score: float | None
    max_score: float
    overall: float | None
    confidence: Confidence
    votes_independent: bool = True
    votes_valid: int = 0
    votes_requested: int = 0
    bias_checklist: dict[str, str] = {}
    safety_flag: bool = False
    safety_findings: tuple[SafetyFinding, ...] = ()
    response_findings: tuple[SafetyFinding, ...] = ()
    needs_review: bool = False
    review_reasons: tuple[ReviewReason, ...] = ()
    winner: Side | None = None
    stable: bool | None = None
    usage: Usage = Usage(input_tokens=0, output_tokens=0)
    judges: tuple[str, ...] = ()
    lost_votes: tuple[LostVote, ...] = ()
    overrides: dict[str, float] = {}
    reported_models: tuple[str, ...] = ()
    judge_fallback: bool | None = None
    responses: dict[str, SideReport] | None = None
    votes_skipped: int = 0
    overall_by_votes: float | None = None
    winner_votes: tuple[Side, ...] = ()

    def voted(self) -> dict[str, list[CriterionReport]]:
        """Return the criteria with several votes, each with its result on every response."""
        sides = (self, *(self.responses or {}).values())
        found: dict[str, list[CriterionReport]] = {}
        for side in sides:
            for each in side.criteria:
                if len(each.votes) > 1:
                    found.setdefault(each.id, []).append(each)
        return found

    def as_data(self) -> dict[str, Any]:
        """Return the report as plain data for JSON."""
        data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        if self.responses is None:
            del data["responses"]
        if self.judge_fallback is None:
            del data["judge_fallback"]
        if not self.votes_skipped:
            del data["votes_skipped"]
        if self.method != "pairwise":
            sides: list[dict[str, Any]] = [data, *data.get("responses", {}).values()]
            for side in sides:
                for criterion in side["criteria"]:
                    del criterion["preference"]
        return data
