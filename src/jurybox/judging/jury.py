"""The jury: which questions are asked about a sample, and how often."""

from collections.abc import Sequence

from jurybox.judging.early_stop import (
    Lacking,
    all_at_once,
    in_rounds,
    lacking_preferences,
    lacking_scores,
)
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.evidence.evidence_votes import compare, examine
from jurybox.judging.flow import Answer, Flow, Unscored, ask, together
from jurybox.judging.pairwise import PairVote, pairwise
from jurybox.judging.panel import Panel, Question, Seat
from jurybox.judging.protocol import Judging
from jurybox.judging.report_builder import Ballot, report_on_one, report_on_pair, report_on_two
from jurybox.sample import Sample


def jury(
    judging: Judging, sample: Sample, judges: Sequence[str], votes: int
) -> Flow[EvaluationReport]:
    """Judge one sample by the simplest method that serves (E2), with ``votes`` votes.

    With a reference every response is scored against it, and two responses need no comparison.
    Without one, a single response is scored by the rubric and two are compared.

    Raises:
        InputError: the rubric's way of asking doesn't fit the sample.

    """
    panel = judging.panel(judges, votes)
    if panel.asks_for_verdicts:
        judging.check(sample)
    if sample.response_b is None:
        ballots = yield from _vote(judging, sample, sample.response.text, panel)
        return report_on_one(judging, sample, panel, ballots)
    if sample.reference is not None:
        first, second = yield from together(
            _vote(judging, sample, sample.response.text, panel),
            _vote(judging, sample, sample.response_b.text, panel),
        )
        return report_on_two(judging, sample, panel, first, second)
    flows = [_pair_vote(judging, sample, seat) for seat in panel.seats]
    pairs = yield from in_rounds(flows, _lacking_of_pair(judging))
    return report_on_pair(judging, sample, panel, pairs)


def _vote(
    judging: Judging, sample: Sample, response: str, panel: Panel
) -> Flow[tuple[Ballot, ...]]:
    # The long question is written once for all who are asked for a verdict.
    question = judging.score_question(sample, response) if panel.asks_for_verdicts else None
    flows = [_ballot(judging, sample, response, seat, question) for seat in panel.seats]
    lacking = all_at_once
    if judging.stop_when_decided:
        lacking = lacking_scores([criterion.id for criterion in judging.scored])
    ballots = yield from in_rounds(flows, lacking)
    # A vote that was given counts for more than any that couldn't be read.
    for ballot in ballots:
        if isinstance(ballot, Answer):
            return ballots
    first, *rest = ballots
    return (_with_fallback(judging, first), *rest)


def _ballot(
    judging: Judging, sample: Sample, response: str, seat: Seat, question: Question | None
) -> Flow[Ballot]:
    if question is not None and seat.way == "verdict":
        return ask(seat.request(question), judging.score_form.read, judging.reask_policy)
    return examine(judging, sample, response, seat)


def _pair_vote(judging: Judging, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    vote = compare if seat.way == "evidence" else pairwise
    return vote(judging, sample, seat)


def _lacking_of_pair(judging: Judging) -> Lacking[PairVote | Unscored]:
    # By `on_unstable: review` a single unstable vote takes the winner away, so all have a say.
    if not judging.stop_when_decided or judging.rubric.protocol.on_unstable == "review":
        return all_at_once
    return lacking_preferences([criterion.id for criterion in judging.rubric.criteria])


def _with_fallback(judging: Judging, ballot: Ballot) -> Ballot:
    """Put the reply format's fallback in place of a reply that can't be read; it is counted."""
    if not isinstance(ballot, Unscored) or ballot.cause != "defect":
        return ballot
    scores = judging.format.fallback(judging.rubric, ballot.replies[-1].text)
    return ballot if scores is None else Answer(value=scores, replies=ballot.replies)
