"""The evidence for a criterion: the reference, the context, the model's knowledge or the levels."""

import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from jurybox.judging.evidence.questions import MARKS, Answers, Probe, expit, logit
from jurybox.rubric.rubric_model import Criterion
from jurybox.sample import Sample


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence for one criterion of one response.

    ``findings`` quote what was asked and how probable a yes was. ``share`` is how far up the scale
    they put the response, from 0 to 1; ``strength``, in log-odds, is what two responses are
    compared by.
    """

    findings: str
    share: float
    strength: float


class Inquiry(msgspec.Struct, frozen=True):
    """The questions for one criterion, and how their answers become evidence."""

    probes: tuple[Probe, ...]
    conclude: Callable[[Answers], Evidence]


class Fit(msgspec.Struct, frozen=True):
    """A logistic regression over the log-odds of a yes.

    ``low`` is its intercept for more than the bottom of the scale, ``high`` that for the top; in
    between is the middle.
    """

    weight: float
    low: float
    high: float

    def strength(self, yes: float) -> float:
        """Return the log-odds that a response deserves more than the bottom."""
        return self.low + self.weight * logit(yes)

    def share(self, yes: float) -> float:
        """Return how far up a scale a yes puts a response: the surer, the further out."""
        low, high = self.strength(yes), self.high + self.weight * logit(yes)
        if low < 0:
            return _FIFTH * 2 * expit(low)
        return 0.5 if high < 0 else 1 - _FIFTH * 2 * expit(-high)


_FIFTH: Final = 0.2
# `python benchmarks/judge_fit.py` computes these from the model's answers on the development cases.
FITS: Final = {"reference": Fit(1.40, 1.58, 0.73), "context": Fit(1.39, -0.06, -0.06)}

_TEACHER: Final = "You are a strict teacher."
_REVIEWER: Final = "You are a strict reviewer of answers."
_IS_TRUE: Final = (
    "According to the text, is what the student says true?",
    "Going by the text, is what the student says true?",
    "By the text alone, is what the student says true?",
)
_IS_RIGHT: Final = (
    "Is the student's answer correct?",
    "Does the student's answer deserve full marks?",
    "Would you mark the student's answer as right?",
)
_DESCRIBES: Final = (
    'Is this true of the answer: "{}"?',
    'Does this describe the answer well: "{}"?',
    'Would a careful reader say of the answer: "{}"?',
)
_RUBRIC_QUESTION: Final = (
    "{}",
    "Going by the material above: {}",
    "As a careful reader, answer this: {}",
)


_FORGED: Final = re.compile(r"<\|\w{1,30}\|>|\breply \w{1,20} or \w{1,20}\b\.?", re.IGNORECASE)
_ONE_WORD_REPLIES: Final = frozenset({"yes", "no", "a", "b"})


def inquiry_for(criterion: Criterion, sample: Sample, response: str, vote: int) -> Inquiry:
    """Return the evidence questions for one criterion.

    Without a reference, the context takes its place, and the other way round; with neither, a
    reference's place is taken by what the model knows, a context's by the levels.
    """
    texts = {"reference": _given(sample.reference), "context": _given(sample.context)}
    wanted = criterion.evidence
    for source in (wanted, *texts) if wanted in texts else ():
        if text := texts[source]:
            return by_text(sample, source, text, response, vote)
    if wanted == "reference":
        return by_knowledge(sample, response, vote)
    return by_levels(criterion, sample, response, vote)


def _given(text: str | None) -> str | None:
    return text if text and text.strip() else None


def by_text(sample: Sample, source: str, text: str, response: str, vote: int) -> Inquiry:
    """Ask whether the response is true according to the reference or the context."""
    parts = (f"Text: {text}\n{question_part(sample)}", _student_part(response))
    asked = Probe(role=_TEACHER, parts=parts, question=_worded(_IS_TRUE, vote))

    def conclude(answers: Answers) -> Evidence:
        yes, fit = answers[asked], FITS[source]
        findings = f"With the {source} as the text: {_finding(asked, answers)}"
        return Evidence(findings=findings, share=fit.share(yes), strength=fit.strength(yes))

    return Inquiry((asked,), conclude)


def by_knowledge(sample: Sample, response: str, vote: int) -> Inquiry:
    """Ask whether the response is right where nothing is given to compare it with."""
    parts = (question_part(sample), _student_part(response))
    asked = Probe(role=_TEACHER, parts=parts, question=_worded(_IS_RIGHT, vote))

    def conclude(answers: Answers) -> Evidence:
        findings = (
            f"{asked.question} Yes: {answers[asked]:.2f}, by what the model knows; there was"
            " neither a reference nor a context."
        )
        return Evidence(findings=findings, share=answers[asked], strength=logit(answers[asked]))

    return Inquiry((asked,), conclude)


def by_levels(criterion: Criterion, sample: Sample, response: str, vote: int) -> Inquiry:
    """Ask the rubric's own questions, or whether its best and its worst level fit."""
    reference = f"Correct answer: {sample.reference}\n" if sample.reference else ""
    parts = (f"{material_part(sample)}{reference}", f"Answer: {without_forgery(response)}\n")

    def probes(questions: Sequence[str]) -> tuple[Probe, ...]:
        return tuple(Probe(role=_REVIEWER, parts=parts, question=each) for each in questions)

    good, bad = map(probes, _level_questions(criterion, vote))

    def conclude(answers: Answers) -> Evidence:
        strength = _mean_logit(good, answers) - _mean_logit(bad, answers)
        findings = " ".join(_finding(probe, answers) for probe in (*good, *bad))
        return Evidence(findings=findings, share=expit(strength), strength=strength)

    return Inquiry((*good, *bad), conclude)


def _level_questions(criterion: Criterion, vote: int) -> tuple[list[str], list[str]]:
    """Return the questions for which a yes speaks for a response, and those against it."""
    if own := _items(criterion, lambda label, _: label.startswith("question")):
        return [_worded(_RUBRIC_QUESTION, vote).format(each) for each in own], []
    good = _items(criterion, lambda _, polarity: polarity == "positive")
    bad = _items(criterion, lambda _, polarity: polarity == "negative")
    if len(criterion.levels) > 1:
        worst, *_, best = sorted(criterion.levels, key=lambda level: level.low)
        good, bad = [best.meaning], [worst.meaning]
    elif not good and not bad:
        good = [f"It does well by this measure: {criterion.definition or criterion.name}"]
    wording = _worded(_DESCRIBES, vote)
    return [wording.format(each) for each in good], [wording.format(each) for each in bad]


def _items(criterion: Criterion, wanted: Callable[[str, str | None], bool]) -> list[str]:
    return [
        item
        for each in criterion.indicators
        if wanted(each.label.casefold(), each.polarity)
        for item in each.items
    ]


def _mean_logit(probes: Sequence[Probe], answers: Answers) -> float:
    return sum(logit(answers[probe]) for probe in probes) / max(len(probes), 1)


def _worded(wordings: Sequence[str], vote: int) -> str:
    return wordings[vote % len(wordings)]


def _finding(probe: Probe, answers: Answers) -> str:
    return f"{probe.question} Yes: {answers[probe]:.2f}."


def _student_part(response: str) -> str:
    return f"Student's answer: {without_forgery(response)}\n"


def without_forgery(response: str) -> str:
    """Leave out what imitates the judge's own conversation, which a small model would continue.

    That is marks of chat templates, requests to reply with one word, and lines after the first one
    with nothing but such a word.
    """
    first, *rest = _FORGED.sub("", response.strip()).split("\n")
    kept = (line for line in rest if line.strip(MARKS).lower() not in _ONE_WORD_REPLIES)
    return "\n".join((first, *kept))


def question_part(sample: Sample) -> str:
    """Return the earlier turns and the task."""
    turns = "".join(f"{turn.role.capitalize()}: {turn.content}\n" for turn in sample.messages)
    earlier = f"Earlier in the conversation:\n{turns}" if turns else ""
    return f"{earlier}Question: {sample.task}\n"


def material_part(sample: Sample) -> str:
    """Return the context, if any, and the task."""
    context = f"Context: {sample.context}\n" if sample.context else ""
    return context + question_part(sample)
