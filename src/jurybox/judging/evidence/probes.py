"""Narrow questions, and how they are asked."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

import msgspec

from jurybox.judging.evidence.probability import ALTERNATIVES, probabilities
from jurybox.judging.exchange import Failure, ModelReply, ModelRequest
from jurybox.judging.flow import Defect, Flow, Unscored
from jurybox.judging.panel import Seat
from jurybox.sample import Turn

YES: Final = "yes"
NO: Final = "no"

_REPLY: Final = " Reply {} or {}."


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """A question about some material, with one of two words for an answer.

    ``role`` is who the model shall be, ``opening`` what the most questions share, ``head`` what
    follows it in many of them, ``body`` what those about one response share.
    """

    role: str
    opening: str = ""
    head: str
    body: str
    question: str
    words: tuple[str, str] = (YES, NO)

    def request(self, seat: Seat) -> ModelRequest:
        """Return the question as it is asked; the answer is the first word."""
        parts = (self.opening, self.head, self.body)
        text = f"{''.join(parts)}\n{self.question}{_REPLY.format(*self.words)}"
        ends = accumulate(len(part) for part in parts)
        return ModelRequest(
            model=seat.judge,
            messages=(Turn(role="system", content=self.role), Turn(role="user", content=text)),
            generation=msgspec.structs.replace(seat.generation, temperature=0.0, max_tokens=1),
            vote=seat.vote,
            logprobs=ALTERNATIVES,
            shared=tuple(end for end in dict.fromkeys(ends) if end),
        )


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """How probable the first of its words is as the answer to each question."""

    of: Mapping[Probe, float]
    replies: tuple[ModelReply, ...]


def inquire(seat: Seat, probes: Sequence[Probe]) -> Flow[Readings | Unscored]:
    """Ask all questions; without every answer there is no vote.

    A question that the model doesn't answer isn't asked again: it reads the same words with the
    same result.
    """
    asked = tuple(dict.fromkeys(probes))
    outcomes = yield tuple(probe.request(seat) for probe in asked)
    replies = tuple(outcome for outcome in outcomes if isinstance(outcome, ModelReply))
    readings: dict[Probe, float] = {}
    for probe, outcome in zip(asked, outcomes, strict=True):
        if isinstance(outcome, Failure):
            return Unscored(reason=outcome.message, cause="failure", replies=replies)
        read = probabilities(outcome, probe.words)
        if isinstance(read, Defect):
            return Unscored(reason=read.problem, cause="defect", replies=replies)
        readings[probe] = read[probe.words[0]]
    return Readings(of=readings, replies=replies)
