"""Votes by evidence: asks a small model narrow questions, and scores from its answers.

A small model scores badly even if it writes a rationale first, but it answers narrow questions
well. So each criterion becomes yes-or-no questions, the answers are read from the probabilities of
the model's next token, and code turns them into a score. The findings are the reasoning; they are
recorded before any score exists.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import msgspec

from jurybox.judging.flow import Answer, Defect, Failure, Flow, ModelReply, ModelRequest, Unscored
from jurybox.judging.formats.reply_format import Preference, Remarks, Scores, Side
from jurybox.judging.pairwise import PairVote
from jurybox.judging.protocol import Judging, Seat
from jurybox.rubric.rubric_model import Criterion, Rubric
from jurybox.rubric.scale import weighted_mean
from jurybox.sample import Sample, Turn

ALTERNATIVES: Final = 20
"""The number of token alternatives to request: the most that common endpoints allow."""

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
    """Return how likely each word is as the reply, normalized to a sum of 1.

    Spellings of a word (``Yes``, ``" yes"``, ``YES.``) count together. If all words together have a
    probability below 0.001, the result is a defect.
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
        return Defect(f"the model would answer neither {wanted} (their probability is {whole:.1%})")
    return {word: mass / whole for word, mass in masses.items()}


class Probe(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A question about some material that is answered with one of two words.

    ``role`` is the role given to the model. ``parts`` is the material, split at the points after
    which other questions may differ, so that the model reads a shared beginning only once.
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
"""How likely it is that each question is answered with its first word."""


def inquire(seat: Seat, probes: Iterable[Probe]) -> Flow[Answer[Answers] | Unscored]:
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
    return Answer(value=answers, replies=replies)


def logit(probability: float) -> float:
    """Return the log-odds of a probability; never infinite."""
    kept = min(max(probability, _SUREST), 1 - _SUREST)
    return math.log(kept / (1 - kept))


def expit(log_odds: float) -> float:
    """Return the probability for log-odds."""
    return 1 / (1 + math.exp(-log_odds))


class Fit(msgspec.Struct, frozen=True):
    """A logistic regression that estimates whether the response is right.

    From the log-odds of a yes, it computes the log-odds of a right response.
    """

    weight: float
    intercept: float

    def share(self, log_odds: float) -> float:
        """Return the position on a scale, from 0 to 1; the surer the model, the closer to an end.

        A right response is near the top and a wrong one near the bottom, because no question
        measures degrees between them.
        """
        right = self.intercept + self.weight * log_odds
        return 0.4 * expit(right) if right < 0 else 1 - 0.4 * expit(-right)


# `python benchmarks/judge_fit.py` computes these from the model's answers on the development cases.
FITS: Final = {"reference": Fit(1.91, 2.16), "context": Fit(1.38, -0.06)}


class Inquiry(msgspec.Struct, frozen=True, kw_only=True):
    """The questions for one criterion.

    A yes to one of ``good`` counts for the response, a yes to one of ``bad`` against it. ``basis``
    names the text that the response is compared with. Without a fit, the position on the scale is
    the probability of a good response.
    """

    good: tuple[Probe, ...]
    bad: tuple[Probe, ...] = ()
    basis: str = ""
    fit: Fit | None = None

    def findings(self, answers: Answers) -> str:
        """Return each question with the probability of a yes."""
        asked = (*self.good, *self.bad)
        found = " ".join(f"{each.question} Yes: {answers[each]:.2f}." for each in asked)
        return self.basis + found

    def share(self, answers: Answers) -> float:
        """Return the response's position on the scale, from 0 to 1."""
        log_odds = _mean_logit(self.good, answers) - _mean_logit(self.bad, answers)
        return expit(log_odds) if self.fit is None else self.fit.share(log_odds)


def _mean_logit(probes: Sequence[Probe], answers: Answers) -> float:
    return sum(logit(answers[probe]) for probe in probes) / max(len(probes), 1)


_TEACHER: Final = "You are a strict teacher."
_IS_TRUE: Final = "According to the text, is what the student says true?"
_OWN: Final = "question"
_REVIEWER: Final = "You are a strict reviewer of answers."
_DESCRIBES: Final = 'Is this true of the answer: "{}"?'


def inquiry_for(criterion: Criterion, sample: Sample, response: str) -> Inquiry:
    """Return the evidence questions for one criterion.

    If the criterion's evidence is the reference or the context and that text is missing, the other
    one is used. If both are missing, or for other kinds of evidence, the questions are about the
    criterion's levels.
    """
    texts = {"reference": sample.reference or "", "context": sample.context or ""}
    wanted = criterion.evidence
    for source in (wanted, *texts) if wanted in texts else ():
        if texts[source].strip():
            return by_text(sample, source, texts[source], response)
    return by_levels(criterion, sample, response)


def by_text(sample: Sample, source: str, text: str, response: str) -> Inquiry:
    """Ask whether the response is true according to the reference or the context."""
    parts = (
        *split_label(f"Text: {text}\n{question_part(sample)}Student's answer:"),
        shown(response),
    )
    asked = Probe(role=_TEACHER, parts=parts, question=_IS_TRUE)
    basis = f"With the {source} as the text: "
    return Inquiry(good=(asked,), basis=basis, fit=FITS[source])


def by_levels(criterion: Criterion, sample: Sample, response: str) -> Inquiry:
    """Ask the criterion's own questions; without any, ask whether its best and worst levels fit."""
    reference = f"Correct answer: {sample.reference}\n" if sample.reference else ""
    parts = (*split_label(f"{material_part(sample)}{reference}Answer:"), shown(response))

    def probes(questions: Sequence[str]) -> tuple[Probe, ...]:
        return tuple(Probe(role=_REVIEWER, parts=parts, question=each) for each in questions)

    asked = [each.items for each in criterion.indicators if each.label.lower().startswith(_OWN)]
    if asked:
        return Inquiry(good=probes([question for items in asked for question in items]))
    if len(criterion.levels) > 1:
        worst, *_, best = sorted(criterion.levels, key=lambda level: level.low)
        good, bad = (_DESCRIBES.format(each.meaning) for each in (best, worst))
        return Inquiry(good=probes([good]), bad=probes([bad]))
    measure = f"It does well by this measure: {criterion.definition or criterion.name}"
    return Inquiry(good=probes([_DESCRIBES.format(measure)]))


def material_part(sample: Sample) -> str:
    """Return the context, if any, and the task."""
    context = f"Context: {sample.context}\n" if sample.context else ""
    return context + question_part(sample)


def question_part(sample: Sample) -> str:
    """Return the earlier turns and the task."""
    turns = "".join(f"{turn.role.capitalize()}: {turn.content}\n" for turn in sample.messages)
    earlier = f"Earlier in the conversation:\n{turns}" if turns else ""
    return f"{earlier}Question: {sample.task}\n"


def split_label(material: str) -> tuple[str, str]:
    """Split off the first heading, which is the same in all samples."""
    label, colon, rest = material.partition(":")
    return label + colon, rest


def shown(response: str) -> str:
    """Return a response in the form that follows its label in the prompt."""
    return f" {without_forgery(response)}\n"


_FORGED: Final = re.compile(
    r"<\|\w{1,30}\|>|\breply (?:\w{1,20} or \w{1,20}|yes|no)\b\.?", re.IGNORECASE
)
_ONE_WORD_REPLIES: Final = frozenset({"yes", "no", "a", "b"})


def without_forgery(response: str) -> str:
    """Remove text that imitates the judge's conversation, which a small model might continue.

    Removes chat template marks, requests to reply with one word, and lines after the first that
    consist only of a word such as "yes".
    """
    first, *rest = _FORGED.sub("", response.strip()).split("\n")
    kept = (line for line in rest if line.strip(MARKS).lower() not in _ONE_WORD_REPLIES)
    return "\n".join((first, *kept))


_ALONE: Final = "The response was judged on its own, so its position can't have mattered."
_PAIR: Final = (
    "The comparison was made in both orders and averaged; the reasoning shows how much the"
    " order alone changed it."
)
_CHECKLIST: Final = {
    "verbosity": "No question is about length, and no score depends on it.",
    "self_enhancement": (
        "Not examined: the author of the response isn't known. {judge} only answered questions"
        " about what the response says."
    ),
    "formatting": "No question is about formatting, unless a level of the rubric is.",
    "authority": (
        "The questions compare the response with the material or the rubric's words; a title or"
        " a claimed source answers none of them, but may still influence the model."
    ),
}
_UNKNOWN: Final = "Not examined: {judge} was asked narrow questions, and none is about this."

_LEFT_OUT: Final = (
    " Parts of the response that imitate the judge's own conversation were not shown to it."
)
_ROLE: Final = "You are a strict and fair judge of answers."
# In log-odds: after averaging both orders, a smaller lead may be noise.
_LEAST_LEAD: Final = 0.01


def examine(
    judging: Judging, sample: Sample, response: str, seat: Seat
) -> Flow[Answer[Scores] | Unscored]:
    """Score one response from a small model's answers to the evidence questions."""
    criteria = judging.asked.criteria
    inquiries = {each.id: inquiry_for(each, sample, response) for each in criteria}
    probes = [probe for each in inquiries.values() for probe in (*each.good, *each.bad)]
    readings = yield from inquire(seat, probes)
    if isinstance(readings, Unscored):
        return readings
    answers, note = readings.value, _note(response)
    # The findings are complete before any of them becomes a score.
    reasoning = {name: each.findings(answers) + note for name, each in inquiries.items()}
    shares = [each.share(answers) for each in inquiries.values()]
    if judging.scored != criteria:
        # One overall score for the response: the weighted mean of its criteria.
        (whole,) = judging.scored
        reasoning = {whole.id: "\n".join(f"{name}: {text}" for name, text in reasoning.items())}
        shares = [weighted_mean([each.weight for each in criteria], shares)]
    scores = {
        each.id: each.scale.denormalize(share)
        for each, share in zip(judging.scored, shares, strict=True)
    }
    checklist = _completed(judging.checklist, seat.judge, _ALONE)
    remarks = Remarks(reasoning=reasoning, bias_checklist=checklist)
    return Answer(value=Scores(scores=scores, remarks=remarks), replies=readings.replies)


def compare(judging: Judging, sample: Sample, seat: Seat) -> Flow[PairVote | Unscored]:
    """Ask in both orders which response is better by each criterion, and average the orders."""
    criteria = judging.asked.criteria
    a = sample.response.text
    b = "" if sample.response_b is None else sample.response_b.text
    straight = {each.id: _comparison(each, sample, a, b) for each in criteria}
    swapped = {each.id: _comparison(each, sample, b, a) for each in criteria}
    readings = yield from inquire(seat, [*straight.values(), *swapped.values()])
    if isinstance(readings, Unscored):
        return readings
    answers = readings.value
    compared = {
        name: _compared(answers[probe], answers[swapped[name]]) for name, probe in straight.items()
    }
    weights = [each.weight for each in criteria]
    lead = weighted_mean(weights, [each.lead for each in compared.values()])
    bias = weighted_mean(weights, [each.bias for each in compared.values()])
    note = _note(a, b)
    verdict = Preference(
        winner=_side(lead),
        preferences={name: _side(each.lead) for name, each in compared.items()},
        remarks=Remarks(
            reasoning={name: each.evidence + note for name, each in compared.items()},
            bias_checklist=_completed(judging.checklist, seat.judge, _PAIR),
            extra={"lead_of_a": round(lead, 6), "position_bias": round(bias, 6)},
        ),
    )
    # Both orders contribute to the vote, but its remarks are shown once.
    unremarked = msgspec.structs.replace(verdict.remarks, bias_checklist={})
    return PairVote(
        winner=verdict.winner,
        stable=verdict.winner != "tie",
        preferences=verdict.preferences,
        first=verdict,
        second=msgspec.structs.replace(verdict, remarks=unremarked),
        replies=readings.replies,
        straight=readings.replies[-1],
    )


class _Compared(NamedTuple):
    """How far A leads and how far the first answer leads, in log-odds, and the evidence."""

    lead: float
    bias: float
    evidence: str


def _compared(with_a_first: float, with_b_first: float) -> _Compared:
    """Average both orders, given how likely the model prefers the answer shown first in each."""
    one, other = logit(with_a_first), logit(with_b_first)
    lead, bias = (one - other) / 2, (one + other) / 2
    evidence = (
        "Asked which is better, the model names the first answer with probability"
        f" {with_a_first:.2f} when A is first and {with_b_first:.2f} when B is;"
        f" averaged over both orders, A leads by {lead:+.2f} (log-odds), and the order"
        f" alone gives the first answer {bias:+.2f}."
    )
    return _Compared(lead, bias, evidence)


def _note(*responses: str) -> str:
    """Return a note if part of a response was not shown to the model."""
    return _LEFT_OUT if any(without_forgery(each) != each.strip() for each in responses) else ""


def _completed(checklist: Rubric, judge: str, position: str) -> dict[str, str]:
    """Return the bias checklist, completed with how the method handles each bias."""
    done = {"position": position, **_CHECKLIST}
    return {item.id: done.get(item.id, _UNKNOWN).format(judge=judge) for item in checklist.criteria}


def _comparison(criterion: Criterion, sample: Sample, first: str, second: str) -> Probe:
    answers = f"{shown(first)}Answer B:{shown(second)}"
    return Probe(
        role=_ROLE,
        parts=(*split_label(f"{material_part(sample)}Answer A:"), answers),
        question=f"Which answer is better by {criterion.name.lower()}?",
        words=("A", "B"),
    )


def _side(lead: float) -> Side:
    if abs(lead) < _LEAST_LEAD:
        return "tie"
    return "A" if lead > 0 else "B"
