"""The jury: which questions are asked about a sample, how many votes are taken, and the report.

A result that more than half of *all* votes agree on is final, whatever the rest would be. With
``stop_when_decided``, a jury asks in rounds: first for the minimum number of votes that can decide,
then for as many as are still needed. Without it, all votes are asked for at once.
"""

import math
from collections import Counter
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
    SideReport,
)
from jurybox.judging.evidence_votes import compare, examine
from jurybox.judging.flow import (
    Answer,
    Flow,
    ModelReply,
    Unscored,
    VotesNeeded,
    all_at_once,
    ask,
    reported_models,
    run_until_decided,
    together,
)
from jurybox.judging.formats.json_format import spoken
from jurybox.judging.formats.reply_format import Remarks, Scores, Side
from jurybox.judging.pairwise import PairVote, explained, pairwise
from jurybox.judging.protocol import Judging, Panel, Question, Seat, independent
from jurybox.judging.safety import (
    FORGED_PROMPT,
    LONGEST_QUOTE,
    SafetyFinding,
    Suspicion,
    concerns,
    injections,
    scan,
    suspicion,
)
from jurybox.rubric.rubric_model import Criterion, ReviewReason
from jurybox.rubric.scale import weighted_mean
from jurybox.sample import Sample, added_usage

# More findings than this wouldn't add information to a report.
_MOST = 100

Ballot = Answer[Scores] | Unscored
PairBallot = PairVote | Unscored


def _votes_needed(judging: Judging) -> VotesNeeded[Ballot]:
    """Return a function that counts the votes needed until every criterion has its score."""
    if not judging.stop_when_decided:
        return all_at_once
    criteria = [criterion.id for criterion in judging.scored]

    def needed(given: Sequence[Ballot], votes: int) -> int:
        scores = [each.value.scores for each in given if isinstance(each, Answer)]
        given_values = [[vote[name] for vote in scores] for name in criteria]
        return _most_needed(given_values, votes)

    return needed


def _pair_votes_needed(judging: Judging) -> VotesNeeded[PairBallot]:
    """Return a function counting the votes needed to decide the winner and every preference."""
    # With `on_unstable: review` one unstable vote voids the winner, so every vote is needed.
    if not judging.stop_when_decided or judging.rubric.on_unstable == "review":
        return all_at_once
    criteria = [criterion.id for criterion in judging.asked.criteria]

    def needed(given: Sequence[PairBallot], votes: int) -> int:
        valid = [each for each in given if isinstance(each, PairVote)]
        winners = [vote.winner for vote in valid]
        preferences = [[vote.preferences[name] for vote in valid] for name in criteria]
        return _most_needed([winners, *preferences], votes)

    return needed


def _most_needed(given_values: Sequence[Sequence[object]], votes: int) -> int:
    majority = votes // 2 + 1
    largest = (max(Counter(each).values(), default=0) for each in given_values)
    return max((majority - count for count in largest), default=0)


def jury(
    judging: Judging, sample: Sample, judges: Sequence[str], votes: int
) -> Flow[EvaluationReport]:
    """Judge one sample by the simplest applicable method, with ``votes`` votes.

    With a reference, every response is scored against it, and two responses need no comparison.
    Without a reference, a single response is scored by the rubric, and two are compared.
    """
    panel = judging.panel(judges, votes)
    if panel.asks_for_verdicts:
        judging.check(sample)
    if sample.response_b is None:
        ballots = yield from votes_on_response(judging, sample, sample.response.text, panel)
        return _report_on_one(judging, sample, panel, ballots)
    if sample.reference is not None:
        first, second = yield from together(
            votes_on_response(judging, sample, sample.response.text, panel),
            votes_on_response(judging, sample, sample.response_b.text, panel),
        )
        return _report_on_two(judging, sample, panel, first, second)
    pairs = yield from votes_on_pair(judging, sample, panel)
    return _report_on_pair(judging, sample, panel, pairs)


def votes_on_pair(judging: Judging, sample: Sample, panel: Panel) -> Flow[tuple[PairBallot, ...]]:
    """Ask which of two responses is better."""
    flows = [
        (compare if seat.gives_evidence else pairwise)(judging, sample, seat)
        for seat in panel.seats
    ]
    return (yield from run_until_decided(flows, _pair_votes_needed(judging)))


def votes_on_response(
    judging: Judging, sample: Sample, response: str, panel: Panel
) -> Flow[tuple[Ballot, ...]]:
    """Ask for scores of a response."""
    # The long prompt is built once for all judges that are asked for a verdict.
    question = judging.score_question(sample, response) if panel.asks_for_verdicts else None
    flows = [_ballot(judging, sample, response, seat, question) for seat in panel.seats]
    ballots = yield from run_until_decided(flows, _votes_needed(judging))
    # A fallback score is used only if no vote is valid.
    for ballot in ballots:
        if isinstance(ballot, Answer):
            return ballots
    first, *rest = ballots
    return (_with_fallback(judging, first), *rest)


def _ballot(
    judging: Judging, sample: Sample, response: str, seat: Seat, question: Question | None
) -> Flow[Ballot]:
    if question is not None and not seat.gives_evidence:
        form, material = judging.score_form, sample.texts
        return ask(seat.request(question), lambda text: form.read(text, material), judging.rubric)
    return examine(judging, sample, response, seat)


def _with_fallback(judging: Judging, ballot: Ballot) -> Ballot:
    """Replace an unreadable reply by the format's fallback score, if it has one, and mark it."""
    if not isinstance(ballot, Unscored) or ballot.cause != "defect":
        return ballot
    scores = judging.format.fallback(judging.asked, ballot.replies[-1].text)
    return ballot if scores is None else Answer(value=scores, replies=ballot.replies)


# The report


def _report_on_one(
    judging: Judging, sample: Sample, panel: Panel, ballots: Sequence[Ballot]
) -> EvaluationReport:
    """Report on one response that was scored, by the rubric or against the reference."""
    side = _side(judging, ballots, len(panel.seats))
    verdict = EvaluationReport(
        rubric=judging.rubric_name,
        method="rubric" if sample.reference is None else "reference",
        criteria=side.criteria,
        total_score=side.total_score,
        max_score=side.max_score,
        overall=side.overall,
        confidence=side.confidence,
        overall_by_votes=side.overall_by_votes,
    )
    return _completed(verdict, judging, sample, panel, [ballots])


def _report_on_two(
    judging: Judging,
    sample: Sample,
    panel: Panel,
    first: Sequence[Ballot],
    second: Sequence[Ballot],
) -> EvaluationReport:
    """Report on two responses that were scored against the reference; the totals decide."""
    a, b = (_side(judging, ballots, len(panel.seats)) for ballots in (first, second))
    winner: Side | None = None
    if a.total_score is not None and b.total_score is not None:
        difference = round(a.total_score - b.total_score, 6)
        winner = "tie" if difference == 0 else "A" if difference > 0 else "B"
    verdict = EvaluationReport(
        rubric=judging.rubric_name,
        method="reference",
        criteria=(),
        total_score=None,
        max_score=judging.max_score,
        overall=None,
        confidence=lowest([a.confidence, b.confidence]),
        winner=winner,
        responses={"A": a, "B": b},
    )
    return _completed(verdict, judging, sample, panel, [first, second])


def _report_on_pair(
    judging: Judging, sample: Sample, panel: Panel, ballots: Sequence[PairBallot]
) -> EvaluationReport:
    """Report on two responses that were compared, each vote in both orders."""
    valid = [ballot for ballot in ballots if isinstance(ballot, PairVote)]
    winner, confidence = count_sides([vote.winner for vote in valid], len(panel.seats))
    stable = all(vote.stable for vote in valid) if valid else None
    confidence = _capped(confidence, [vote.stable for vote in valid])
    if stable is False and judging.rubric.on_unstable == "review":
        winner = None
    compared = judging.asked.criteria if valid else ()
    criteria = tuple(_compared(criterion, valid, len(panel.seats)) for criterion in compared)
    verdict = EvaluationReport(
        rubric=judging.rubric_name,
        method="pairwise",
        criteria=criteria,
        total_score=None,
        max_score=judging.max_score,
        overall=None,
        confidence=lowest([confidence, *(criterion.confidence for criterion in criteria)]),
        winner=winner,
        stable=stable,
        winner_votes=tuple([vote.winner for vote in valid]),
    )
    return _completed(verdict, judging, sample, panel, [ballots])


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
    # A fallback score replaces an unreadable reply, so no vote supports it.
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
    """Return the weighted mean of the scores' positions on their scales."""
    shares = [each.scale.normalize(score) for each, score in zip(criteria, scores, strict=True)]
    return round(weighted_mean([each.weight for each in criteria], shares), 6)


def _scored(
    criterion: Criterion, votes: Sequence[Scores], requested: int, *, sure: bool
) -> CriterionReport:
    name = criterion.id
    given = [vote.scores[name] for vote in votes]
    score, confidence = count_scores(given, requested)
    # Show the reasoning of a vote that gave the reported score.
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
    return CriterionReport(
        id=criterion.id,
        score=None,
        scale=criterion.scale.ends,
        weight=criterion.weight,
        reasoning=explained(criterion.id, side, votes),
        confidence=_capped(confidence, [vote.keeps(criterion.id) for vote in votes]),
        votes=tuple(given),
        preference=side,
    )


def _remarks(ballot: Answer[Scores] | PairVote) -> tuple[Remarks, ...]:
    if isinstance(ballot, Answer):
        return (ballot.value.remarks,)
    # The second call swaps A and B, so they are also swapped in its remarks.
    return (ballot.first.remarks, _shown_swapped(ballot.second.remarks))


def _shown_swapped(remarks: Remarks) -> Remarks:
    noted = {
        name: f"(with A and B exchanged) {text}" for name, text in remarks.bias_checklist.items()
    }
    return msgspec.structs.replace(remarks, bias_checklist=noted)


def _completed(
    verdict: EvaluationReport,
    judging: Judging,
    sample: Sample,
    panel: Panel,
    ballots: Sequence[Sequence[Ballot | PairBallot]],
) -> EvaluationReport:
    """Complete a verdict with the parts that all methods share."""
    requested = len(panel.seats)
    replies: list[ModelReply] = []
    remarks: list[Remarks] = []
    lost: list[LostVote] = []
    answers: list[tuple[Seat, ModelReply]] = []
    for cast in ballots:
        # A jury that was decided early has fewer votes than seats.
        for seat, ballot in zip(panel.seats, cast, strict=False):
            replies += ballot.replies
            if isinstance(ballot, Unscored):
                lost.append(
                    LostVote(
                        vote=seat.vote, judge=seat.judge, reason=ballot.reason, cause=ballot.cause
                    )
                )
            else:
                remarks += _remarks(ballot)
                answers += [(seat, reply) for reply in ballot.replies]
    unscored = [sum([isinstance(each, Unscored) for each in cast]) for cast in ballots]
    # For two responses, report the valid votes of the one that has fewer.
    valid = min([len(cast) - count for cast, count in zip(ballots, unscored, strict=True)])
    findings, response_findings = _safety(judging, sample, replies, remarks)
    reasons = _review_reasons(verdict, findings, response_findings, unscored=not valid)
    are_independent = independent(answers)
    if not are_independent:
        sides = {name: _at_most_moderate(each) for name, each in (verdict.responses or {}).items()}
        verdict = msgspec.structs.replace(_at_most_moderate(verdict), responses=sides or None)
    fallback = judging.rubric.fallback_score is not None
    return msgspec.structs.replace(
        verdict,
        votes_independent=are_independent,
        votes_valid=valid,
        votes_requested=requested,
        votes_skipped=requested - valid - max(unscored),
        bias_checklist=_checklist(remarks),
        safety_flag=bool(findings),
        safety_findings=findings,
        response_findings=response_findings,
        needs_review=bool(reasons),
        review_reasons=reasons,
        usage=added_usage([reply.usage for reply in replies]),
        judges=panel.judges,
        lost_votes=tuple(lost),
        overrides=panel.sent_overrides(replies),
        reported_models=tuple([name for each in reported_models(replies) if (name := str(each))]),
        judge_fallback=any(each.fallback for each in remarks) if fallback else None,
    )


_Findings = tuple[SafetyFinding, ...]


def _safety(
    judging: Judging, sample: Sample, replies: Sequence[ModelReply], remarks: Sequence[Remarks]
) -> tuple[_Findings, _Findings]:
    """Return the unsafe content in the judges' texts, even invalid ones, and in the responses."""
    responses = [each.text for each in (sample.response, sample.response_b) if each is not None]
    # Each distinct text is scanned once, because all items of a checklist may have the same text.
    texts = dict.fromkeys([text for reply in replies for text in spoken(reply.text)])
    suspected = suspicion([*responses, *texts])
    found: list[SafetyFinding] = []
    if suspected.dangers:
        found += [each for text in texts for each in scan(text, suspected, judge=True)]
    found += concerns([text for each in remarks for text in each.safety_concerns])
    different: dict[tuple[str, str], SafetyFinding] = {}
    for each in found:
        different.setdefault((each.category, each.quote), each)
    return (
        tuple(different.values())[:_MOST],
        tuple(islice(_response_findings(judging, responses, suspected), _MOST)),
    )


def _response_findings(
    judging: Judging, responses: Iterable[str], suspected: Suspicion
) -> Iterator[SafetyFinding]:
    """Yield dangers in responses, text that addresses the judge, and forged lines of its prompt."""
    template = judging.rubric.template
    for text in responses:
        yield from scan(text, suspected) if suspected.dangers else ()
        yield from injections(text, suspected) if suspected.injections else ()
        for line in () if template is None else template.forged(text):
            start, end = line.span()
            quote = line[0][:LONGEST_QUOTE].strip()
            yield SafetyFinding(category=FORGED_PROMPT, quote=quote, start=start, end=end)


def _review_reasons(
    verdict: EvaluationReport, findings: _Findings, in_responses: _Findings, *, unscored: bool
) -> tuple[ReviewReason, ...]:
    reasons: list[ReviewReason] = []
    if findings:
        reasons.append("safety")
    if unscored:
        reasons.append("unscored")
    if verdict.stable is False:
        reasons.append("unstable")
    # Without any vote, low confidence isn't a separate reason.
    if verdict.confidence == "low" and not unscored:
        reasons.append("low_confidence")
    if any(each.category == FORGED_PROMPT for each in in_responses):
        reasons.append("forged_prompt")
    return tuple(reasons)


def _checklist(remarks: Iterable[Remarks]) -> dict[str, str]:
    """Return the judges' remarks on each item, without duplicates, in the order of the votes."""
    texts: dict[str, dict[str, None]] = {}
    for each in remarks:
        for item, text in each.bias_checklist.items():
            texts.setdefault(item, {})[text.strip()] = None
    return {item: "\n".join(each) for item, each in texts.items()}


V = TypeVar("V", float, Side)


def count_scores(votes: Sequence[float], requested: int) -> tuple[float | None, Confidence]:
    """Return the majority's score, else the lower median, with its confidence."""
    leader, confidence = _majority(votes, requested)
    if leader is None and votes:
        leader = sorted(votes)[(len(votes) - 1) // 2]
    return leader, confidence


def count_sides(votes: Sequence[Side], requested: int) -> tuple[Side | None, Confidence]:
    """Return the majority's side, else a tie, with its confidence."""
    leader, confidence = _majority(votes, requested)
    if leader is None and votes:
        leader = "tie"
    return leader, confidence


def _majority(votes: Sequence[V], requested: int) -> tuple[V | None, Confidence]:
    """Return the majority result of the votes, and its confidence.

    Confidence is high if all of several votes agree and none was lost or skipped.
    """
    for value in votes[: len(votes) // 2 + 1]:
        agreeing = votes.count(value)
        if 2 * agreeing > len(votes):
            return value, "high" if agreeing == len(votes) == requested > 1 else "moderate"
    return None, "low"


P = TypeVar("P", EvaluationReport, SideReport)


def _at_most_moderate(verdict: P) -> P:
    """Cap the confidence at moderate, for votes that aren't independent."""
    criteria = tuple(
        msgspec.structs.replace(each, confidence=lowest([each.confidence, "moderate"]))
        for each in verdict.criteria
    )
    confidence = lowest([verdict.confidence, "moderate"])
    return msgspec.structs.replace(verdict, criteria=criteria, confidence=confidence)


def lowest(confidences: Sequence[Confidence]) -> Confidence:
    """Return the lowest confidence; ``low`` if there is none."""
    for confidence in CONFIDENCES:
        if confidence in confidences:
            return confidence
    return "low"
