"""Counting votes (E9)."""

from collections.abc import Sequence
from typing import TypeVar

from jurybox.judging.evaluation_report import Confidence
from jurybox.judging.verdict import Side

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
    """Return what more than half of the votes say, and how sure that is.

    All agree: high; but a jury that lost votes can't be sure what they would have said.
    """
    for value in votes[: len(votes) // 2 + 1]:
        agreeing = votes.count(value)
        if 2 * agreeing > len(votes):
            return value, "high" if agreeing == len(votes) == requested else "moderate"
    return None, "low"
