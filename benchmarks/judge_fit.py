"""Fit the numbers with which the embedded judge turns a yes into a score.

Reads `judge_cases/answers.jsonl`, which has the probability of a yes for the responses of the
development cases, and prints the table `FITS` of `jurybox.judging.evidence_votes`: a
logistic regression over the log-odds, in which right and wrong responses weigh the same. It also
prints the areas under the ROC curve, and how many responses are called right if their case is left
out of the fit. `--ask N` first asks about N more cases of each kind.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from judge import CASES, Case, cases
from numpy.typing import NDArray

from jurybox.engine.driver import Callers, drive
from jurybox.judging.evidence_votes import by_text, inquire, logit
from jurybox.judging.flow import Answer
from jurybox.judging.protocol import Seat
from jurybox.models.local.files import default_judge
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Response, Sample
from jurybox.suite.model_spec import ModelSpec
from jurybox.wiring import ModelBuilder

ANSWERS = CASES / "answers.jsonl"
# Whether each response is right.
SIDES = {
    "reference": {"wrong": False, "partial": True, "full": True, "paraphrase": True},
    "context": {"unfaithful": False, "grounded": True},
}
FILES = {"reference": "reference", "context": "grounding"}
RIDGE = 0.1
STEPS = 30

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def fit(x: Floats, right: Flags) -> Floats:
    """Return the weight and the intercept, by Newton's method."""
    design = np.column_stack([x, np.ones(len(x))])
    balance = np.where(right, 0.5 / right.mean(), 0.5 / (1 - right.mean()))
    penalty = np.diag([RIDGE, 0.0])
    found = np.zeros(2)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-design @ found))
        slope = design.T @ (balance * (chance - right)) + penalty @ found
        curve = (design.T * (balance * chance * (1 - chance))) @ design + penalty
        found -= np.linalg.solve(curve, slope)
    return found


def left_out(x: Floats, right: Flags, groups: Sequence[str]) -> Flags:
    """Return whether each response is called right by the fit to the other cases."""
    found = np.zeros(len(x), bool)
    names = np.array(groups)
    for name in dict.fromkeys(groups):
        case = names == name
        weight, intercept = fit(x[~case], right[~case])
        found[case] = weight * x[case] + intercept >= 0
    return found


def area(good: Floats, bad: Floats) -> float:
    """Return how often a good response has the higher value; equal ones count half."""
    ahead = good[:, None] - bad[None, :]
    return float(((ahead > 0) + (ahead == 0) / 2).mean())


def describe(source: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Fit one row of the table, and yield it with how good it is."""
    sides = SIDES[source]
    known = [row for row in rows if row["side"] in sides]
    x = np.array([logit(row["yes"]) for row in known])
    right = np.array([sides[row["side"]] for row in known])
    yield f'"{source}": Fit({", ".join(f"{each:.2f}" for each in fit(x, right))})'
    found = left_out(x, right, [row["id"] for row in known])
    for side in sides:
        of_side = np.array([row["side"] == side for row in known])
        yield f"  {side}: {found[of_side].sum()} of {of_side.sum()} are called right"
    yield f"  AUC: {area(x[right], x[~right]):.3f}"


def read() -> list[dict[str, Any]]:
    """Return the answers that are known."""
    return [json.loads(line) for line in ANSWERS.read_text().splitlines()]


async def ask(judge: str, source: str, rows: Sequence[Case]) -> None:
    """Ask about all responses of some cases in the first wording, and keep the answers."""
    seat = Seat(vote=0, judge=judge, generation=Generation())
    model = ModelBuilder().build(ModelSpec(model=judge))
    for case in rows:
        for side in SIDES[source]:
            if not case.get(side):
                continue
            sample = Sample(task=case["task"], response=Response(text=case[side]))
            (probe,) = by_text(sample, source, case[source], case[side]).good
            readings = await drive(inquire(seat, [probe]), Callers().route({judge: model}))
            if not isinstance(readings, Answer):
                sys.exit(f"{case['id']}: {readings.reason}")
            row = {"id": case["id"], "side": side, "yes": round(readings.value[probe], 6)}
            with ANSWERS.open("a") as file:
                file.write(json.dumps(row) + "\n")
    await model.aclose()


def main() -> None:
    """Ask the questions, then fit and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default=f"local/{default_judge().name}")
    parser.add_argument("--ask", type=int, default=0, metavar="N")
    args = parser.parse_args()
    known = {row["id"] for row in read()}
    for source, kind in FILES.items():
        new = [each for each in cases(CASES, kind, None) if each["id"] not in known]
        asyncio.run(ask(args.judge, source, new[: args.ask]))
    rows = read()
    for source in SIDES:
        sys.stdout.writelines(f"{line}\n" for line in describe(source, rows))


if __name__ == "__main__":
    main()
