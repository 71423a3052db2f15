"""How often the embedded judge is right, on cases whose answers are known.

Reads `benchmarks/judge_cases`: references with full, paraphrased, partial and wrong answers,
contexts with faithful and unfaithful answers to questions, open tasks and summaries, and pairs of
equal length. Prints shares with their 95% intervals (Wilson) and the median seconds and CPU-seconds
per judgment. `--limit N` takes N cases of each kind; `--judge` another model; `--cases` another
folder; `--out` writes a line for every judgment and leaves out cases that the file has already, and
`--table` prints the table of such files.
"""

import argparse
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jurybox import evaluate
from jurybox.models.local.files import default_judge

CASES = Path(__file__).parent / "judge_cases"
Case = dict[str, Any]
Line = dict[str, Any]
DIFFICULTIES = ("short", "easy", "near-miss")
FAITHFUL = ("grounded", "unfaithful")


def _share(right: Sequence[bool]) -> str:
    if not right:
        return "-"
    low, high = _wilson(sum(right), len(right))
    return f"{sum(right) / len(right):.0%} ({low:.0%}-{high:.0%}) n={len(right)}"


def _wilson(hits: int, count: int, z: float = 1.96) -> tuple[float, float]:
    center = (hits + z * z / 2) / (count + z * z)
    spread = z * math.sqrt(hits * (count - hits) / count + z * z / 4) / (count + z * z)
    return center - spread, center + spread


def cases(folder: Path, kind: str, limit: int | None) -> list[Case]:
    """Return the cases of one kind, in an order that is always the same and says nothing."""
    rows = [json.loads(line) for line in (folder / f"{kind}.jsonl").read_text().splitlines()]
    random.Random(6).shuffle(rows)  # noqa: S311 - nothing secret hangs on it
    return rows[:limit]


class Bench:
    """Asks the judge; yields a line for every judgment, with whether it was right."""

    def __init__(self, judge: str, votes: int) -> None:
        self._judge = judge
        self._votes = votes

    def references(self, case: Case) -> Iterator[Line]:
        """Full answers should get the top score, wrong ones the bottom, partial ones the middle."""
        wanted = {"full": 2, "paraphrase": 2, "partial": 1, "wrong": 0}
        for side, score in wanted.items():
            if case.get(side):
                given = {"response": case[side], "reference": case["reference"]}
                line = self._ask(case, side, rubric=ACCURACY, **given)
                got = line["score"]
                yield line | {"right": got == score, "right_or_wrong": (got >= 1) == (score >= 1)}

    def grounding(self, case: Case) -> Iterator[Line]:
        """Faithful answers should get more than the bottom score, unfaithful ones the bottom."""
        for side in FAITHFUL:
            given = {"response": case[side], "context": case["context"]}
            line = self._ask(case, side, rubric=FAITHFULNESS, **given)
            yield line | {"right": (line["score"] >= 1) == (side == "grounded")}

    def pairs(self, case: Case) -> Iterator[Line]:
        """The better answer should win, whichever is first; a tie is wrong."""
        first, second = sorted(("better", "worse"), reverse=_digit(case["id"]) % 2 == 1)
        given = {each: case[each] for each in ("reference", "context")}
        given |= {"response": case[first], "response_b": case[second]}
        line = self._ask(case, "pair", rubric=PAIRS, **given)
        yield line | {"right": line["winner"] == ("A" if first == "better" else "B")}

    def _ask(self, case: Case, side: str, **given: Any) -> Line:  # noqa: ANN401 - as evaluate has them
        began, cpu = time.perf_counter(), time.process_time()
        report = evaluate(task=case["task"], judges=self._judge, votes=self._votes, **given)
        return {
            "id": case["id"],
            "side": side,
            "difficulty": case["difficulty"],
            "kind": case.get("kind", "question") if side in FAITHFUL else _material(case),
            "score": report.criteria[0].score,
            "winner": report.winner,
            "seconds": round(time.perf_counter() - began, 2),
            "cpu": round(time.process_time() - cpu, 2),
        }


def _digit(name: str) -> int:
    return int(name[-1])


def _material(case: Case) -> str:
    return next((each for each in ("reference", "context") if case.get(each)), "neither")


class Row(NamedTuple):
    """A row of the table: its name, which judgments it has, and what makes one right."""

    name: str
    has: Callable[[Line], bool]
    right: str = "right"


def _of_kind(kind: str, *sides: str) -> Callable[[Line], bool]:
    return lambda line: line["kind"] == kind and line["side"] in sides


def _of_side(*sides: str) -> Callable[[Line], bool]:
    return lambda line: line["side"] in sides


ROWS = (
    Row("reference: right or wrong", _of_side("full", "paraphrase", "wrong"), "right_or_wrong"),
    Row("reference: the exact level", _of_side("full", "paraphrase", "partial", "wrong")),
    *(Row(f"  {each}", _of_side(each)) for each in ("full", "paraphrase", "partial", "wrong")),
    Row("grounding: faithful or not", _of_side(*FAITHFUL)),
    *(Row(f"  {each}", _of_side(each)) for each in FAITHFUL),
    *(Row(f"  {each}", _of_kind(each, *FAITHFUL)) for each in ("question", "open", "summary")),
    Row("pairs", _of_side("pair")),
    *(Row(f"  {each}", _of_kind(each, "pair")) for each in ("reference", "context", "neither")),
)


def table(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the rows of the table that have judgments."""
    heads = (f"{each:>22}" for each in ("all", *DIFFICULTIES))
    yield f"{'':28}" + "".join(heads) + "  median s  CPU-s"
    for row in ROWS:
        some = [line for line in lines if row.has(line)]
        by_difficulty = [[line for line in some if line["difficulty"] == d] for d in DIFFICULTIES]
        if some:
            shares = (_share([x[row.right] for x in group]) for group in (some, *by_difficulty))
            times = (statistics.median(line[each] for line in some) for each in ("seconds", "cpu"))
            cells = "".join(f"{each:>22}" for each in shares)
            yield f"{row.name:28}{cells}" + "".join(f"{each:9.1f}" for each in times)


KINDS: dict[str, Callable[[Bench, Case], Iterator[Line]]] = {
    "reference": Bench.references,
    "grounding": Bench.grounding,
    "pairs": Bench.pairs,
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
    parser.add_argument("--table", type=Path, nargs="+", metavar="OUT")
    args = parser.parse_args()
    lines: list[Line] = []
    for path in args.table or ([args.out] if args.out and args.out.exists() else ()):
        lines += map(json.loads, path.read_text().splitlines())
    judged = {line["id"] for line in lines}
    for kind in () if args.table else args.kinds:
        bench = Bench(args.judge, args.votes)
        for case in cases(args.cases, kind, args.limit):
            new = [] if case["id"] in judged else list(KINDS[kind](bench, case))
            lines += new
            if args.out is not None:
                with args.out.open("a") as file:
                    file.writelines(f"{json.dumps(line)}\n" for line in new)
    sys.stdout.writelines(f"{row}\n" for row in table(lines))


if __name__ == "__main__":
    main()
