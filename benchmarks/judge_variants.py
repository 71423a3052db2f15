"""What was tried for the embedded judge, and what each way of asking gives.

A variant turns a case and an answer into a figure that should be higher for good answers. For each
it prints the area under the ROC curve (how often a good answer gets the higher figure than a bad
one, over all pairs of answers) and the best share of right verdicts that any threshold gives:
an optimistic figure, since the threshold is chosen on the same cases.
"""

import argparse
import asyncio
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from judge import CASES, DIFFICULTIES, Case, cases

from jurybox.engine.driver import drive_sync
from jurybox.engine.ports import Model
from jurybox.judging.evidence.questions import (
    TEACHER,
    Probe,
    logit,
    probabilities,
    solution_part,
    text_part,
)
from jurybox.judging.evidence.sources import OwnAnswer, own_answer
from jurybox.judging.evidence.text_overlap import Vocabulary, statements
from jurybox.judging.flow import Defect, ModelReply, ModelRequest
from jurybox.judging.protocol import Seat
from jurybox.models.local.files import default_judge
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Response, Sample
from jurybox.suite.model_spec import ModelSpec
from jurybox.wiring import ModelBuilder, read_settings

CHECKER = "You are a careful checker of facts."
IS_CORRECT = "Is the student's answer correct?"
Head = Callable[["Oracle", Case], str]


class Oracle:
    """Asks a model, each question once."""

    def __init__(self, name: str, model: Model) -> None:
        self._seat = Seat(vote=0, judge=name, generation=Generation(), way="evidence")
        self._model = model
        self._known: dict[Probe, float] = {}
        self._own: dict[str, str] = {}
        self._loop = asyncio.new_event_loop()

    def ask(self, probe: Probe) -> float:
        """Return the log-odds of a yes."""
        if probe not in self._known:
            read = probabilities(self._reply(probe.request(self._seat)), probe.words)
            self._known[probe] = 0.0 if isinstance(read, Defect) else logit(read[probe.words[0]])
        return self._known[probe]

    def own(self, case: Case) -> str:
        """Return what the model itself answers by the context."""
        if case["id"] not in self._own:
            sample = Sample(task=case["task"], response=Response(text=""))
            flow = own_answer(self._seat, sample, case["context"])
            found = drive_sync(flow, self._reply)
            self._own[case["id"]] = found.text if isinstance(found, OwnAnswer) else ""
        return self._own[case["id"]]

    def close(self) -> None:
        """Let go of the model."""
        self._loop.run_until_complete(self._model.aclose())
        self._loop.close()

    def _reply(self, request: ModelRequest) -> ModelReply:
        return self._loop.run_until_complete(self._model.complete(request))


Variant = Callable[[Oracle, Case, str], float]


def bare(_: Oracle, case: Case) -> str:
    """Show the question alone."""
    return f"Question: {case['task']}\n"


def solved(oracle: Oracle, case: Case) -> str:
    """Show the question and the correct answer."""
    return bare(oracle, case) + solution_part(case["reference"])


def referenced(oracle: Oracle, case: Case) -> str:
    """Show the question and the reference."""
    return f"{bare(oracle, case)}Reference: {case['reference']}\n"


def by_text(oracle: Oracle, case: Case) -> str:
    """Show the text and the question."""
    return text_part(case["context"]) + bare(oracle, case)


def by_own(oracle: Oracle, case: Case) -> str:
    """Show the question and what the model itself answers by the text."""
    return bare(oracle, case) + solution_part(oracle.own(case))


def graded(head: Head, question: str = IS_CORRECT, sign: float = 1.0) -> Variant:
    """Ask a teacher about a student's answer."""
    return asked(TEACHER, "Student's answer", head, question, sign)


def checked(question: str, sign: float = 1.0) -> Variant:
    """Ask a checker about an answer beside a reference."""
    return asked(CHECKER, "Answer", referenced, question, sign)


def asked(role: str, name: str, head: Head, question: str, sign: float) -> Variant:
    """Ask one question about the whole answer."""

    def figure(oracle: Oracle, case: Case, answer: str) -> float:
        body = f"{name}: {answer}\n"
        return sign * oracle.ask(
            Probe(role=role, head=head(oracle, case), body=body, question=question)
        )

    return figure


def fact_by_fact(oracle: Oracle, case: Case, answer: str) -> float:
    """Ask for each statement of the reference; the least likely counts."""
    question = 'Does the answer say, in its own words, that: "{}"?'
    facts = statements(case["reference"])
    return min(checked(question.format(fact))(oracle, case, answer) for fact in facts)


def words_of_facts(_: Oracle, case: Case, answer: str) -> float:
    """Take the least share of a statement's words that the answer has; no model."""
    words = Vocabulary(answer)
    return min(words.coverage(fact) for fact in statements(case["reference"]))


def claim_by_claim(oracle: Oracle, case: Case, answer: str) -> float:
    """Ask for each claim of the answer; the least supported counts."""
    return min(BY_TEXT(oracle, case, claim) for claim in statements(answer))


def least_of_all(oracle: Oracle, case: Case, answer: str) -> float:
    """Take the least of the whole and its claims; a single claim is the whole."""
    whole = MARKS(oracle, case, answer)
    claims = len(statements(answer))
    return min(whole, claim_by_claim(oracle, case, answer)) if claims > 1 else whole


def words_of_context(_: Oracle, case: Case, answer: str) -> float:
    """Take the share of the answer's words that the context has; no model."""
    return Vocabulary(f"{case['context']} {case['task']}").coverage(answer)


def total(*parts: tuple[float, Variant]) -> Variant:
    """Add up several variants."""
    return lambda oracle, case, answer: sum(
        weight * variant(oracle, case, answer) for weight, variant in parts
    )


CORRECT, ALONE, OWN = graded(solved), graded(bare), graded(by_own)
AGREES = checked("Does the answer agree with the reference?")
BY_TEXT = graded(by_text, "Is the student's answer correct according to the text?")
MARKS = graded(by_text, "Does the student's answer deserve full marks?")
REFERENCE: dict[str, Variant] = {
    "agrees with the reference?": AGREES,
    "states everything?": checked("Does the answer state everything that the reference states?"),
    "contradicts it? (no)": checked("Does the answer contradict the reference in any point?", -1),
    "teacher: correct?": CORRECT,
    "teacher: full marks?": graded(solved, "Does the student's answer deserve full marks?"),
    "teacher: a mistake? (no)": graded(solved, "Is there a mistake in the student's answer?", -1),
    "fact by fact, the least": fact_by_fact,
    "words of each fact, no model": words_of_facts,
    "teacher + agrees": total((0.5, CORRECT), (0.5, AGREES)),
    "teacher, without the reference": ALONE,
    "teacher - 0.6 without": total((1.0, CORRECT), (-0.6, ALONE)),
    "the same + words (used)": total((1.0, CORRECT), (-0.6, ALONE), (1.0, words_of_facts)),
}
GROUNDING: dict[str, Variant] = {
    "correct by the text?": BY_TEXT,
    "says only what the text says?": graded(
        by_text, "Does the student's answer say only what the text says?"
    ),
    "full marks?": MARKS,
    "claim by claim, the least": claim_by_claim,
    "words of the context, no model": words_of_context,
    "full marks + claims": total((1.0, MARKS), (0.5, claim_by_claim)),
    "beside the model's own answer": OWN,
    "own - 0.5 without": total((1.0, OWN), (-0.5, ALONE)),
    "the same + the least (used)": total((1.0, OWN), (-0.5, ALONE), (0.5, least_of_all)),
}
KINDS = {
    "reference": (REFERENCE, "full", "wrong"),
    "grounding": (GROUNDING, "grounded", "unfaithful"),
}


def area(good: Sequence[float], bad: Sequence[float]) -> float:
    """Return how often a good answer's figure is the higher one; equal ones count half."""
    wins = sum((a > b) + (a == b) / 2 for a in good for b in bad)
    return wins / (len(good) * len(bad)) if good and bad else math.nan


def best_share(good: Sequence[float], bad: Sequence[float]) -> float:
    """Return the share of right verdicts at the best threshold."""
    count = len(good) + len(bad)
    return max((sum(a >= t for a in good) + sum(b < t for b in bad)) / count for t in (*good, *bad))


def main() -> None:
    """Try all variants and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default=f"local/{default_judge().name}")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--cases", type=Path, default=CASES)
    args = parser.parse_args()
    heads = "".join(f"{each:>10}" for each in ("AUC", *DIFFICULTIES, "best"))
    oracle = Oracle(args.judge, ModelBuilder(read_settings()).build(ModelSpec(model=args.judge)))
    sys.stdout.write(f"{args.judge}\n{'':46}{heads}\n")
    for kind, (variants, good, bad) in KINDS.items():
        rows = cases(args.cases, kind, args.limit)
        for name, variant in variants.items():
            figures = {
                side: [(row["difficulty"], variant(oracle, row, row[side])) for row in rows]
                for side in (good, bad)
            }
            cells = [
                area(*([f for d, f in figures[s] if which in d] for s in (good, bad)))
                for which in ("", *DIFFICULTIES)
            ]
            cells.append(best_share(*([f for _, f in figures[side]] for side in (good, bad))))
            shown = "".join(f"{cell:10.3f}" for cell in cells)
            sys.stdout.write(f"{kind:12}{name:34}{shown}\n")
            sys.stdout.flush()
    oracle.close()


if __name__ == "__main__":
    main()
