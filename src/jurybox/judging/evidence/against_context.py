"""Evidence from the context: does it bear out the answer, as a whole and claim by claim?

Two things are asked. Does the answer agree with what the model itself answers by the context? That
tells the plain cases, and single details of short answers. And is it right by the context, the
whole and each of its claims? The least of those counts: a single wrong detail hardly moves what the
model says of the whole.
"""

from typing import Final

from jurybox.judging.evidence.against_answer import AgainstAnswer, against_answer
from jurybox.judging.evidence.inquiry import Answers, Evidence, Inquiry
from jurybox.judging.evidence.material import TEACHER, answer_part, question_part, text_part
from jurybox.judging.evidence.own_answer import OwnAnswer
from jurybox.judging.evidence.probes import Probe
from jurybox.judging.evidence.statements import statements
from jurybox.judging.evidence.telling import answered, decided, logit, shown
from jurybox.sample import Sample

_WHOLE: Final = (
    "Does the student's answer deserve full marks?",
    "Is the student's answer correct according to the text?",
    "Going by the text, would you mark the student's answer as right?",
)
_CLAIM: Final = "Is the student's answer correct according to the text?"

# Found on the development cases (docs/reference/embedded-judge.md), in log-odds.
_PLAUSIBLE: Final = 0.5
_OF_LEAST: Final = 0.5
_FAITHFUL: Final = -1.1


def by_context(sample: Sample, own: OwnAnswer, response: str, vote: int) -> Inquiry:
    """Ask of the answer and of each of its claims whether the source bears it out."""
    asked = against_answer(sample, own.text, response, vote)
    head = f"{text_part(own.source)}{question_part(sample)}"

    def probe(text: str, question: str) -> Probe:
        return Probe(role=TEACHER, head=head, body=answer_part(text), question=question)

    whole = probe(response, _WHOLE[vote % len(_WHOLE)])
    pieces = statements(response)
    # A single claim is the whole again.
    claims = {probe(claim, _CLAIM): claim for claim in pieces} if len(pieces) > 1 else {}
    return Inquiry(
        probes=(whole, *claims, asked.beside, asked.alone),
        conclude=lambda answers: _conclude(own.text, asked, whole, claims, answers),
    )


def _conclude(
    own: str, asked: AgainstAnswer, whole: Probe, claims: dict[Probe, str], answers: Answers
) -> Evidence:
    findings = [
        f'By the text the model itself answers: "{own}" Beside that: {asked.told(answers)}',
        f"Beside the text: {answered(whole.question, answers[whole])}",
    ]
    findings += [
        f'Its claim "{claim}" alone: {shown(answers[probe])}.' for probe, claim in claims.items()
    ]
    least = min(logit(answers[probe]) for probe in (whole, *claims))
    strength = asked.agreement(answers, _PLAUSIBLE) + _OF_LEAST * least
    share = decided(strength - _FAITHFUL)
    return Evidence(findings=tuple(findings), share=share, strength=strength)
