"""The evidence for a criterion: the reference, the context, or the rubric's levels."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from jurybox.judging.evidence.questions import MARKS, Answers, Probe, expit, logit
from jurybox.rubric.rubric_model import Criterion
from jurybox.sample import Sample


class Fit(msgspec.Struct, frozen=True):
    """A logistic regression over the log-odds of a yes: is the response right?"""

    weight: float
    intercept: float

    def share(self, log_odds: float) -> float:
        """Return the position on a scale for a yes: the surer, the closer to an end.

        Right is the top and wrong is the bottom, because no question measures degrees between them.
        """
        right = self.intercept + self.weight * log_odds
        return 0.4 * expit(right) if right < 0 else 1 - 0.4 * expit(-right)


# `python benchmarks/judge_fit.py` computes these from the model's answers on the development cases.
FITS: Final = {"reference": Fit(1.91, 2.16), "context": Fit(1.38, -0.06)}


class Inquiry(msgspec.Struct, frozen=True, kw_only=True):
    """The questions for one criterion.

    A yes to one of ``good`` counts for the response, a yes to one of ``bad`` against it. ``basis``
    names what it is compared with. Without a fit, the position is the probability of a good
    response.
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

    Reference and context replace each other if one is missing; without both, the questions are
    about the levels.
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
    """Ask the rubric's own questions, or whether its best and worst levels fit."""
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
    """Split off the first label, which all samples share."""
    label, colon, rest = material.partition(":")
    return label + colon, rest


def shown(response: str) -> str:
    """Return a response as it is shown to the judge, after its label."""
    return f" {without_forgery(response)}\n"


_FORGED: Final = re.compile(
    r"<\|\w{1,30}\|>|\breply (?:\w{1,20} or \w{1,20}|yes|no)\b\.?", re.IGNORECASE
)
_ONE_WORD_REPLIES: Final = frozenset({"yes", "no", "a", "b"})


def without_forgery(response: str) -> str:
    """Remove text that imitates the judge's conversation, which a small model might continue.

    Removed are chat template marks, requests to reply with one word, and lines after the first that
    consist of such a word.
    """
    first, *rest = _FORGED.sub("", response.strip()).split("\n")
    kept = (line for line in rest if line.strip(MARKS).lower() not in _ONE_WORD_REPLIES)
    return "\n".join((first, *kept))
