"""Counting votes (E9)."""

from collections.abc import Sequence
from typing import TypeVar

from jurybox.judging.report import Confidence
from jurybox.judging.verdict import Side

V = TypeVar("V", float, Side)


def count_scores(votes: Sequence[float], requested: int) -> tuple[float | None, Confidence]:
    """Return the majority's score; without a majority the median vote, the lower of two."""
    leader = _majority(votes)
    if leader is None:
        middle = sorted(votes)[(len(votes) - 1) // 2] if votes else None
        return middle, "low"
    return leader, _confidence(votes, requested)


def count_sides(votes: Sequence[Side], requested: int) -> tuple[Side | None, Confidence]:
    """Return the majority's side; without a majority a tie."""
    leader = _majority(votes)
    if leader is None:
        return ("tie" if votes else None), "low"
    return leader, _confidence(votes, requested)


def _majority(votes: Sequence[V]) -> V | None:
    """Return what more than half of the votes say."""
    for value in votes[: len(votes) // 2 + 1]:
        if 2 * votes.count(value) > len(votes):
            return value
    return None


def _confidence(votes: Sequence[float] | Sequence[Side], requested: int) -> Confidence:
    """All agree: high; but a jury that lost votes can't be sure what they would have said."""
    unanimous = len(set(votes)) == 1 and len(votes) == requested
    return "high" if unanimous else "moderate"
