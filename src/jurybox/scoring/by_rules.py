"""A report on one response that the rubric's rules score, with a judge's word beside it (C15)."""

from typing import Any, Final

import msgspec

from jurybox.documents.numbers import show_number
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport, RubricName
from jurybox.judging.safety import SafetyFinding
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.sample import Usage
from jurybox.scoring.rules import AutomatedReport, CriterionScore, FiredRule

_DECIMALS: Final = 6
_BESIDE: Final = (
    "confidence",
    "votes_valid",
    "votes_requested",
    "votes_independent",
    "safety_flag",
    "safety_findings",
    "lost_votes",
    "reported_models",
    "usage",
    "judges",
)
"""What is reported of the judge next to its score."""


class RulesReport(EvaluationReport, frozen=True, kw_only=True):
    """A report whose scores are the rules' alone.

    ``automated`` says how each of them came about, ``judge`` what the judges say of the same
    response, who were asked apart.
    """

    automated: AutomatedReport
    judge: EvaluationReport | None = None

    @property
    def judge_score(self) -> float | None:
        """What the judges give the response as a whole."""
        return None if self.judge is None else whole_score(self.judge)

    def as_data(self) -> dict[str, Any]:
        """Return plain data, ready for JSON: each score with its band and its trace."""
        data = super().as_data()
        del data["automated"], data["judge"]
        for criterion, scored in zip(data["criteria"], self.automated.criteria, strict=True):
            reported = msgspec.to_builtins(scored)
            criterion |= {name: reported[name] for name in ("band", "base", "trace")}
        data["band"] = self.automated.band
        if self.judge is not None:
            data["judge"] = _judge_as_data(self.judge)
        return data


def report_by_rules(
    rubric: Rubric,
    automated: AutomatedReport,
    findings: tuple[SafetyFinding, ...],
    judge: EvaluationReport | None = None,
) -> RulesReport:
    """Return the report; ``findings`` are those of the safety scan of the response.

    A danger that a judge sees, or a judge without a valid vote, is queued for review as ever.
    """
    ids = {each.id: each for each in automated.criteria}
    criteria = [each for each in rubric.criteria if each.id in ids]
    total = sum(each.score for each in automated.criteria)
    return RulesReport(
        rubric=RubricName.of(rubric),
        method="rules",
        criteria=tuple(_criterion(each, ids[each.id]) for each in criteria),
        total_score=round(total, _DECIMALS),
        max_score=sum(each.scale.high for each in criteria),
        overall=automated.overall,
        confidence="high",
        votes_independent=True,
        votes_valid=0,
        votes_requested=0,
        bias_checklist={},
        safety_flag=judge is not None and judge.safety_flag,
        safety_findings=() if judge is None else judge.safety_findings,
        response_findings=findings,
        needs_review=judge is not None and judge.needs_review,
        review_reasons=() if judge is None else judge.review_reasons,
        winner=None,
        stable=None,
        usage=Usage(input_tokens=0, output_tokens=0) if judge is None else judge.usage,
        judges=(),
        judge_fallback=None if judge is None else judge.judge_fallback,
        automated=automated,
        judge=judge,
    )


def whole_score(judge: EvaluationReport) -> float | None:
    """Return what a judge says of the response as a whole."""
    return judge.criteria[0].score if len(judge.criteria) == 1 else judge.overall


def _criterion(criterion: Criterion, scored: CriterionScore) -> CriterionReport:
    return CriterionReport(
        id=criterion.id,
        score=scored.score,
        scale=criterion.scale.ends,
        weight=criterion.weight,
        reasoning=in_words(scored),
        confidence="high",
        votes=(),
    )


def in_words(scored: CriterionScore) -> str:
    """Say in one line what a score is made of."""
    parts = [f"base {show_number(scored.base)}", *(_rule(rule) for rule in scored.trace)]
    total = scored.base + sum(rule.amount for rule in scored.trace)
    if round(total, _DECIMALS) != scored.score:
        parts.append(f"kept within the scale: {show_number(scored.score)}")
    return "; ".join(parts)


def _rule(rule: FiredRule) -> str:
    sign = "+" if rule.amount > 0 else ""
    quotes = quoted(rule)
    return f"{sign}{show_number(rule.amount)} {rule.why or rule.rule}{quotes and f' ({quotes})'}"


def quoted(rule: FiredRule) -> str:
    """Return the words on which a rule fired, the user's marked as such."""
    words = dict.fromkeys(
        f"{'user: ' if quote.text == 'user' else ''}\u201c{quote.words}\u201d"
        for quote in rule.quotes
    )
    return ", ".join(words)


def _judge_as_data(judge: EvaluationReport) -> dict[str, Any]:
    data = judge.as_data()
    whole = judge.criteria[0] if len(judge.criteria) == 1 else None
    reported: dict[str, Any] = {
        "score": whole_score(judge),
        "reasoning": None if whole is None else whole.reasoning,
        "fallback": bool(judge.judge_fallback),
        "votes": None if whole is None else list(whole.votes),
    }
    if whole is None:
        reported["criteria"] = data["criteria"]
    return reported | {name: data[name] for name in _BESIDE}
