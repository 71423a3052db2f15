"""Evidence from a reference answer: is the answer right, and what of the reference does it give?

Whether it is right is asked twice: beside the reference, and without it. How plausible an answer
sounds without the reference is no merit, so most of it is taken off; what is left is what the
reference says of it. What was left out is told by words: a model of this size says yes to "does it
state everything?" whenever the rest is right, while the share of a statement's words that the
answer has, in whatever form, tells a partial answer from a full one.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from jurybox.judging.evidence.inquiry import Answers, Evidence, Inquiry
from jurybox.judging.evidence.material import question_part
from jurybox.judging.evidence.overlapping import Vocabulary
from jurybox.judging.evidence.probes import Probe
from jurybox.judging.evidence.statements import statements
from jurybox.judging.evidence.telling import expit, logit, shown
from jurybox.sample import Sample

_TEACHER: Final = "You are a strict teacher."
_WORDINGS: Final = (
    "Is the student's answer correct?",
    "Does the student's answer deserve full marks?",
    "Would you mark the student's answer as right?",
)

# Found on the development cases (docs/reference/embedded-judge.md): log-odds, and shares of words.
_PLAUSIBLE: Final = 0.6
_RIGHT: Final = 0.15
_SAID: Final = 0.34
_WITH_WORDS: Final = 0.05
_BOTTOM, _LEAST_PARTIAL, _MOST_PARTIAL, _TOP = 0.2, 0.3, 0.7, 0.8


def by_reference(sample: Sample, reference: str, response: str, vote: int) -> Inquiry:
    """Ask whether the answer is right, with and without the reference; look for its words."""
    beside = _probe(sample, f"Correct answer: {reference}\n", response, vote)
    alone = _probe(sample, "", response, vote)
    words = Vocabulary(response)
    said = {each: words.coverage(each) for each in statements(reference)}
    return Inquiry(
        probes=(beside, alone), conclude=lambda answers: _conclude(beside, alone, said, answers)
    )


def _probe(sample: Sample, reference: str, response: str, vote: int) -> Probe:
    return Probe(
        role=_TEACHER,
        head=f"{question_part(sample)}{reference}",
        body=f"Student's answer: {response}\n",
        question=_WORDINGS[vote % len(_WORDINGS)],
    )


def _conclude(beside: Probe, alone: Probe, said: Mapping[str, float], answers: Answers) -> Evidence:
    least = min(said.values(), default=1.0)
    sure = logit(answers[beside])
    right = sure - _PLAUSIBLE * logit(answers[alone]) + least
    asked = (
        f"Beside the reference: {beside.question} Yes: {shown(answers[beside])}; without it:"
        f" {shown(answers[alone])}."
    )
    findings = [asked]
    findings += [
        f'Of the reference: "{each}" ({share:.0%} of its words are in the answer).'
        for each, share in said.items()
    ]
    given = [share + _WITH_WORDS * sure >= _SAID for share in said.values()]
    return Evidence(findings=tuple(findings), share=_share(right, given), strength=right)


def _share(right: float, given: Sequence[bool]) -> float:
    """Put a wrong answer at the bottom, one that gives every statement at the top.

    In between is one that is right as far as it goes. Within each of the three, the surer the
    model is the higher: a scale with many points has room for it, one with three has none.
    """
    sure = expit(right - _RIGHT)
    if right < _RIGHT:
        return _BOTTOM * 2 * sure
    if all(given):
        return 1 - 2 * (1 - _TOP) * (1 - sure)
    return min(max(sum(given) / len(given), _LEAST_PARTIAL), _MOST_PARTIAL)


def by_knowledge(sample: Sample, response: str, vote: int) -> Inquiry:
    """Ask whether the answer is right where nothing is given to hold it against."""
    asked = _probe(sample, "", response, vote)
    return Inquiry(probes=(asked,), conclude=lambda answers: _known(asked, answers))


def _known(asked: Probe, answers: Answers) -> Evidence:
    finding = (
        f"{asked.question} Yes: {shown(answers[asked])}, by what the model knows; there was"
        " neither a reference nor a context."
    )
    strength = logit(answers[asked])
    return Evidence(findings=(finding,), share=answers[asked], strength=strength)
