"""How sure a run's judges were: whether votes agree, and whether the order decides."""

from typing import Any, Final

import msgspec

from jurybox.reporting.html.estimates import LEVEL
from jurybox.reporting.view import RunView
from jurybox.rubric.model import Rubric
from jurybox.statistics.interval import Interval
from jurybox.statistics.proportion import wilson

_SIDES: Final = ("A", "B", "tie")


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a whole: how many of how many; ``kind`` is what it is drawn by."""

    label: str
    kind: str
    count: int
    n: int

    @property
    def share(self) -> float:
        """The part that it is, from 0 to 1."""
        return self.count / self.n if self.n else 0.0


class Jury(msgspec.Struct, frozen=True, kw_only=True):
    """How far the votes on a sample agree.

    Attributes:
        judges: who they are.
        votes_each: how many votes a sample gets.
        confidence: samples of high, moderate and low confidence; empty where that wasn't kept.
        votes: how many were requested, valid, lost and skipped; empty where that wasn't kept.
        lost: how many votes gave no valid reply.

    """

    judges: str
    votes_each: int | None
    confidence: tuple[Part, ...]
    votes: dict[str, int]
    lost: int


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the order of two responses decides.

    Attributes:
        stable: how many pairs had the same winner in both orders; None where that wasn't kept.
        n: of how many pairs.
        interval: where the share of unstable pairs probably lies, by Wilson.
        orders: how many pairs have the same winner in both orders, and how many don't.
        winners: who won how many pairs.
        on_unstable: what the rubric makes of an unstable pair.

    """

    stable: int | None
    n: int
    interval: Interval | None
    orders: tuple[Part, ...]
    winners: tuple[Part, ...]
    on_unstable: str


def jury_of(view: RunView) -> Jury | None:
    """Return how far the judges agree; None where nobody judged."""
    judges: str | None = view.metadata.get("evaluator_model_id")
    if not judges:
        return None
    spreads = view.conclusion.spreads
    confidence = {} if spreads is None else spreads.confidence
    n = sum(confidence.values())
    return Jury(
        judges=judges,
        votes_each=view.metadata.get("votes"),
        confidence=tuple(
            Part(label=kind, kind=kind, count=confidence.get(kind, 0), n=n)
            for kind in ("high", "moderate", "low")
            if n
        ),
        votes={} if spreads is None else spreads.votes,
        lost=view.summary["unscored_votes"],
    )


def position_of(view: RunView, rubric: Rubric) -> Position | None:
    """Return whether the order decides; None where no pairs were compared."""
    winners: dict[str, Any] = view.summary.get("winners") or {}
    spreads = view.conclusion.spreads
    stable = {} if spreads is None else spreads.stable
    told = sum(stable.values())
    if not winners and not told:
        return None
    n = sum(winners.values())
    repeats: int = view.summary.get("repeats", {}).get("n", 1)
    unstable = stable.get("unstable", 0)
    return Position(
        stable=stable.get("stable", 0) if told else None,
        n=told or n,
        interval=wilson(unstable / repeats, told / repeats, LEVEL) if told else None,
        orders=(
            Part(label="same winner in both orders", kind="high", count=told - unstable, n=told),
            Part(label="winner changed with the order", kind="low", count=unstable, n=told),
        )
        if told
        else (),
        winners=tuple(
            Part(label=side, kind=f"side-{side.lower()}", count=winners.get(side, 0), n=n)
            for side in _SIDES
            if n
        ),
        on_unstable=rubric.protocol.on_unstable,
    )
