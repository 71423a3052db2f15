"""What was tried for the embedded judge, and what each way of asking gives.

A variant turns a case and an answer into a figure that should be higher for good answers. For each
it prints the area under the ROC curve (how often a good answer gets the higher figure than a bad
one, over all pairs of answers) and the best share of right verdicts that any threshold gives:
an optimistic figure, since the threshold is chosen on the same cases.
"""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from judge import CASES, Case, cases

from jurybox.judging.evidence.overlapping import Vocabulary
from jurybox.judging.evidence.probability import probabilities
from jurybox.judging.evidence.probes import Probe
from jurybox.judging.evidence.statements import statements
from jurybox.judging.evidence.telling import logit
from jurybox.judging.flow import Defect
from jurybox.judging.panel import Seat
from jurybox.models.local.catalogue import default_judge
from jurybox.rubric.model import Generation
from jurybox.running.ports import Model
from jurybox.wiring import read_settings
from jurybox.wiring.models import build_models

TEACHER = "You are a strict teacher."
CHECKER = "You are a careful checker of facts."
Ask = Callable[[Probe], float]
Variant = Callable[[Ask, Case, str], float]


def graded(question: str, sign: float = 1.0) -> Variant:
    """Ask a teacher about a student's answer beside the correct one."""

    def figure(ask: Ask, case: Case, answer: str) -> float:
        head = f"Question: {case['task']}\nCorrect answer: {case['reference']}\n"
        body = f"Student's answer: {answer}\n"
        return sign * ask(Probe(role=TEACHER, head=head, body=body, question=question))

    return figure


def alone(ask: Ask, case: Case, answer: str) -> float:
    """Ask a teacher about a student's answer without the correct one: how plausible is it?"""
    head, body = f"Question: {case['task']}\n", f"Student's answer: {answer}\n"
    question = "Is the student's answer correct?"
    return ask(Probe(role=TEACHER, head=head, body=body, question=question))


def checked(question: str, sign: float = 1.0) -> Variant:
    """Ask a checker about an answer beside a reference."""

    def figure(ask: Ask, case: Case, answer: str) -> float:
        head = f"Question: {case['task']}\nReference: {case['reference']}\n"
        body = f"Answer: {answer}\n"
        return sign * ask(Probe(role=CHECKER, head=head, body=body, question=question))

    return figure


def fact_by_fact(ask: Ask, case: Case, answer: str) -> float:
    """Ask for each statement of the reference; the least likely counts."""
    head = f"Question: {case['task']}\nReference: {case['reference']}\n"
    body = f"Answer: {answer}\n"
    return min(
        ask(
            Probe(
                role=CHECKER,
                head=head,
                body=body,
                question=f'Does the answer say, in its own words, that: "{fact}"?',
            )
        )
        for fact in statements(case["reference"])
    )


def words_of_facts(_: Ask, case: Case, answer: str) -> float:
    """Take the least share of a statement's words that the answer has; no model."""
    words = Vocabulary(answer)
    return min(words.coverage(fact) for fact in statements(case["reference"]))


def by_text(question: str) -> Variant:
    """Ask a teacher about a student's answer to a question on a text."""

    def figure(ask: Ask, case: Case, answer: str) -> float:
        head = f"Text: {case['context']}\nQuestion: {case['task']}\n"
        body = f"Student's answer: {answer}\n"
        return ask(Probe(role=TEACHER, head=head, body=body, question=question))

    return figure


def claim_by_claim(ask: Ask, case: Case, answer: str) -> float:
    """Ask for each claim of the answer; the least supported counts."""
    head = f"Text: {case['context']}\nQuestion: {case['task']}\n"
    question = "Is the student's answer correct according to the text?"
    return min(
        ask(Probe(role=TEACHER, head=head, body=f"Student's answer: {claim}\n", question=question))
        for claim in statements(answer)
    )


def words_of_context(_: Ask, case: Case, answer: str) -> float:
    """Take the share of the answer's words that the context has; no model."""
    return Vocabulary(f"{case['context']} {case['task']}").coverage(answer)


def total(*parts: tuple[float, Variant]) -> Variant:
    """Add up several variants."""
    return lambda ask, case, answer: sum(
        weight * variant(ask, case, answer) for weight, variant in parts
    )


CORRECT = graded("Is the student's answer correct?")
AGREES = checked("Does the answer agree with the reference?")
MARKS = by_text("Does the student's answer deserve full marks?")
REFERENCE: dict[str, Variant] = {
    "agrees with the reference?": AGREES,
    "states everything?": checked("Does the answer state everything that the reference states?"),
    "contradicts it? (no)": checked("Does the answer contradict the reference in any point?", -1),
    "teacher: correct?": CORRECT,
    "teacher: full marks?": graded("Does the student's answer deserve full marks?"),
    "teacher: a mistake? (no)": graded("Is there a mistake in the student's answer?", -1),
    "fact by fact, the least": fact_by_fact,
    "words of each fact, no model": words_of_facts,
    "teacher + agrees": total((0.5, CORRECT), (0.5, AGREES)),
    "teacher, without the reference": alone,
    "teacher - 0.6 without": total((1.0, CORRECT), (-0.6, alone)),
    "the same + words (used)": total((1.0, CORRECT), (-0.6, alone), (1.0, words_of_facts)),
}
GROUNDING: dict[str, Variant] = {
    "correct by the text?": by_text("Is the student's answer correct according to the text?"),
    "says only what the text says?": by_text(
        "Does the student's answer say only what the text says?"
    ),
    "full marks?": MARKS,
    "claim by claim, the least": claim_by_claim,
    "words of the context, no model": words_of_context,
    "full marks + claims (used)": total((1.0, MARKS), (0.5, claim_by_claim)),
}
KINDS = {
    "reference": (REFERENCE, "full", "wrong"),
    "grounding": (GROUNDING, "grounded", "unfaithful"),
}


def area(good: Sequence[float], bad: Sequence[float]) -> float:
    """Return how often a good answer's figure is the higher one; equal ones count half."""
    wins = sum((a > b) + (a == b) / 2 for a in good for b in bad)
    return wins / (len(good) * len(bad))


def best_share(good: Sequence[float], bad: Sequence[float]) -> float:
    """Return the share of right verdicts at the best threshold."""
    count = len(good) + len(bad)
    return max((sum(a >= t for a in good) + sum(b < t for b in bad)) / count for t in (*good, *bad))


class Oracle:
    """Asks a model, each question once."""

    def __init__(self, name: str, model: Model) -> None:
        self._seat = Seat(vote=0, judge=name, generation=Generation(), way="evidence")
        self._model = model
        self._known: dict[Probe, float] = {}
        self._loop = asyncio.new_event_loop()

    def ask(self, probe: Probe) -> float:
        """Return the log-odds of a yes."""
        if probe not in self._known:
            request = probe.request(self._seat)
            reply = self._loop.run_until_complete(self._model.complete(request))
            read = probabilities(reply, probe.words)
            self._known[probe] = 0.0 if isinstance(read, Defect) else logit(read[probe.words[0]])
        return self._known[probe]

    def close(self) -> None:
        """Let go of the model."""
        self._loop.run_until_complete(self._model.aclose())
        self._loop.close()


def main() -> None:
    """Try all variants and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default=f"local/{default_judge().name}")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--cases", type=Path, default=CASES)
    args = parser.parse_args()
    oracle = Oracle(args.judge, build_models([args.judge], read_settings())[args.judge])
    sys.stdout.write(f"{args.judge}\n{'':12}{'':34}{'AUC':>8}{'easy':>8}{'near':>8}{'best':>8}\n")
    for kind, (variants, good, bad) in KINDS.items():
        rows = cases(args.cases, kind, args.limit)
        for name, variant in variants.items():
            figures = {
                side: [(row["difficulty"], variant(oracle.ask, row, row[side])) for row in rows]
                for side in (good, bad)
            }
            cells = [
                area(*([f for d, f in figures[s] if which in d] for s in (good, bad)))
                for which in ("", "easy", "near-miss")
            ]
            cells.append(best_share(*([f for _, f in figures[side]] for side in (good, bad))))
            shown = "".join(f"{cell:8.3f}" for cell in cells)
            sys.stdout.write(f"{kind:12}{name:34}{shown}\n")
            sys.stdout.flush()
    oracle.close()


if __name__ == "__main__":
    main()
