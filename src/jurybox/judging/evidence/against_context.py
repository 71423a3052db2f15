"""Evidence from the context: is the answer right by it, as a whole and claim by claim?

The whole answer tells the plain cases. A single wrong detail in it hardly moves what the model
says of the whole, so each claim is also asked by itself, and the least supported one counts.
"""

from typing import Final

from jurybox.judging.evidence.inquiry import Answers, Evidence, Inquiry
from jurybox.judging.evidence.material import question_part
from jurybox.judging.evidence.probes import Probe
from jurybox.judging.evidence.statements import statements
from jurybox.judging.evidence.telling import logit, shown
from jurybox.sample import Sample

_TEACHER: Final = "You are a strict teacher."
_WHOLE: Final = (
    "Does the student's answer deserve full marks?",
    "Is the student's answer correct according to the text?",
    "Going by the text, would you mark the student's answer as right?",
)
_CLAIM: Final = "Is the student's answer correct according to the text?"

# Found on the development cases (docs/reference/embedded-judge.md), in log-odds: a claim torn from
# its answer is harder to read, so it counts half.
_OF_CLAIM: Final = 0.5
_FAITHFUL: Final = -0.75
_PLAINLY_RIGHT: Final = 1.0
_MOSTLY: Final = 0.5


def by_context(sample: Sample, source: str, response: str, vote: int) -> Inquiry:
    """Ask of the whole answer and of each of its claims whether the source bears it out."""
    head = f"Text: {source}\n{question_part(sample)}"
    whole = Probe(
        role=_TEACHER,
        head=head,
        body=f"Student's answer: {response}\n",
        question=_WHOLE[vote % len(_WHOLE)],
    )
    claims = {
        Probe(role=_TEACHER, head=head, body=f"Student's answer: {claim}\n", question=_CLAIM): claim
        for claim in statements(response)
    }
    return Inquiry(
        probes=(whole, *claims), conclude=lambda answers: _conclude(whole, claims, answers)
    )


def _conclude(whole: Probe, claims: dict[Probe, str], answers: Answers) -> Evidence:
    findings = [f"{whole.question} Yes: {shown(answers[whole])}."]
    findings += [
        f'Its claim "{claim}" alone: {shown(answers[probe])}.' for probe, claim in claims.items()
    ]
    of_whole = logit(answers[whole])
    least = min((logit(answers[probe]) for probe in claims), default=of_whole)
    strength = of_whole + _OF_CLAIM * least
    share = _share(of_whole, strength)
    return Evidence(findings=tuple(findings), share=share, strength=strength)


def _share(of_whole: float, strength: float) -> float:
    """An answer that is right as a whole with one doubtful claim is mostly faithful."""
    if strength >= _FAITHFUL:
        return 1.0
    return _MOSTLY if of_whole >= _PLAINLY_RIGHT else 0.0
