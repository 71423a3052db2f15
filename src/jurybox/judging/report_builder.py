"""From the votes on one sample to its report."""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

import msgspec

from jurybox.judging.evaluation_report import (
    CONFIDENCES,
    Confidence,
    CriterionReport,
    EvaluationReport,
    LostVote,
    Method,
    SideReport,
)
from jurybox.judging.flow import Answer, ModelReply, ReportedModel, Unscored
from jurybox.judging.formats.reply_format import Remarks, Scores, Side
from jurybox.judging.formats.reply_text import spoken
from jurybox.judging.pairwise import PairVote
from jurybox.judging.protocol import Judging, Panel, Seat, independent
from jurybox.judging.safety import (
    FORGED_PROMPT,
    LONGEST_QUOTE,
    SafetyFinding,
    concerns,
    harmless,
    injections,
    scan,
)
from jurybox.rubric.rubric_model import Criterion, ReviewReason, weighted_mean
from jurybox.sample import Sample, added_usage

# More findings than this wouldn't add information to a report.
_MOST = 100

Ballot = Answer[Scores] | Unscored
PairBallot = PairVote | Unscored


class _JuryVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a report that differs by method."""

    method: Method
    criteria: tuple[CriterionReport, ...]
    confidence: Confidence
    total_score: float | None = None
    overall: float | None = None
    overall_by_votes: float | None = None
    winner: Side | None = None
    stable: bool | None = None
    winner_votes: tuple[Side, ...] = ()
    responses: dict[str, SideReport] | None = None


def report_on_one(
    judging: Judging, sample: Sample, panel: Panel, ballots: Sequence[Ballot]
) -> EvaluationReport:
    """Report on one response that was scored, by the rubric or against the reference."""
    side = _side(judging, ballots, len(panel.seats))
    verdict = _JuryVerdict(
        method="rubric" if sample.reference is None else "reference",
        criteria=side.criteria,
        confidence=side.confidence,
        total_score=side.total_score,
        overall=side.overall,
        overall_by_votes=side.overall_by_votes,
    )
    return _report(judging, sample, panel, [ballots], verdict)


def report_on_two(
    judging: Judging,
    sample: Sample,
    panel: Panel,
    first: Sequence[Ballot],
    second: Sequence[Ballot],
) -> EvaluationReport:
    """Report on two responses that were scored against the reference; the totals decide (E2)."""
    a, b = (_side(judging, ballots, len(panel.seats)) for ballots in (first, second))
    winner: Side | None = None
    if a.total_score is not None and b.total_score is not None:
        difference = round(a.total_score - b.total_score, 6)
        winner = "tie" if difference == 0 else "A" if difference > 0 else "B"
    verdict = _JuryVerdict(
        method="reference",
        criteria=(),
        confidence=lowest([a.confidence, b.confidence]),
        winner=winner,
        responses={"A": a, "B": b},
    )
    return _report(judging, sample, panel, [first, second], verdict)


def report_on_pair(
    judging: Judging, sample: Sample, panel: Panel, ballots: Sequence[PairBallot]
) -> EvaluationReport:
    """Report on two responses that were compared, each vote in both orders (E8)."""
    valid = [ballot for ballot in ballots if isinstance(ballot, PairVote)]
    winner, confidence = count_sides([vote.winner for vote in valid], len(panel.seats))
    stable = all(vote.stable for vote in valid) if valid else None
    confidence = _capped(confidence, [vote.stable for vote in valid])
    if stable is False and judging.rubric.on_unstable == "review":
        winner = None
    compared = judging.asked.criteria if valid else ()
    criteria = tuple(_compared(criterion, valid, len(panel.seats)) for criterion in compared)
    verdict = _JuryVerdict(
        method="pairwise",
        criteria=criteria,
        confidence=lowest([confidence, *(criterion.confidence for criterion in criteria)]),
        winner=winner,
        stable=stable,
        winner_votes=tuple([vote.winner for vote in valid]),
    )
    return _report(judging, sample, panel, [ballots], verdict)


def _capped(confidence: Confidence, stable: Sequence[bool]) -> Confidence:
    """Lower the confidence if votes are ties only because their two orders disagree."""
    unstable = sum(not each for each in stable)
    if 2 * unstable > len(stable):
        return "low"
    return lowest([confidence, "moderate"]) if unstable else confidence


def _side(judging: Judging, ballots: Sequence[Ballot], requested: int) -> SideReport:
    """Aggregate the votes on one response."""
    valid = [ballot.value for ballot in ballots if isinstance(ballot, Answer)]
    scored = judging.scored
    # A fallback score replaces a reply that could not be read: no vote agrees with it.
    sure = not [vote for vote in valid if vote.remarks.fallback]
    criteria = tuple([_scored(criterion, valid, requested, sure=sure) for criterion in scored])
    known = [criterion.score for criterion in criteria if criterion.score is not None]
    means = [criterion.vote_mean for criterion in criteria if criterion.vote_mean is not None]
    whole = len(known) == len(criteria)
    return SideReport(
        criteria=criteria,
        total_score=round(sum(known), 6) if whole else None,
        max_score=judging.max_score,
        overall=_overall(scored, known) if whole else None,
        overall_by_votes=_overall(scored, means) if whole else None,
        confidence=lowest([criterion.confidence for criterion in criteria]),
    )


def _overall(criteria: Sequence[Criterion], scores: Sequence[float]) -> float:
    """Return the weighted mean of each score's share of its scale."""
    shares = [each.scale.normalize(score) for each, score in zip(criteria, scores, strict=True)]
    return round(weighted_mean(criteria, shares), 6)


def _scored(
    criterion: Criterion, votes: Sequence[Scores], requested: int, *, sure: bool
) -> CriterionReport:
    name = criterion.id
    given = [vote.scores[name] for vote in votes]
    score, confidence = count_scores(given, requested)
    # The reasoning shown is that of a vote for the score shown.
    agreeing = None if score is None else votes[given.index(score)]
    reasoning = "" if agreeing is None else agreeing.remarks.reasoning.get(name, "")
    return CriterionReport(
        id=name,
        score=score,
        scale=criterion.scale.ends,
        weight=criterion.weight,
        reasoning=reasoning,
        confidence=confidence if sure else "low",
        votes=tuple(given),
        vote_mean=round(math.fsum(given) / len(given), 6) if given else None,
    )


def _compared(criterion: Criterion, votes: Sequence[PairVote], requested: int) -> CriterionReport:
    given: list[Side] = [vote.preferences[criterion.id] for vote in votes]
    side, confidence = count_sides(given, requested)
    stable = [
        vote.first.preferences[criterion.id] == vote.second.preferences.get(criterion.id)
        for vote in votes
    ]
    # A tie may match no single vote; then the first vote's reasoning is used.
    agreeing = [vote for vote in votes if vote.preferences[criterion.id] == side] or votes
    reasoning = agreeing[0].first.remarks.reasoning.get(criterion.id, "")
    return CriterionReport(
        id=criterion.id,
        score=None,
        scale=criterion.scale.ends,
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
    lost = None
    if isinstance(ballot, Answer):
        remarks = (ballot.value.remarks,)
    elif isinstance(ballot, PairVote):
        # In the second call A and B changed places, and so they do in its remarks.
        remarks = (ballot.first.remarks, _shown_swapped(ballot.second.remarks))
    else:
        remarks, lost = (), ballot
    return _Outcome(seat=seat, replies=ballot.replies, remarks=remarks, lost=lost)


def _shown_swapped(remarks: Remarks) -> Remarks:
    noted = {
        name: f"(with A and B exchanged) {text}" for name, text in remarks.bias_checklist.items()
    }
    return msgspec.structs.replace(remarks, bias_checklist=noted)


def _report(
    judging: Judging,
    sample: Sample,
    panel: Panel,
    ballots: Sequence[Sequence[Ballot] | Sequence[PairBallot]],
    verdict: _JuryVerdict,
) -> EvaluationReport:
    """Complete a verdict with the parts that all methods share."""
    requested = len(panel.seats)
    outcomes = [
        # A jury that was sure before its last votes has fewer ballots than seats.
        _outcome(seat, ballot)
        for cast in ballots
        for seat, ballot in zip(panel.seats, cast, strict=False)
    ]
    unscored = [sum([isinstance(each, Unscored) for each in cast]) for cast in ballots]
    # Of two responses, the one with fewer votes determines the confidence of the report.
    valid = min([len(cast) - lost for cast, lost in zip(ballots, unscored, strict=True)])
    replies = [reply for each in outcomes for reply in each.replies]
    findings, response_findings = _safety(judging, sample, outcomes, replies)
    forged = FORGED_PROMPT in [each.category for each in response_findings]
    reasons = _review_reasons(verdict, safety=bool(findings), unscored=not valid, forged=forged)
    fallback = judging.rubric.fallback_score is not None
    are_independent = independent(
        [(each.seat, reply) for each in outcomes if not each.lost for reply in each.replies]
    )
    if not are_independent:
        sides = {name: _at_most_moderate(each) for name, each in (verdict.responses or {}).items()}
        verdict = msgspec.structs.replace(_at_most_moderate(verdict), responses=sides or None)
    return EvaluationReport(
        **msgspec.structs.asdict(verdict),
        rubric=judging.rubric_name,
        max_score=judging.max_score,
        votes_independent=are_independent,
        votes_valid=valid,
        votes_requested=requested,
        votes_skipped=requested - valid - max(unscored),
        bias_checklist=_checklist(judging, outcomes),
        safety_flag=bool(findings),
        safety_findings=findings,
        response_findings=response_findings,
        needs_review=bool(reasons),
        review_reasons=reasons,
        usage=added_usage([reply.usage for reply in replies]),
        judges=panel.judges,
        lost_votes=tuple([_lost_vote(each.seat, each.lost) for each in outcomes if each.lost]),
        overrides=_sent_overrides(panel, replies),
        reported_models=tuple(filter(None, map(str, reported_models(replies)))),
        judge_fallback=_any_fallback(outcomes) if fallback else None,
    )


def _lost_vote(seat: Seat, ballot: Unscored) -> LostVote:
    return LostVote(vote=seat.vote, judge=seat.judge, reason=ballot.reason, cause=ballot.cause)


def _sent_overrides(panel: Panel, replies: Sequence[ModelReply]) -> dict[str, float]:
    """Return the overrides that were really sent (A11)."""
    return {
        name: value
        for name, value in panel.overrides.items()
        if not replies or any(name not in (*each.refused, *each.unsupported) for each in replies)
    }


def reported_models(replies: Iterable[ModelReply]) -> tuple[ReportedModel, ...]:
    """Return the models and builds that the providers report (A10), without duplicates."""
    found = (ReportedModel(each.model or "", each.fingerprint or "") for each in replies)
    return tuple(dict.fromkeys(found))


def _any_fallback(outcomes: Iterable[_Outcome]) -> bool:
    return any(remarks.fallback for outcome in outcomes for remarks in outcome.remarks)


_Findings = tuple[SafetyFinding, ...]


def _safety(
    judging: Judging, sample: Sample, outcomes: Sequence[_Outcome], replies: Sequence[ModelReply]
) -> tuple[_Findings, _Findings]:
    """Return the dangers in the judges' texts, and those in the responses."""
    responses = [each.text for each in (sample.response, sample.response_b) if each is not None]
    # Each text is scanned once: every item of a checklist may have the same text.
    said = dict.fromkeys([text for reply in replies for text in spoken(reply.text)])
    quiet = harmless([*responses, *said])
    return (
        tuple(islice(_said_findings(outcomes, quiet=quiet), _MOST)),
        tuple(islice(_response_findings(judging, responses, quiet=quiet), _MOST)),
    )


def _response_findings(
    judging: Judging, responses: Iterable[str], *, quiet: bool
) -> Iterator[SafetyFinding]:
    """Yield the dangers in responses, what addresses the judge, and forged lines of its prompt."""
    template = judging.rubric.template
    for text in responses:
        yield from () if quiet else (*scan(text), *injections(text))
        for line in () if template is None else template.forged(text):
            start, end = line.span()
            quote = line[0][:LONGEST_QUOTE].strip()
            yield SafetyFinding(category=FORGED_PROMPT, quote=quote, start=start, end=end)


def _said_findings(outcomes: Iterable[_Outcome], *, quiet: bool) -> Iterator[SafetyFinding]:
    """Yield the findings in the judges' texts without duplicates, invalid replies included."""
    seen: set[tuple[str, str]] = set()
    for outcome in outcomes:
        found: list[SafetyFinding] = []
        for reply in () if quiet else outcome.replies:
            for text in dict.fromkeys(spoken(reply.text)):
                found += scan(text, judge=True)
        for remarks in outcome.remarks:
            found += concerns(remarks.safety_concerns)
        for finding in found:
            if (finding.category, finding.quote) not in seen:
                seen.add((finding.category, finding.quote))
                yield finding


def _review_reasons(
    verdict: _JuryVerdict, *, safety: bool, unscored: bool, forged: bool
) -> tuple[ReviewReason, ...]:
    reasons: list[ReviewReason] = []
    if safety:
        reasons.append("safety")
    if unscored:
        reasons.append("unscored")
    if verdict.stable is False:
        reasons.append("unstable")
    # Without a single vote there is nothing to be unsure of.
    if verdict.confidence == "low" and not unscored:
        reasons.append("low_confidence")
    if forged:
        reasons.append("forged_prompt")
    return tuple(reasons)


def _checklist(judging: Judging, outcomes: Sequence[_Outcome]) -> dict[str, str]:
    """Return the judges' remarks on each item, without duplicates, in the order of the votes."""
    completions = [remarks.bias_checklist for each in outcomes for remarks in each.remarks]
    completed: dict[str, str] = {}
    for item in judging.items:
        texts = [each[item].strip() for each in completions if item in each]
        if texts:
            completed[item] = "\n".join(dict.fromkeys(texts))
    return completed


V = TypeVar("V", float, Side)


def count_scores(votes: Sequence[float], requested: int) -> tuple[float | None, Confidence]:
    """Return the majority's score; without a majority the median vote, the lower of two."""
    leader, confidence = _majority(votes, requested)
    if leader is None and votes:
        leader = sorted(votes)[(len(votes) - 1) // 2]
    return leader, confidence


def count_sides(votes: Sequence[Side], requested: int) -> tuple[Side | None, Confidence]:
    """Return the majority's side; without a majority a tie."""
    leader, confidence = _majority(votes, requested)
    if leader is None and votes:
        leader = "tie"
    return leader, confidence


def _majority(votes: Sequence[V], requested: int) -> tuple[V | None, Confidence]:
    """Return the majority result of the votes, and its confidence.

    All of several agree: high; a jury that lost votes can't be sure what they would have said.
    """
    for value in votes[: len(votes) // 2 + 1]:
        agreeing = votes.count(value)
        if 2 * agreeing > len(votes):
            return value, "high" if agreeing == len(votes) == requested > 1 else "moderate"
    return None, "low"


P = TypeVar("P", _JuryVerdict, SideReport)


def _at_most_moderate(said: P) -> P:
    """Cap the confidence at moderate where votes aren't independent (E9)."""
    criteria = tuple(
        msgspec.structs.replace(each, confidence=lowest([each.confidence, "moderate"]))
        for each in said.criteria
    )
    confidence = lowest([said.confidence, "moderate"])
    return msgspec.structs.replace(said, criteria=criteria, confidence=confidence)


def lowest(confidences: Sequence[Confidence]) -> Confidence:
    """Return the lowest confidence; ``low`` without any."""
    for confidence in CONFIDENCES:
        if confidence in confidences:
            return confidence
    return "low"
