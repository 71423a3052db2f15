"""Pairs compared in both orders: what the order does to a judge, from its own replies."""

from collections.abc import Callable
from typing import Final

import msgspec

from jurybox.app.evaluate_once import CHECKLIST, evaluate
from jurybox.cli.demo.demo_run import data
from jurybox.engine.driver import drive_sync
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.evidence.evidence_votes import compare
from jurybox.judging.evidence.questions import expit
from jurybox.judging.exchange import ModelRequest, Outcome
from jurybox.judging.flow import Unscored
from jurybox.judging.protocol import Judging
from jurybox.judging.verdict import Side
from jurybox.sample import Response, Sample
from jurybox.wiring import load_rubric

_RUBRIC: Final = "answer-quality"
_LEAD: Final = "lead_of_a"
_BIAS: Final = "position_bias"


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Two answers, and which of them is the better one."""

    id: str
    better: Side
    task: str
    context: str
    a: str
    b: str


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a model says in either order, and what is made of both.

    Attributes:
        a_first: how probable it is that the first answer is called better, with A there.
        b_first: the same with B there.
        averaged: how far A leads without the order's part, in log-odds.
        evidence: how far A leads by what was found in each answer alone, in log-odds.

    """

    a_first: float
    b_first: float
    averaged: float
    evidence: float


class ComparedPair(msgspec.Struct, frozen=True, kw_only=True):
    """A pair and the verdict on it; ``orders`` is None where no valid vote came."""

    pair: Pair
    orders: Orders | None
    winner: Side | None
    stable: bool | None
    trouble: str | None = None


OnCompared = Callable[[ComparedPair], None]


def demo_pairs() -> tuple[Pair, ...]:
    """Return the pairs of the demo."""
    return msgspec.json.decode(data("pairs.json"), type=tuple[Pair, ...])


def compare_pairs(judge: str, tell: OnCompared) -> tuple[ComparedPair, ...]:
    """Have every pair compared, and tell of each as soon as it is."""
    compared: list[ComparedPair] = []
    for pair in demo_pairs():
        compared.append(_compare(pair, judge))
        tell(compared[-1])
    return tuple(compared)


def _compare(pair: Pair, judge: str) -> ComparedPair:
    heard: dict[ModelRequest, Outcome] = {}
    report = evaluate(
        rubric=_RUBRIC,
        task=pair.task,
        context=pair.context,
        response=pair.a,
        response_b=pair.b,
        judges=judge,
        votes=1,
        on_exchange=heard.__setitem__,
    )
    orders = None if report.lost_votes else _orders(pair, judge, heard)
    return ComparedPair(
        pair=pair,
        orders=orders,
        winner=report.winner,
        stable=report.stable,
        trouble=_trouble(report),
    )


def _orders(pair: Pair, judge: str, heard: dict[ModelRequest, Outcome]) -> Orders | None:
    """Go through the vote again over the replies that were heard: it holds both orders."""
    judging = Judging(rubric=load_rubric(_RUBRIC), checklist=load_rubric(CHECKLIST))
    sample = Sample(
        task=pair.task,
        context=pair.context,
        response=Response(text=pair.a),
        response_b=Response(text=pair.b),
    )
    (seat,) = judging.seats([judge], 1)
    vote = drive_sync(compare(judging, sample, seat), heard.__getitem__)
    if isinstance(vote, Unscored):
        return None
    alone, together = vote.first.remarks.extra, vote.second.remarks.extra
    lead, bias = float(together[_LEAD]), float(together[_BIAS])
    return Orders(
        a_first=round(expit(bias + lead), 4),
        b_first=round(expit(bias - lead), 4),
        averaged=lead,
        evidence=float(alone[_LEAD]),
    )


def _trouble(report: EvaluationReport) -> str | None:
    return report.lost_votes[0].reason if report.lost_votes else None
