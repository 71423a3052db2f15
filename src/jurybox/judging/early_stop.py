"""Asking a jury in rounds: no further vote once none could change the outcome.

A score, a preference or a winner that more than half of *all* the votes agree on stands, whatever
the rest would say. So at first only as many votes are asked as could settle it, then as many as
are still lacking. Without that wish all are asked at once.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from jurybox.judging.flow import Answer, Flow, Unscored, together
from jurybox.judging.pairwise import PairVote
from jurybox.judging.verdict import Scores

B = TypeVar("B")

Lacking = Callable[[Sequence[B], int], int]
"""How many votes are lacking at least, after those that were given, of so many in all."""


def in_rounds(flows: Sequence[Flow[B]], lacking: Lacking[B]) -> Flow[tuple[B, ...]]:
    """Step as many flows side by side as are needed at least, until none is; return their results.

    The results are those of the first flows; what is left was never asked.
    """
    if len(flows) == 1 and lacking((), 1) == 1:
        # Most juries are one vote, which goes with nobody.
        return ((yield from flows[0]),)
    given: tuple[B, ...] = ()
    try:
        while len(given) < len(flows) and (more := lacking(given, len(flows))):
            given += yield from together(*flows[len(given) : len(given) + more])
    finally:
        for flow in flows[len(given) :]:
            flow.close()
    return given


def all_at_once(given: Sequence[object], votes: int) -> int:
    """Ask everybody, whatever is said."""
    return votes - len(given)


def lacking_scores(criteria: Sequence[str]) -> Lacking[Answer[Scores] | Unscored]:
    """Return how many votes are lacking until every criterion has its score."""

    def lacking(given: Sequence[Answer[Scores] | Unscored], votes: int) -> int:
        scores = [each.value.scores for each in given if isinstance(each, Answer)]
        said = [[vote[name] for vote in scores] for name in criteria]
        return _most_lacking(said, votes)

    return lacking


def lacking_preferences(criteria: Sequence[str]) -> Lacking[PairVote | Unscored]:
    """Return how many votes are lacking until the winner and every preference are settled."""

    def lacking(given: Sequence[PairVote | Unscored], votes: int) -> int:
        valid = [each for each in given if isinstance(each, PairVote)]
        winners = [vote.winner for vote in valid]
        preferences = [[vote.preferences[name] for vote in valid] for name in criteria]
        return _most_lacking([winners, *preferences], votes)

    return lacking


def _most_lacking(said: Sequence[Sequence[object]], votes: int) -> int:
    majority = votes // 2 + 1
    largest = (max(Counter(each).values(), default=0) for each in said)
    return max((majority - count for count in largest), default=0)
