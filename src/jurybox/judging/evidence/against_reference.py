"""Evidence from a reference answer: is the answer right, and what of the reference does it give?

Whether it is right, the model is asked. What was left out is told by words: a model of this size
says yes to "does it state everything?" whenever the rest is right, while the share of a statement's
words that the answer has, in whatever form, tells a partial answer from a full one.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from jurybox.judging.evidence.against_answer import AgainstAnswer, against_answer, is_right
from jurybox.judging.evidence.inquiry import Answers, Evidence, Inquiry
from jurybox.judging.evidence.overlapping import Vocabulary
from jurybox.judging.evidence.probes import Probe
from jurybox.judging.evidence.statements import statements
from jurybox.judging.evidence.telling import decided, logit, shown
from jurybox.sample import Sample

# Found on the development cases (docs/reference/embedded-judge.md): log-odds, and shares of words.
_PLAUSIBLE: Final = 0.6
_SAID: Final = 0.34
_WITH_WORDS: Final = 0.05
_LEAST_PARTIAL, _MOST_PARTIAL = 0.3, 0.7


def by_reference(sample: Sample, reference: str, response: str, vote: int) -> Inquiry:
    """Ask whether the answer is right, with and without the reference; look for its words."""
    asked = against_answer(sample, reference, response, vote)
    words = Vocabulary(response)
    said = {each: words.coverage(each) for each in statements(reference)}
    return Inquiry(
        probes=(asked.beside, asked.alone),
        conclude=lambda answers: _conclude(asked, said, answers),
    )


def _conclude(asked: AgainstAnswer, said: Mapping[str, float], answers: Answers) -> Evidence:
    right = asked.agreement(answers, _PLAUSIBLE) + min(said.values(), default=1.0)
    findings = [f"Beside the reference: {asked.told(answers)}"]
    findings += [
        f'Of the reference: "{each}" ({share:.0%} of its words are in the answer).'
        for each, share in said.items()
    ]
    sure = logit(answers[asked.beside])
    given = [share + _WITH_WORDS * sure >= _SAID for share in said.values()]
    return Evidence(findings=tuple(findings), share=_share(right, given), strength=right)


def _share(right: float, given: Sequence[bool]) -> float:
    """Put a wrong answer at the bottom, one that gives every statement at the top.

    In between is one that is right as far as it goes.
    """
    if right < 0 or all(given):
        return decided(right)
    return min(max(sum(given) / len(given), _LEAST_PARTIAL), _MOST_PARTIAL)


def by_knowledge(sample: Sample, response: str, vote: int) -> Inquiry:
    """Ask whether the answer is right where nothing is given to hold it against."""
    asked = is_right(sample, response, vote)
    return Inquiry(probes=(asked,), conclude=lambda answers: _known(asked, answers))


def _known(asked: Probe, answers: Answers) -> Evidence:
    finding = (
        f"{asked.question} Yes: {shown(answers[asked])}, by what the model knows; there was"
        " neither a reference nor a context."
    )
    strength = logit(answers[asked])
    return Evidence(findings=(finding,), share=answers[asked], strength=strength)
