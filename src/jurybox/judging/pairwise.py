"""Compares two responses: each vote is two calls, one in each order (E8)."""

import msgspec

from jurybox.judging.flow import Answer, Defect, Flow, ModelReply, Unscored, ask, together
from jurybox.judging.formats.reply_format import Preference, Side
from jurybox.judging.protocol import Judging, Seat
from jurybox.sample import Sample


class PairVote(msgspec.Struct, frozen=True, kw_only=True):
    """One vote on a pair: the result that both orders agree on, or a tie if they differ."""

    winner: Side
    stable: bool
    preferences: dict[str, Side]
    first: Preference
    second: Preference
    replies: tuple[ModelReply, ...]


def pairwise(judging: Judging, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    """Ask in both orders, exchange A and B in the second reply, and combine both replies."""
    a = sample.response.text
    b = "" if sample.response_b is None else sample.response_b.text
    form, policy, material = judging.pair_form, judging.reask_policy, sample.texts

    def read(text: str) -> Preference | Defect:
        return form.read(text, material)

    straight, swapped = yield from together(
        ask(seat.request(judging.pair_question(sample, a, b)), read, policy),
        ask(seat.request(judging.pair_question(sample, b, a)), read, policy),
    )
    return _reconcile(straight, swapped)


def _reconcile(
    straight: Answer[Preference] | Unscored, swapped: Answer[Preference] | Unscored
) -> PairVote | Unscored:
    replies = (*straight.replies, *swapped.replies)
    # A single order isn't a vote, since it would count position bias as a preference.
    if isinstance(straight, Unscored):
        reason = f"A before B: {straight.reason}"
        return Unscored(reason=reason, cause=straight.cause, replies=replies)
    if isinstance(swapped, Unscored):
        reason = f"B before A: {swapped.reason}"
        return Unscored(reason=reason, cause=swapped.cause, replies=replies)
    first, second = straight.value, swapped.value.mirrored()
    stable = first.winner == second.winner
    return PairVote(
        winner=first.winner if stable else "tie",
        stable=stable,
        preferences={
            name: side if side == second.preferences.get(name) else "tie"
            for name, side in first.preferences.items()
        },
        first=first,
        second=second,
        replies=replies,
    )
