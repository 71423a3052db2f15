"""Compares two responses: each vote is two calls, one in each order."""

from collections.abc import Sequence

import msgspec

from jurybox.judging.flow import Answer, Defect, Flow, ModelReply, Unscored, ask, together
from jurybox.judging.formats.reply_format import Preference, Side
from jurybox.judging.protocol import Judging, Seat
from jurybox.sample import Sample


class PairVote(msgspec.Struct, frozen=True, kw_only=True):
    """One vote on a pair: the result that both orders agree on, or a tie if they differ.

    Of its ``replies``, the last is on the order B-A, and ``straight`` is the last on A-B.
    """

    winner: Side
    stable: bool
    preferences: dict[str, Side]
    first: Preference
    second: Preference
    replies: tuple[ModelReply, ...]
    straight: ModelReply

    def keeps(self, criterion: str) -> bool:
        """Return whether the preference by a criterion is the same in both orders."""
        return self.first.preferences[criterion] == self.second.preferences.get(criterion)


def pairwise(judging: Judging, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    """Ask in both orders, exchange A and B in the second reply, and combine both replies."""
    a = sample.response.text
    b = "" if sample.response_b is None else sample.response_b.text
    form, rubric, material = judging.pair_form, judging.rubric, sample.texts

    def read(text: str) -> Preference | Defect:
        return form.read(text, material)

    straight, swapped = yield from together(
        ask(seat.request(judging.pair_question(sample, a, b)), read, rubric),
        ask(seat.request(judging.pair_question(sample, b, a)), read, rubric),
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
        straight=straight.replies[-1],
    )


def explained(criterion: str, side: Side | None, votes: Sequence[PairVote]) -> str:
    """Return the reasoning of the first vote that has this preference in both orders.

    If no vote has it, return the reasoning of one vote for each side. If a vote's preference
    changes with the order, return its reasoning in both orders instead.
    """
    sure = {
        vote.first.preferences[criterion]: vote.first
        for vote in reversed(votes)
        if vote.keeps(criterion)
    }
    if side in sure:
        return sure[side].remarks.reasoning.get(criterion, "")
    how = "the votes are divided"
    replies = {f"For {each}": reply for each, reply in sorted(sure.items())}
    for vote in votes:
        if not vote.keeps(criterion):
            how = _by_order(vote, criterion)
            replies = {"With A first": vote.first, "With B first, called A": vote.second}
            break
    said = (
        f"{label}: {reply.remarks.reasoning.get(criterion, '')}" for label, reply in replies.items()
    )
    return f"{how}. {' '.join(said)}"


def _by_order(vote: PairVote, criterion: str) -> str:
    sides = vote.first.preferences[criterion], vote.second.preferences.get(criterion)
    if "tie" in sides:
        return "the preference changes with the order"
    place = "first" if sides[0] == "A" else "second"
    return f"the response shown {place} is preferred in both orders"
