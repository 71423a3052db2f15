"""Fit the numbers with which the embedded judge turns a yes into a score.

Reads `judge_cases/answers.jsonl`, which has the probability of a yes for the responses of the
development cases, and prints the table `FITS` of `jurybox.judging.evidence.sources`: a logistic
regression over the log-odds with one weight and two intercepts, for more than the bottom of the
scale and for its top. For either, both outcomes weigh the same. It also prints the areas under the
ROC curve, and the levels that responses get if their case is left out of the fit. `--ask N` first
asks about N more cases of each kind.
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
from jurybox.judging.evidence.questions import Readings, inquire, logit
from jurybox.judging.evidence.sources import by_text
from jurybox.judging.protocol import Seat
from jurybox.models.local.files import default_judge
from jurybox.rubric.rubric_model import Generation
from jurybox.sample import Response, Sample
from jurybox.suite.model_spec import ModelSpec
from jurybox.wiring import ModelBuilder, read_settings

ANSWERS = CASES / "answers.jsonl"
# What each response deserves: the bottom of the scale, its middle or its top.
BOTTOM, MIDDLE, TOP = range(3)
LEVELS = {
    "reference": {"wrong": BOTTOM, "partial": MIDDLE, "full": TOP, "paraphrase": TOP},
    "context": {"unfaithful": BOTTOM, "grounded": TOP},
}
FILES = {"reference": "reference", "context": "grounding"}
RIDGE = 0.1
STEPS = 30

Floats = NDArray[np.float64]
Levels = NDArray[np.int_]


def fit(x: Floats, level: Levels) -> Floats:
    """Return the weight and both intercepts, by Newton's method."""
    zero, one = np.zeros(len(x)), np.ones(len(x))
    design = np.vstack([np.column_stack([x, one, zero]), np.column_stack([x, zero, one])])
    y, balance = np.concatenate([level >= MIDDLE, level >= TOP]), np.ones(2 * len(x))
    for half in (slice(0, len(x)), slice(len(x), None)):
        share = y[half].mean()
        balance[half] = np.where(y[half], 0.5 / share, 0.5 / (1 - share))
    penalty = np.diag([RIDGE, 0.0, 0.0])
    found = np.zeros(3)
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-design @ found))
        slope = design.T @ (balance * (chance - y)) + penalty @ found
        curve = (design.T * (balance * chance * (1 - chance))) @ design + penalty
        found -= np.linalg.solve(curve, slope)
    return found


def left_out(x: Floats, level: Levels, groups: Sequence[str]) -> Levels:
    """Return the level of each response by the fit to the other cases."""
    found = np.zeros(len(x), int)
    names = np.array(groups)
    for name in dict.fromkeys(groups):
        case = names == name
        weight, low, high = fit(x[~case], level[~case])
        is_more, is_top = weight * x[case] + low >= 0, weight * x[case] + high >= 0
        found[case] = np.where(is_more, np.where(is_top, TOP, MIDDLE), BOTTOM)
    return found


def area(good: Floats, bad: Floats) -> float:
    """Return how often a good response has the higher value; equal ones count half."""
    ahead = good[:, None] - bad[None, :]
    return float(((ahead > 0) + (ahead == 0) / 2).mean())


def describe(source: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Fit one row of the table, and yield it with how good it is."""
    levels = LEVELS[source]
    known = [row for row in rows if row["side"] in levels]
    x = np.array([logit(row["yes"]) for row in known])
    level = np.array([levels[row["side"]] for row in known])
    yield f'"{source}": Fit({", ".join(f"{each:.2f}" for each in fit(x, level))})'
    found = left_out(x, level, [row["id"] for row in known])
    for side, wanted in levels.items():
        of_side = np.array([row["side"] == side for row in known])
        if of_side.any():
            counts = [int((found[of_side] == each).sum()) for each in range(3)]
            yield f"  {side}: bottom, middle, top {counts}, should be {wanted}"
    for name, least in (("more than the bottom", MIDDLE), ("the top", TOP)):
        yield f"  AUC of {name}: {area(x[level >= least], x[level < least]):.3f}"


def read() -> list[dict[str, Any]]:
    """Return the answers that are known."""
    return [json.loads(line) for line in ANSWERS.read_text().splitlines()]


async def ask(judge: str, source: str, rows: Sequence[Case]) -> None:
    """Ask about all responses of some cases in the first wording, and keep the answers."""
    seat = Seat(vote=0, judge=judge, generation=Generation(), way="evidence")
    model = ModelBuilder(read_settings()).build(ModelSpec(model=judge))
    for case in rows:
        for side in LEVELS[source]:
            if not case.get(side):
                continue
            sample = Sample(task=case["task"], response=Response(text=case[side]))
            (probe,) = by_text(sample, source, case[source], case[side], 0).probes
            readings = await drive(inquire(seat, [probe]), Callers().route({judge: model}))
            if not isinstance(readings, Readings):
                sys.exit(f"{case['id']}: {readings.reason}")
            row = {"id": case["id"], "side": side, "yes": round(readings.answers[probe], 6)}
            with ANSWERS.open("a") as file:
                file.write(json.dumps(row) + "\n")
    await model.aclose()


def main() -> None:
    """Ask what is wanted, then fit and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default=f"local/{default_judge().name}")
    parser.add_argument("--ask", type=int, default=0, metavar="N")
    args = parser.parse_args()
    known = {row["id"] for row in read()}
    for source, kind in FILES.items():
        new = [each for each in cases(CASES, kind, None) if each["id"] not in known]
        asyncio.run(ask(args.judge, source, new[: args.ask]))
    rows = read()
    for source in LEVELS:
        sys.stdout.writelines(f"{line}\n" for line in describe(source, rows))


if __name__ == "__main__":
    main()
