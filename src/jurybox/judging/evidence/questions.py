"""Narrow questions to a small model, and the probabilities of its one-word answers."""

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Final

import msgspec

from jurybox.judging.flow import Defect, Failure, Flow, ModelReply, ModelRequest, Unscored
from jurybox.judging.protocol import Seat
from jurybox.sample import Turn

ALTERNATIVES: Final = 20
"""The number of token alternatives to request: the maximum of common endpoints."""

YES_OR_NO: Final = ("yes", "no")
# Every vote uses different wording.
_WORDINGS: Final = ("", "Going by the above: ", "To a careful reader: ")
_LEAST: Final = 0.001
_SUREST: Final = 1e-6
MARKS: Final = " \t\r\n.,:;!*_`\"'()[]"


class _Alternative(msgspec.Struct):
    token: str
    logprob: float


class _TokenChoice(msgspec.Struct):
    top_logprobs: list[_Alternative] = []


class _Logprobs(msgspec.Struct):
    content: list[_TokenChoice] | None = None


def probabilities(reply: ModelReply, words: tuple[str, ...]) -> Mapping[str, float] | Defect:
    """Return the probability of each word as the reply, normalized to a sum of 1.

    Spellings of a word (``Yes``, ``" yes"``, ``YES.``) count together. If all words together have a
    probability below 0.001, the reply says nothing about them.
    """
    if reply.logprobs is None:
        return Defect("the model gave no token probabilities, which judging by evidence needs")
    try:
        read = msgspec.json.decode(reply.logprobs, type=_Logprobs)
    except msgspec.DecodeError as error:
        return Defect(f"its token probabilities can't be read: {error}")
    masses = dict.fromkeys(words, 0.0)
    for each in read.content[0].top_logprobs if read.content else ():
        spelled = each.token.strip(MARKS).lower()
        for word in words:
            if spelled == word.lower():
                masses[word] += math.exp(min(each.logprob, 0.0))
    whole = sum(masses.values())
    if not whole >= _LEAST:
        wanted = " nor ".join(f"`{word}`" for word in words)
        return Defect(f"the model would answer neither {wanted} (it would {whole:.1%} of the time)")
    return {word: mass / whole for word, mass in masses.items()}


class Probe(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A question about some material that is answered with one of two words.

    ``role`` is the role given to the model. ``parts`` is the material, split where other questions
    may differ, so that the model reads a shared beginning once.
    """

    role: str
    parts: tuple[str, ...]
    question: str
    words: tuple[str, str] = YES_OR_NO

    def request(self, seat: Seat) -> ModelRequest:
        """Return the request for the question; the answer is the first word of the reply."""
        first, second = self.words
        asked = _WORDINGS[seat.vote % len(_WORDINGS)] + self.question
        text = f"{''.join(self.parts)}\n{asked} Reply {first} or {second}."
        ends = accumulate(len(part) for part in self.parts)
        return ModelRequest(
            model=seat.judge,
            messages=(Turn(role="system", content=self.role), Turn(role="user", content=text)),
            generation=msgspec.structs.replace(seat.generation, temperature=0.0, max_tokens=1),
            vote=seat.vote,
            logprobs=ALTERNATIVES,
            shared=tuple(end for end in dict.fromkeys(ends) if end),
        )


Answers = Mapping[Probe, float]
"""The probability of each question's first word as its answer."""


class Readings(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to some questions, and the replies that they are read from."""

    answers: Answers
    replies: tuple[ModelReply, ...]


def inquire(seat: Seat, probes: Iterable[Probe]) -> Flow[Readings | Unscored]:
    """Ask each distinct question; the vote is lost unless all are answered.

    An unanswered question isn't asked again, because the same request has the same result.
    """
    # Sorted, so that questions about the same material are adjacent and the model reads it once.
    asked = sorted(set(probes))
    outcomes = yield tuple(probe.request(seat) for probe in asked)
    replies = tuple(outcome for outcome in outcomes if isinstance(outcome, ModelReply))
    answers: dict[Probe, float] = {}
    for probe, outcome in zip(asked, outcomes, strict=True):
        if isinstance(outcome, Failure):
            return Unscored(reason=outcome.message, cause="failure", replies=replies)
        read = probabilities(outcome, probe.words)
        if isinstance(read, Defect):
            return Unscored(reason=read.problem, cause="defect", replies=replies)
        answers[probe] = read[probe.words[0]]
    return Readings(answers=answers, replies=replies)


def logit(probability: float) -> float:
    """Return the log-odds of a probability; never infinite."""
    kept = min(max(probability, _SUREST), 1 - _SUREST)
    return math.log(kept / (1 - kept))


def expit(log_odds: float) -> float:
    """Return the probability for log-odds."""
    return 1 / (1 + math.exp(-log_odds))
