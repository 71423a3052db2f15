"""Who judges: which model gives which vote, with which parameters (E9, E10)."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.rubric.model import Generation, Rubric
from jurybox.sample import Turn


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """One vote: its number, its judge, and the parameters it is asked with."""

    vote: int
    judge: str
    generation: Generation

    def request(self, prompt: str, schema: str | None) -> ModelRequest:
        """Return the question that this seat is asked."""
        return ModelRequest(
            model=self.judge,
            messages=(Turn(role="user", content=prompt),),
            generation=self.generation,
            schema=schema,
            vote=self.vote,
        )


def seats(rubric: Rubric, judges: Sequence[str], votes: int) -> tuple[Seat, ...]:
    """Deal the votes out among the judges, in turns.

    A model that gives several votes is asked with another seed each time and the rubric's
    ``vote_temperature``: asking a deterministic model the same thing three times is one vote.
    """
    dealt = [judges[vote % len(judges)] for vote in range(votes)]
    counts = Counter(dealt)
    base = rubric.generation
    warm = rubric.protocol.vote_temperature
    return tuple(
        Seat(
            vote=vote,
            judge=judge,
            generation=msgspec.structs.replace(
                base,
                seed=base.seed + vote,
                temperature=warm if counts[judge] > 1 else base.temperature,
            ),
        )
        for vote, judge in enumerate(dealt)
    )


def independent(replies: Sequence[tuple[Seat, ModelReply]]) -> bool:
    """Tell whether the votes can differ by anything but their number.

    What counts is what was really sent: a model may take no seed or no temperature, and at
    temperature 0 a seed changes nothing.
    """
    if len({seat.vote for seat, _ in replies}) <= 1:
        return True
    asked: set[tuple[object, ...]] = set()
    for seat, reply in replies:
        sent = reply.sent or seat.generation
        seed = sent.seed if reply.seed_sent and sent.temperature > 0 else None
        asked.add((seat.judge, sent.temperature, sent.top_p, seed))
    return len(asked) > 1
