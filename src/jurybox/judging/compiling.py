"""From the votes on one sample to its report."""

from collections.abc import Iterable, Sequence
from itertools import islice

import msgspec

from jurybox.judging.asking import Judging
from jurybox.judging.exchange import ModelReply
from jurybox.judging.flow import Answer, Unscored
from jurybox.judging.pairwise import PairVote
from jurybox.judging.panel import Seat, independent
from jurybox.judging.replies.texts import spoken
from jurybox.judging.report import (
    Confidence,
    CriterionReport,
    EvaluationReport,
    LostVote,
    Method,
    ReviewReason,
    SideReport,
    lowest,
)
from jurybox.judging.safety import SafetyFinding, concerns, scan_all
from jurybox.judging.verdict import Remarks, Scores, Side
from jurybox.judging.votes import count_scores, count_sides
from jurybox.rubric.model import Criterion, weighted_mean
from jurybox.sample import Sample, Usage

# A report with more findings says nothing more.
_MOST = 100

Ballot = Answer[Scores] | Unscored
PairBallot = PairVote | Unscored


def report_on_one(
    judging: Judging, sample: Sample, panel: Sequence[Seat], ballots: Sequence[Ballot]
) -> EvaluationReport:
    """One response was scored, by the rubric or against the reference."""
    side = _side(judging, ballots, len(panel))
    return _report(
        judging,
        sample,
        panel,
        [ballots],
        method="rubric" if sample.reference is None else "reference",
        criteria=side.criteria,
        confidence=side.confidence,
        total_score=side.total_score,
        overall=side.overall,
    )


def report_on_two(
    judging: Judging,
    sample: Sample,
    panel: Sequence[Seat],
    first: Sequence[Ballot],
    second: Sequence[Ballot],
) -> EvaluationReport:
    """Both responses were scored against the reference; the totals decide (E2)."""
    a, b = (_side(judging, ballots, len(panel)) for ballots in (first, second))
    winner: Side | None = None
    if a.total_score is not None and b.total_score is not None:
        difference = round(a.total_score - b.total_score, 6)
        winner = "tie" if difference == 0 else "A" if difference > 0 else "B"
    return _report(
        judging,
        sample,
        panel,
        [first, second],
        method="reference",
        criteria=(),
        confidence=lowest([a.confidence, b.confidence]),
        winner=winner,
        responses={"A": a, "B": b},
    )


def report_on_pair(
    judging: Judging, sample: Sample, panel: Sequence[Seat], ballots: Sequence[PairBallot]
) -> EvaluationReport:
    """Two responses were compared, each vote in both orders (E8)."""
    valid = [ballot for ballot in ballots if isinstance(ballot, PairVote)]
    winner, confidence = count_sides([vote.winner for vote in valid], len(panel))
    stable = all(vote.stable for vote in valid) if valid else None
    confidence = _capped(confidence, [vote.stable for vote in valid])
    if stable is False and judging.rubric.protocol.on_unstable == "review":
        winner = None
    criteria = tuple(
        _compared(criterion, valid, len(panel))
        for criterion in judging.rubric.criteria
        if any(criterion.id in vote.preferences for vote in valid)
    )
    return _report(
        judging,
        sample,
        panel,
        [ballots],
        method="pairwise",
        criteria=criteria,
        confidence=lowest([confidence, *(criterion.confidence for criterion in criteria)]),
        winner=winner,
        stable=stable,
    )


def _capped(confidence: Confidence, stable: Sequence[bool]) -> Confidence:
    """A vote whose two orders disagree is no agreement, though it counts as a tie."""
    unstable = sum(not each for each in stable)
    if 2 * unstable > len(stable):
        return "low"
    return lowest([confidence, "moderate"]) if unstable else confidence


def _side(judging: Judging, ballots: Sequence[Ballot], requested: int) -> SideReport:
    """Aggregate the votes on one response."""
    valid = [ballot.value for ballot in ballots if isinstance(ballot, Answer)]
    scored = judging.scored
    # The rubric's score stands in for a vote that nobody could read: nobody agrees with it.
    sure = not any(vote.remarks.fallback for vote in valid)
    criteria = tuple([_scored(criterion, valid, requested, sure=sure) for criterion in scored])
    scores = [criterion.score for criterion in criteria]
    known = [score for score in scores if score is not None]
    whole = len(known) == len(scores)
    return SideReport(
        criteria=criteria,
        total_score=round(sum(known), 6) if whole else None,
        max_score=judging.max_score,
        overall=_overall(scored, known) if whole else None,
        confidence=lowest([criterion.confidence for criterion in criteria]),
    )


def _overall(criteria: Sequence[Criterion], scores: Sequence[float]) -> float:
    """Return the weighted mean of each score's share of its scale."""
    shares = [each.scale.share(score) for each, score in zip(criteria, scores, strict=True)]
    return round(weighted_mean(criteria, shares), 6)


def _scored(
    criterion: Criterion, votes: Sequence[Scores], requested: int, *, sure: bool
) -> CriterionReport:
    name = criterion.id
    # Some judges give no opinion on a criterion: the overlap judge knows only the reference.
    scored = [vote for vote in votes if name in vote.scores]
    given = [vote.scores[name] for vote in scored]
    score, confidence = count_scores(given, requested)
    # The reasoning shown is that of a vote for the score shown.
    agreeing = None if score is None else scored[given.index(score)]
    reasoning = "" if agreeing is None else agreeing.remarks.reasoning.get(name, "")
    return CriterionReport(
        id=name,
        score=score,
        scale=(criterion.scale.low, criterion.scale.high),
        weight=criterion.weight,
        reasoning=reasoning,
        confidence=confidence if sure else "low",
        votes=tuple(given),
    )


def _compared(criterion: Criterion, votes: Sequence[PairVote], requested: int) -> CriterionReport:
    given: list[Side] = [vote.preferences[criterion.id] for vote in votes]
    side, confidence = count_sides(given, requested)
    stable = [
        vote.first.preferences[criterion.id] == vote.second.preferences.get(criterion.id)
        for vote in votes
    ]
    # A tie may be what no single vote says; then the first vote's reasoning has to do.
    agreeing = [vote for vote in votes if vote.preferences[criterion.id] == side] or votes
    reasoning = agreeing[0].first.remarks.reasoning.get(criterion.id, "")
    return CriterionReport(
        id=criterion.id,
        score=None,
        scale=(criterion.scale.low, criterion.scale.high),
        weight=criterion.weight,
        reasoning=reasoning,
        confidence=_capped(confidence, stable),
        votes=tuple(given),
        preference=side,
    )


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A ballot of either kind, as the report's general part needs it."""

    seat: Seat
    replies: tuple[ModelReply, ...]
    remarks: tuple[Remarks, ...]
    lost: Unscored | None


def _outcome(seat: Seat, ballot: Ballot | PairBallot) -> _Outcome:
    match ballot:
        case Unscored(replies=replies):
            return _Outcome(seat=seat, replies=replies, remarks=(), lost=ballot)
        case PairVote(first=first, second=second, replies=replies):
            # In the second call A and B changed places, and so they do in its remarks.
            remarks = (first.remarks, _shown_swapped(second.remarks))
            return _Outcome(seat=seat, replies=replies, remarks=remarks, lost=None)
        case Answer(value=value, replies=replies):
            return _Outcome(seat=seat, replies=replies, remarks=(value.remarks,), lost=None)


def _shown_swapped(remarks: Remarks) -> Remarks:
    noted = {
        name: f"(with A and B exchanged) {text}" for name, text in remarks.bias_checklist.items()
    }
    return msgspec.structs.replace(remarks, bias_checklist=noted)


def _report(  # noqa: PLR0913 - the parts of a report that the methods make differently
    judging: Judging,
    sample: Sample,
    panel: Sequence[Seat],
    ballots: Sequence[Sequence[Ballot] | Sequence[PairBallot]],
    *,
    method: Method,
    criteria: tuple[CriterionReport, ...],
    confidence: Confidence,
    total_score: float | None = None,
    overall: float | None = None,
    winner: Side | None = None,
    stable: bool | None = None,
    responses: dict[str, SideReport] | None = None,
) -> EvaluationReport:
    outcomes = [
        # A jury that was sure before its last votes has fewer ballots than seats.
        _outcome(seat, ballot)
        for cast in ballots
        for seat, ballot in zip(panel, cast, strict=False)
    ]
    lost = tuple(
        LostVote(
            vote=each.seat.vote,
            judge=each.seat.judge,
            reason=each.lost.reason,
            cause=each.lost.cause,
        )
        for each in outcomes
        if each.lost is not None
    )
    findings = tuple(_safety_findings(outcomes))[:_MOST]
    unscored_votes = [sum(isinstance(each, Unscored) for each in cast) for cast in ballots]
    given = [len(cast) - lost for cast, lost in zip(ballots, unscored_votes, strict=True)]
    # Of two responses, the one with fewer votes says how far the report can be trusted.
    valid = min(given)
    unscored = not valid
    reasons = _review_reasons(
        safety=bool(findings), unscored=unscored, unstable=stable is False, confidence=confidence
    )
    heard = [(each.seat, reply) for each in outcomes if not each.lost for reply in each.replies]
    texts = [sample.response.text]
    texts += [] if sample.response_b is None else [sample.response_b.text]
    return EvaluationReport(
        rubric=judging.rubric_name,
        method=method,
        criteria=criteria,
        total_score=total_score,
        max_score=judging.max_score,
        overall=overall,
        confidence=confidence,
        votes_independent=independent(heard),
        votes_valid=valid,
        votes_requested=len(panel),
        votes_skipped=len(panel) - valid - max(unscored_votes),
        bias_checklist=_checklist(judging, outcomes),
        safety_flag=bool(findings),
        safety_findings=findings,
        response_findings=tuple(islice(scan_all(texts), _MOST)),
        needs_review=bool(reasons),
        review_reasons=reasons,
        winner=winner,
        stable=stable,
        usage=sum((reply.usage for each in outcomes for reply in each.replies), Usage()),
        judges=tuple(dict.fromkeys(seat.judge for seat in panel)),
        lost_votes=lost,
        overrides=_overrides(judging, panel),
        reported_models=tuple(dict.fromkeys(_reported(outcomes))),
        judge_fallback=_judge_fallback(judging, outcomes),
        responses=responses,
    )


def _overrides(judging: Judging, panel: Sequence[Seat]) -> dict[str, float]:
    base = judging.rubric.generation.temperature
    warm = {seat.generation.temperature for seat in panel} - {base}
    return {"temperature": warm.pop()} if warm else {}


def _reported(outcomes: Iterable[_Outcome]) -> Iterable[str]:
    for reply in (reply for outcome in outcomes for reply in outcome.replies):
        parts = [part for part in (reply.model, reply.fingerprint) if part is not None]
        if parts:
            yield " ".join(parts)


def _judge_fallback(judging: Judging, outcomes: Sequence[_Outcome]) -> bool | None:
    if judging.rubric.protocol.fallback_score is None:
        return None
    return any(remarks.fallback for outcome in outcomes for remarks in outcome.remarks)


def _safety_findings(outcomes: Iterable[_Outcome]) -> Iterable[SafetyFinding]:
    """Return what the judges' words say, each thing once; an invalid reply counts too."""
    seen: set[tuple[str, str]] = set()
    for outcome in outcomes:
        texts = [text for reply in outcome.replies for text in spoken(reply.text)]
        found = list(scan_all(texts))
        found += [each for remarks in outcome.remarks for each in concerns(remarks.safety_concerns)]
        for finding in found:
            if (finding.category, finding.quote) not in seen:
                seen.add((finding.category, finding.quote))
                yield finding


def _review_reasons(
    *, safety: bool, unscored: bool, unstable: bool, confidence: Confidence
) -> tuple[ReviewReason, ...]:
    reasons: dict[ReviewReason, bool] = {
        "safety": safety,
        "unscored": unscored,
        "unstable": unstable,
        # Without a single vote there is nothing to be unsure of.
        "low_confidence": confidence == "low" and not unscored,
    }
    return tuple(reason for reason, holds in reasons.items() if holds)


def _checklist(judging: Judging, outcomes: Sequence[_Outcome]) -> dict[str, str]:
    """Return what the judges wrote for each item, each remark once, in the order of the votes."""
    completed: dict[str, str] = {}
    for item in judging.checklist.criteria:
        texts = [
            remarks.bias_checklist[item.id].strip()
            for outcome in outcomes
            for remarks in outcome.remarks
            if item.id in remarks.bias_checklist
        ]
        if texts:
            completed[item.id] = "\n".join(dict.fromkeys(texts))
    return completed
