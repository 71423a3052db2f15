"""The votes on a stored pair, read anew from their replies: what each order said (E8)."""

from collections.abc import Iterator, Sequence
from typing import Final

from jurybox.engine.driver import drive_sync
from jurybox.engine.records import ExchangeRow
from jurybox.engine.replay import ByThread, role_of
from jurybox.judging.evidence.evidence_votes import compare
from jurybox.judging.flow import Flow, Unscored, together
from jurybox.judging.pairwise import PairVote, pairwise
from jurybox.judging.protocol import Seat
from jurybox.judging.verdict import Side
from jurybox.sample import Sample
from jurybox.scoring.evaluate_sample import Procedure

_NO_LEAD: Final = 1e-9


def pair_votes(
    procedure: Procedure, sample: Sample, exchanges: Sequence[ExchangeRow]
) -> Iterator[tuple[Seat, PairVote]]:
    """Yield the valid votes on a pair, with who gave them.

    Votes that were never asked for, or never answered, are left out.

    Raises:
        msgspec.DecodeError: an exchange can't be read.

    """
    judging = procedure.judging
    asked = [each for each in exchanges if role_of(each) == "judge"]
    panel = judging.seats(procedure.judges, procedure.votes)
    flows = [_flow(procedure, sample, seat) for seat in panel]
    votes = drive_sync(together(*flows), ByThread(asked))
    for seat, vote in zip(panel, votes, strict=True):
        if isinstance(vote, PairVote):
            yield seat, vote


def _flow(procedure: Procedure, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    vote = compare if seat.way == "evidence" else pairwise
    return vote(procedure.judging, sample, seat)


def both_orders(seat: Seat, vote: PairVote) -> tuple[Side, Side]:
    """Return who won with A shown first and with B shown first, the second mapped back.

    A judge that is asked for evidence names the better response by probability; it compares in
    both orders too, and the order's part is known.
    """
    if seat.way != "evidence":
        return vote.first.winner, vote.second.winner
    said = vote.second.remarks.extra
    lead, bias = float(said["lead_of_a"]), float(said["position_bias"])
    return _side(lead + bias), _side(lead - bias)


def kept_preferences(seat: Seat, vote: PairVote) -> dict[str, bool]:
    """Return for each criterion whether its preference is the same in both orders."""
    if seat.way == "evidence":
        # It compares the responses as a whole only.
        return {}
    second = vote.second.preferences
    return {name: side == second.get(name) for name, side in vote.first.preferences.items()}


def _side(lead: float) -> Side:
    if abs(lead) < _NO_LEAD:
        return "tie"
    return "A" if lead > 0 else "B"
