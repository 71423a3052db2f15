"""How often the embedded judge is right, on cases whose answers are known.

Reads `benchmarks/judge_cases`: references with full, partial and wrong answers, contexts with
faithful and unfaithful ones, and pairs of equal length. Prints shares with their 95% intervals
(Wilson) and seconds a judgment. `--limit N` takes N cases of each kind; `--judge` another model;
`--cases` another folder; `--out` writes a line for every judgment.
"""

import argparse
import json
import math
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jurybox import EvaluationReport, evaluate
from jurybox.models.local.files import default_judge

CASES = Path(__file__).parent / "judge_cases"
Case = dict[str, Any]
DIFFICULTIES = ("short", "easy", "near-miss")


class Tally:
    """Judgments of one kind, by difficulty."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.right: dict[str, list[bool]] = {each: [] for each in DIFFICULTIES}
        self.seconds: list[float] = []

    def add(self, difficulty: str, *, right: bool, seconds: float) -> None:
        """Count one judgment."""
        self.right[difficulty].append(right)
        self.seconds.append(seconds)

    def line(self) -> str:
        """Return the row of the table."""
        parts = [each for some in self.right.values() for each in some]
        shares = [_share(parts), *(_share(some) for some in self.right.values())]
        middle = sorted(self.seconds)[len(self.seconds) // 2] if self.seconds else 0.0
        return f"{self.name:34} " + "  ".join(f"{each:>22}" for each in shares) + f"  {middle:6.1f}"


def _share(right: Sequence[bool]) -> str:
    if not right:
        return "-"
    low, high = _wilson(sum(right), len(right))
    return f"{sum(right) / len(right):.0%} ({low:.0%}-{high:.0%}) n={len(right)}"


def _wilson(hits: int, count: int, z: float = 1.96) -> tuple[float, float]:
    centre = (hits + z * z / 2) / (count + z * z)
    spread = z * math.sqrt(hits * (count - hits) / count + z * z / 4) / (count + z * z)
    return centre - spread, centre + spread


def cases(folder: Path, kind: str, limit: int | None) -> list[Case]:
    """Return the cases of one kind, in an order that is always the same and says nothing."""
    rows = [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text().splitlines()]
    random.Random(6).shuffle(rows)  # noqa: S311 - nothing secret hangs on it
    return rows[:limit]


class Bench:
    """Asks the judge and keeps what it said."""

    def __init__(self, judge: str, votes: int, out: Path | None) -> None:
        self._judge = judge
        self._votes = votes
        self._out = out

    def ask(self, case: Case, side: str, **given: Any) -> tuple[EvaluationReport, float]:  # noqa: ANN401 - as evaluate has them
        """Return the report on one answer, or on a pair, and the seconds that it took."""
        began = time.perf_counter()
        report = evaluate(task=case["task"], judges=self._judge, votes=self._votes, **given)
        seconds = time.perf_counter() - began
        if self._out is not None:
            line = {"id": case["id"], "side": side, "seconds": seconds, **report.as_data()}
            with self._out.open("a") as file:
                file.write(json.dumps(line) + "\n")
        return report, seconds


def reference_cases(bench: Bench, rows: list[Case]) -> Iterator[Tally]:
    """Full answers should get the top score, wrong ones the bottom, partial ones the middle."""
    told, levels = Tally("reference: right or wrong"), Tally("reference: full, partial or wrong")
    wanted = {"full": 2, "partial": 1, "wrong": 0}
    for case in rows:
        for side, score in wanted.items():
            if case.get(side) is None:
                continue
            report, seconds = bench.ask(
                case,
                side,
                rubric=ACCURACY,
                response=case[side],
                reference=case["reference"],
            )
            got = report.criteria[0].score
            levels.add(case["difficulty"], right=got == score, seconds=seconds)
            if side != "partial":
                right = (got >= 1) == (side == "full")
                told.add(case["difficulty"], right=right, seconds=seconds)
    yield told
    yield levels


def grounding_cases(bench: Bench, rows: list[Case]) -> Iterator[Tally]:
    """Faithful answers should get more than the bottom score, unfaithful ones the bottom."""
    tally = Tally("grounding: faithful or not")
    for case in rows:
        for side in ("grounded", "unfaithful"):
            report, seconds = bench.ask(
                case,
                side,
                rubric=FAITHFULNESS,
                response=case[side],
                context=case["context"],
            )
            right = (report.criteria[0].score >= 1) == (side == "grounded")
            tally.add(case["difficulty"], right=right, seconds=seconds)
    yield tally


def pair_cases(bench: Bench, rows: list[Case]) -> Iterator[Tally]:
    """The better answer should win; a tie is wrong."""
    tallies = {
        "reference": Tally("pairs with a reference"),
        "context": Tally("pairs with a context"),
        "neither": Tally("pairs with neither"),
    }
    every = Tally("pairs")
    for number, case in enumerate(rows):
        # Which of the two stands first must not matter; half of the cases each.
        order = ("better", "worse") if number % 2 == 0 else ("worse", "better")
        report, seconds = bench.ask(
            case,
            "pair",
            rubric=PAIRS,
            response=case[order[0]],
            response_b=case[order[1]],
            reference=case["reference"],
            context=case["context"],
        )
        right = report.winner == ("A" if order[0] == "better" else "B")
        kind = "reference" if case["reference"] else "context" if case["context"] else "neither"
        for tally in (every, tallies[kind]):
            tally.add(case["difficulty"], right=right, seconds=seconds)
    yield every
    yield from tallies.values()


KINDS: dict[str, Callable[[Bench, list[Case]], Iterator[Tally]]] = {
    "reference": reference_cases,
    "grounding": grounding_cases,
    "pairs": pair_cases,
}
# One criterion each, so that a judgment is one thing asked.
FOLDER = Path(__file__).parent / "judge_rubrics"
ACCURACY, FAITHFULNESS, PAIRS = (
    str(FOLDER / f"{name}.md") for name in ("accuracy", "faithfulness", "pairs")
)


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default=f"local/{default_judge().name}")
    parser.add_argument("--votes", type=int, default=1)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--cases", type=Path, default=CASES)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    bench = Bench(args.judge, args.votes, args.out)
    sys.stdout.write(f"{args.judge}, {args.votes} vote(s)\n")
    heads = ("all", *DIFFICULTIES)
    sys.stdout.write(f"{'':34} " + "  ".join(f"{each:>22}" for each in heads) + "  median s\n")
    for kind in args.kinds:
        for tally in KINDS[kind](bench, cases(args.cases, kind, args.limit)):
            sys.stdout.write(tally.line() + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
