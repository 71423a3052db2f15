"""What a run tells about its judges, as numbers: no text of it is kept."""

from typing import Final

import msgspec

from jurybox.judging.verdict import Side

HALF: Final = 0.5


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """One response that got a score: its share of the judge's scale, its length, its layout.

    ``gold`` is people's score, as a share too.
    """

    sample: str
    score: float
    words: int
    marks: int
    gold: float | None = None


class Graded(msgspec.Struct, frozen=True, kw_only=True):
    """What judges of one family gave a response of a known family."""

    sample: str
    score: float
    judge: str
    maker: str
    gold: float | None = None


class Voted(msgspec.Struct, frozen=True, kw_only=True):
    """One vote on a pair.

    Attributes:
        straight: who won with A shown first.
        swapped: who won with B shown first, mapped back.
        winner: what the vote counts as: where the two orders differ, a tie.
        kept: by criterion, whether its preference stayed.
        words: how long the two responses are.
        marks: their marks of layout.
        judge: the family of who voted.
        makers: the families of who made the responses, where that is known.
        gold: which one people prefer.

    """

    sample: str
    straight: Side
    swapped: Side
    winner: Side
    kept: dict[str, bool]
    words: tuple[int, int]
    marks: tuple[int, int]
    judge: str
    makers: tuple[str, str] | None = None
    gold: Side | None = None


class Observations(msgspec.Struct, kw_only=True):
    """All that a run tells; ``criteria`` are those of its rubric."""

    criteria: tuple[str, ...] = ()
    scored: list[Scored] = []
    graded: list[Graded] = []
    voted: list[Voted] = []


def share_of(side: Side, of: Side) -> float:
    """Return how much of a vote one side has: all of it, nothing, or half of a tie."""
    return HALF if side == "tie" else float(side == of)
