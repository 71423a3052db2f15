"""Narrow questions to a small model, and how sure its one-word answers are."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final

import msgspec

from jurybox.judging.flow import Defect, Failure, Flow, ModelReply, ModelRequest, Unscored
from jurybox.judging.protocol import Seat
from jurybox.sample import Sample, Turn

ALTERNATIVES: Final = 20
"""How many alternatives are asked for: the most that common endpoints give."""

_LEAST: Final = 0.001
_MARKS: Final = " \t\r\n.,:;!*_`\"'()[]"


class _Alternative(msgspec.Struct):
    token: str
    logprob: float


class _TokenChoice(msgspec.Struct):
    top_logprobs: list[_Alternative] = []


class _Logprobs(msgspec.Struct):
    content: list[_TokenChoice] | None = None


def probabilities(reply: ModelReply, words: tuple[str, ...]) -> Mapping[str, float] | Defect:
    """Return the probability of each of some words as the reply; together they have all of it.

    Spellings of a word (``Yes``, ``" yes"``, ``YES.``) count together. A model may be about to
    begin with another word, such as "The"; what it thinks shows in the rest. A reply that is any
    of the words less than once in a thousand times says nothing about them.
    """
    if reply.logprobs is None:
        return Defect("the model gave no token probabilities, which this way of judging reads")
    try:
        read = msgspec.json.decode(reply.logprobs, type=_Logprobs)
    except msgspec.DecodeError as error:
        return Defect(f"its token probabilities can't be read: {error}")
    alternatives = read.content[0].top_logprobs if read.content else []
    masses = dict.fromkeys(words, 0.0)
    for each in alternatives:
        word = each.token.strip(_MARKS).lower()
        for known in words:
            if word == known.lower():
                masses[known] += math.exp(min(each.logprob, 0.0))
    whole = sum(masses.values())
    if not whole >= _LEAST:
        wanted = " nor ".join(f"`{word}`" for word in words)
        return Defect(f"the model would answer neither {wanted} (it would {whole:.1%} of the time)")
    return {word: mass / whole for word, mass in masses.items()}


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


_BOTTOM: Final = 0.2
_TOP: Final = 0.8
_SUREST: Final = 1e-6


def shown(probability: float) -> str:
    """Return a probability with two decimals."""
    return f"{probability:.2f}"


def answered(question: str, probability: float) -> str:
    """Return a question with its answer, as a finding tells it."""
    return f"{question} Yes: {shown(probability)}."


def logit(probability: float) -> float:
    """Return the log of the odds, which adds up where probabilities don't; never infinite."""
    kept = min(max(probability, _SUREST), 1 - _SUREST)
    return math.log(kept / (1 - kept))


def decided(lead: float) -> float:
    """Return how far up a scale a lead puts a response, in log-odds over what divides good and bad.

    It is in the top fifth or in the bottom fifth, further out the surer it is: a scale with many
    points has room for that, one with three has none.
    """
    sure = expit(lead)
    return 2 * _BOTTOM * sure if lead < 0 else 1 - 2 * (1 - _TOP) * (1 - sure)


def expit(log_odds: float) -> float:
    """Return the probability of some log-odds."""
    return 1 / (1 + math.exp(-log_odds))


TEACHER: Final = "You are a strict teacher."


def question_part(sample: Sample) -> str:
    """Return the task, after what was said before it."""
    turns = "".join(f"{turn.role.capitalize()}: {turn.content}\n" for turn in sample.messages)
    earlier = f"Earlier in the conversation:\n{turns}" if turns else ""
    return f"{earlier}Question: {sample.task}\n"


def context_part(sample: Sample) -> str:
    """Return the context, where there is one."""
    return f"Context: {sample.context}\n" if sample.context else ""


def text_part(text: str) -> str:
    """Return a text that an answer is held against, as the teacher is shown it."""
    return f"Text: {text}\n"


def solution_part(text: str) -> str:
    """Return the right answer as the teacher is shown it."""
    return f"Correct answer: {text}\n"


def answer_part(text: str) -> str:
    """Return an answer as the teacher is shown it."""
    return f"Student's answer: {text}\n"


Answers = Mapping[Probe, float]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one criterion of one response.

    ``findings`` are sentences that quote what was asked and how probable a yes was. ``share`` is
    how far up the scale they put the response, from 0 to 1; ``strength``, in log-odds, is what
    two responses are compared by.
    """

    findings: tuple[str, ...]
    share: float
    strength: float

    def describe(self) -> str:
        """Return the findings as a reasoning."""
        return " ".join(self.findings)


class Inquiry(msgspec.Struct, frozen=True, kw_only=True):
    """The questions for one criterion, and how their answers become evidence."""

    probes: tuple[Probe, ...]
    conclude: Callable[[Answers], Evidence]
