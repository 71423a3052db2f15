"""The jury: which questions are asked about a sample, and how many votes are taken.

A result that more than half of *all* votes agree on is final, whatever the others are. With
``stop_when_decided`` a jury asks in rounds: at first for as many votes as could decide, then for as
many as are still needed. Without it all votes are asked for at once.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.evidence.evidence_votes import compare, examine
from jurybox.judging.flow import Answer, Flow, Unscored, ask, together
from jurybox.judging.formats.reply_format import Scores
from jurybox.judging.pairwise import PairVote, pairwise
from jurybox.judging.protocol import Judging, Panel, Question, Seat
from jurybox.judging.report_builder import Ballot, report_on_one, report_on_pair, report_on_two
from jurybox.sample import Sample

B = TypeVar("B")

VotesNeeded = Callable[[Sequence[B], int], int]
"""The minimum number of further votes, given the votes so far and the size of the jury."""


def run_until_decided(flows: Sequence[Flow[B]], needed: VotesNeeded[B]) -> Flow[tuple[B, ...]]:
    """Run the flows in rounds until no further vote is needed; return the results so far."""
    if len(flows) == 1 and needed((), 1) == 1:
        # Most juries are one vote, which needs no merging of batches.
        return ((yield from flows[0]),)
    given: tuple[B, ...] = ()
    try:
        while len(given) < len(flows) and (more := needed(given, len(flows))):
            given += yield from together(*flows[len(given) : len(given) + more])
    finally:
        for flow in flows[len(given) :]:
            flow.close()
    return given


def all_at_once(given: Sequence[object], votes: int) -> int:
    """Need every vote, whatever the other votes are."""
    return votes - len(given)


def votes_needed_for_scores(criteria: Sequence[str]) -> VotesNeeded[Answer[Scores] | Unscored]:
    """Return a function that counts the votes needed until every criterion has its score."""

    def needed(given: Sequence[Answer[Scores] | Unscored], votes: int) -> int:
        scores = [each.value.scores for each in given if isinstance(each, Answer)]
        given_values = [[vote[name] for vote in scores] for name in criteria]
        return _most_needed(given_values, votes)

    return needed


def votes_needed_for_pair(criteria: Sequence[str]) -> VotesNeeded[PairVote | Unscored]:
    """Return a function counting the votes needed to decide the winner and every preference."""

    def needed(given: Sequence[PairVote | Unscored], votes: int) -> int:
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
    pairs = yield from run_until_decided(flows, _votes_needed(judging))
    return report_on_pair(judging, sample, panel, pairs)


def _vote(
    judging: Judging, sample: Sample, response: str, panel: Panel
) -> Flow[tuple[Ballot, ...]]:
    # The long prompt is built once for all judges that are asked for a verdict.
    question = judging.score_question(sample, response) if panel.asks_for_verdicts else None
    flows = [_ballot(judging, sample, response, seat, question) for seat in panel.seats]
    needed = all_at_once
    if judging.stop_when_decided:
        needed = votes_needed_for_scores([criterion.id for criterion in judging.scored])
    ballots = yield from run_until_decided(flows, needed)
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
        form, material = judging.score_form, sample.texts
        policy = judging.reask_policy
        return ask(seat.request(question), lambda text: form.read(text, material), policy)
    return examine(judging, sample, response, seat)


def _pair_vote(judging: Judging, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    vote = compare if seat.way == "evidence" else pairwise
    return vote(judging, sample, seat)


def _votes_needed(judging: Judging) -> VotesNeeded[PairVote | Unscored]:
    # With `on_unstable: review` one unstable vote voids the winner, so every vote is needed.
    if not judging.stop_when_decided or judging.rubric.on_unstable == "review":
        return all_at_once
    return votes_needed_for_pair([criterion.id for criterion in judging.asked.criteria])


def _with_fallback(judging: Judging, ballot: Ballot) -> Ballot:
    """Use the format's fallback score for an unreadable reply; it is counted."""
    if not isinstance(ballot, Unscored) or ballot.cause != "defect":
        return ballot
    scores = judging.format.fallback(judging.asked, ballot.replies[-1].text)
    return ballot if scores is None else Answer(value=scores, replies=ballot.replies)
