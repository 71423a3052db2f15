"""Holding an answer against a right one: asked twice, beside the right answer and without it.

How plausible an answer sounds by itself is no merit, so part of it is taken off; what is left is
what the right answer says of it.
"""

from typing import Final

import msgspec

from jurybox.judging.evidence.inquiry import Answers
from jurybox.judging.evidence.material import TEACHER, answer_part, question_part, solution_part
from jurybox.judging.evidence.probes import Probe
from jurybox.judging.evidence.telling import logit, shown
from jurybox.sample import Sample

_WORDINGS: Final = (
    "Is the student's answer correct?",
    "Does the student's answer deserve full marks?",
    "Would you mark the student's answer as right?",
)


class AgainstAnswer(msgspec.Struct, frozen=True):
    """The same question twice: ``beside`` a right answer, and without one, ``alone``."""

    beside: Probe
    alone: Probe

    def told(self, answers: Answers) -> str:
        """Return the question and both of its answers."""
        return (
            f"{self.beside.question} Yes: {shown(answers[self.beside])}; without it:"
            f" {shown(answers[self.alone])}."
        )

    def agreement(self, answers: Answers, plausible: float) -> float:
        """Return how far the right answer bears it out, in log-odds.

        ``plausible`` is the part of what it gets without one that doesn't count.
        """
        return logit(answers[self.beside]) - plausible * logit(answers[self.alone])


def against_answer(sample: Sample, right: str, response: str, vote: int) -> AgainstAnswer:
    """Return the questions that hold a response against a right answer."""
    return AgainstAnswer(
        _probe(sample, solution_part(right), response, vote), is_right(sample, response, vote)
    )


def is_right(sample: Sample, response: str, vote: int) -> Probe:
    """Return the question whether a response is right, by what the model knows."""
    return _probe(sample, "", response, vote)


def _probe(sample: Sample, solution: str, response: str, vote: int) -> Probe:
    return Probe(
        role=TEACHER,
        opening=question_part(sample),
        head=solution,
        body=answer_part(response),
        question=_WORDINGS[vote % len(_WORDINGS)],
    )
