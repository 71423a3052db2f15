"""Who judges: which model gives which vote, with which parameters (E9, E10)."""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from jurybox.judging.exchange import Frame, ModelReply, ModelRequest
from jurybox.rubric.model import Generation, Rubric
from jurybox.sample import Turn

Way = Literal["verdict", "evidence"]
"""How a judge is asked: for a whole verdict, or narrow questions whose answers code scores."""

WORDINGS: Final = 3
"""In how many ways each question for evidence can be put; more votes repeat them."""

_EMBEDDED: Final = "local/"


def way_of(judge: str, wanted: Way | None) -> Way:
    """Return how a judge is asked: as it is wanted, or else the embedded ones by evidence.

    Small models can't reason and then score; they can answer narrow questions.
    """
    return wanted or ("evidence" if judge.startswith(_EMBEDDED) else "verdict")


class Question(msgspec.Struct, frozen=True):
    """What a judge is asked; ``frame`` is what questions about other samples share with it."""

    text: str
    schema: str | None = None
    frame: Frame | None = None


class Seat(msgspec.Struct, frozen=True, kw_only=True):
    """One vote: its number, its judge, how that is asked and with which parameters."""

    vote: int
    judge: str
    generation: Generation
    way: Way = "verdict"

    def request(self, question: Question) -> ModelRequest:
        """Return the question as this seat is asked it."""
        return ModelRequest(
            model=self.judge,
            messages=(Turn(role="user", content=question.text),),
            generation=self.generation,
            schema=question.schema,
            vote=self.vote,
            frame=question.frame,
        )


def seats(
    rubric: Rubric, judges: Sequence[str], votes: int, wanted: Way | None = None
) -> tuple[Seat, ...]:
    """Deal the votes out among the judges, in turns.

    A model that gives several votes is asked with another seed each time and the rubric's
    ``vote_temperature``: asking a deterministic model the same thing three times is one vote. One
    that is asked for evidence gets other words each time instead.
    """
    dealt = [judges[vote % len(judges)] for vote in range(votes)]
    counts = Counter(dealt)
    base = rubric.generation
    warm = rubric.protocol.vote_temperature
    dealt_seats: list[Seat] = []
    for vote, judge in enumerate(dealt):
        way = way_of(judge, wanted)
        warmed = way == "verdict" and counts[judge] > 1
        generation = msgspec.structs.replace(
            base, seed=base.seed + vote, temperature=warm if warmed else base.temperature
        )
        dealt_seats.append(Seat(vote=vote, judge=judge, generation=generation, way=way))
    return tuple(dealt_seats)


class Panel(msgspec.Struct, frozen=True, kw_only=True):
    """The seats of a jury, and what follows from them for every sample.

    ``overrides`` are the parameters that differ from the rubric's on purpose (E10).
    """

    seats: tuple[Seat, ...]
    judges: tuple[str, ...]
    overrides: dict[str, float]
    asks_for_verdicts: bool
    """Whether any judge is one to ask for a whole verdict, be there a vote for it or not."""

    @classmethod
    def of(
        cls, rubric: Rubric, judges: Sequence[str], votes: int, wanted: Way | None = None
    ) -> "Panel":
        """Deal the votes out, and say what follows from that."""
        dealt = seats(rubric, judges, votes, wanted)
        warm = {seat.generation.temperature for seat in dealt} - {rubric.generation.temperature}
        return cls(
            seats=dealt,
            judges=tuple(dict.fromkeys(seat.judge for seat in dealt)),
            overrides={"temperature": warm.pop()} if warm else {},
            asks_for_verdicts=any_verdict(judges, wanted),
        )


def any_verdict(judges: Sequence[str], wanted: Way | None) -> bool:
    """Tell whether any of the judges is one to ask for a whole verdict."""
    return any(way_of(judge, wanted) == "verdict" for judge in judges)


def independent(replies: Sequence[tuple[Seat, ModelReply]]) -> bool:
    """Tell whether the votes can differ by anything but their number.

    What counts is what was really sent: a model may take no seed or no temperature, and at
    temperature 0 a seed changes nothing. Questions for evidence differ in their words.
    """
    several = False
    for seat, reply in replies[1:]:
        if _asked(seat, reply) != _asked(*replies[0]):
            return True
        several = several or seat.vote != replies[0][0].vote
    return not several


def _asked(seat: Seat, reply: ModelReply) -> tuple[object, ...]:
    if seat.way == "evidence":
        return seat.judge, seat.vote % WORDINGS
    sent = reply.sent or seat.generation
    seed = sent.seed if reply.seed_sent and sent.temperature > 0 else None
    return seat.judge, sent.temperature, sent.top_p, seed
