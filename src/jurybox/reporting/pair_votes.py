"""The votes on a stored pair, with the result of each order read from the replies (E8)."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from jurybox.engine.driver import drive_sync
from jurybox.engine.records import ExchangeRow, in_order
from jurybox.engine.replay import ByThread, role_of
from jurybox.judging.evidence.evidence_votes import compare
from jurybox.judging.flow import together
from jurybox.judging.formats.reply_format import Side
from jurybox.judging.pairwise import PairVote, pairwise
from jurybox.judging.protocol import Seat
from jurybox.reporting.stored import SampleRecord
from jurybox.sample import Sample
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.storage.store import Store

_NO_LEAD: Final = 1e-9


class OrderedVote(msgspec.Struct, frozen=True, kw_only=True):
    """A vote on a pair: the winner with A and with B shown first, the second mapped back.

    ``kept`` says for each criterion whether its preference is the same in both orders.
    """

    judge: str
    winner: Side
    straight: Side
    swapped: Side
    kept: dict[str, bool]


def stored_votes(procedure: Procedure, record: SampleRecord, store: Store) -> Iterator[OrderedVote]:
    """Yield the valid votes on a stored pair."""
    row = record.row
    exchanges = in_order(row, store.exchanges_of(row.run_id, row.number))
    return pair_votes(procedure, record.sample, exchanges)


def pair_votes(
    procedure: Procedure, sample: Sample, exchanges: Sequence[ExchangeRow]
) -> Iterator[OrderedVote]:
    """Yield the valid votes on a pair; those never requested or answered are left out."""
    judging = procedure.judging
    asked = [each for each in exchanges if role_of(each) == "judge"]
    panel = judging.seats(procedure.judges, procedure.votes)
    flows = [
        (compare if seat.way == "evidence" else pairwise)(judging, sample, seat) for seat in panel
    ]
    votes = drive_sync(together(*flows), ByThread(asked))
    for seat, vote in zip(panel, votes, strict=True):
        if isinstance(vote, PairVote):
            yield ordered_vote(seat, vote)


def ordered_vote(seat: Seat, vote: PairVote) -> OrderedVote:
    """Return the winner of each order of a vote."""
    straight, swapped = vote.first.winner, vote.second.winner
    second = vote.second.preferences
    kept = {name: side == second.get(name) for name, side in vote.first.preferences.items()}
    if seat.way == "evidence":
        # It compares the responses overall, by probability, and knows the effect of the order.
        extra = vote.second.remarks.extra
        lead, bias = float(extra["lead_of_a"]), float(extra["position_bias"])
        straight, swapped, kept = _side(lead + bias), _side(lead - bias), {}
    return OrderedVote(
        judge=seat.judge, winner=vote.winner, straight=straight, swapped=swapped, kept=kept
    )


def _side(lead: float) -> Side:
    if abs(lead) < _NO_LEAD:
        return "tie"
    return "A" if lead > 0 else "B"
