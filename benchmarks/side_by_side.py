"""Judges the same recorded responses with jurybox and with other tools, side by side: `make bench`.

Every tool runs in an environment of its own, against the fake endpoint of endpoint.py, one call a
sample (but for jurybox with three votes), 32 at once, without latency. The tools take turns, so
that a slow spell of the machine hits all alike. The drivers in peers/ say what each of them does.

CPU time comes first, because a busy machine delays a process without making it work more. "A
further sample" is what is left when the CPU time of a run of ten samples is taken away: what
a long run costs, without the start. What these metrics don't say: how good the verdicts are, and
how fast a real model answers, beside which most of this is small.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import comparison
import drive
import environments
import survival
from material import Peer
from processes import (
    HERE,
    ROOT,
    Row,
    driven,
    endpoint,
    machine,
    python_of,
    replies_of,
    surroundings,
)
from quick import FEW, record_body

PEERS = (
    "floor",
    "jurybox",
    "autoevals",
    "phoenix",
    "ragas",
    "pydantic_evals",
    "promptfoo",
    "inspect",
    "deepeval",
    "mlflow",
)
SCOUT = 100
RECORD = ROOT / ".cache" / "bench" / "side_by_side.jsonl"


class Bench:
    """All that was measured, kept as lines of JSON too."""

    def __init__(self, place: Path, budget: float, record: Path) -> None:
        self.place = place
        self.budget = budget
        self.record = record
        self.rows: list[Row] = []
        self.number = 0
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text("")

    def keep(self, kind: str, row: Row) -> Row:
        """Write a row down."""
        row = {"kind": kind, **row}
        self.rows.append(row)
        with self.record.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def folder(self) -> Path:
        """Return a place that nobody has used."""
        self.number += 1
        return self.place / str(self.number)

    def run(self, name: str, base_url: str, size: int, options: tuple[str, ...]) -> None:
        """Measure one tool at one size, if it stays within the time that there is."""
        expected = self.expected(name, size)
        if expected > self.budget:
            # JSON has no infinity.
            minutes = None if expected == float("inf") else expected / 60
            row = {"name": name, "samples": size, "judged": 0, "not_run": True, "minutes": minutes}
            self.keep("run", row)
            return
        began = time.monotonic()
        row = self.keep("run", driven(name, base_url, size, self.folder(), options))
        took = time.monotonic() - began
        print(f"{name} {size:,}: {took:.1f} s {row['notes']}", file=sys.stderr, flush=True)

    def expected(self, name: str, size: int) -> float:
        """Return the seconds that a run may take, by what a smaller one took."""
        mine = [row for row in self.rows if row["name"] == name and row.get("seconds")]
        whole = [row for row in mine if row["judged"] == row["samples"]]
        if mine and not whole:
            return float("inf")
        few, most = comparison.ends(whole)
        if few is None or most is None or size <= most["samples"]:
            return 0.0
        each = (most["seconds"] - few["seconds"]) / max(1, most["samples"] - few["samples"])
        return few["seconds"] + each * size


def rows_of(names: list[str], ready: dict[str, Peer]) -> list[str]:
    """Return the rows: every tool, and its variants."""
    return [
        f"{name}:{variant}" if variant else name
        for name in names
        if name in ready
        for variant in ready[name].variants
    ]


def prepared(bench: Bench, names: list[str]) -> dict[str, Peer]:
    """Install what isn't there, and return what can be driven."""
    ready: dict[str, Peer] = {}
    for name in names:
        peer = drive.load(name)
        problem = environments.prepare(name, peer)
        if problem:
            bench.keep("problem", {"name": name, "notes": problem})
        else:
            ready[name] = peer
    return ready


def measure_starts(bench: Bench, ready: dict[str, Peer], repeats: int) -> None:
    """Measure what importing a package, or asking a command for its version, takes."""
    for turn in range(repeats + 1):
        for name, peer in ready.items():
            if name == "floor":
                continue
            command = peer.starts
            if isinstance(command, str):
                command = (python_of(name, peer), "-c", command)
            taken = comparison.start(command, surroundings(peer, bench.place / "home"))
            # The first one warms the caches.
            if turn:
                bench.keep("start", {"name": name, **taken})
    for name, peer in ready.items():
        packages, megabytes = environments.size(name, peer)
        bench.keep("size", {"name": name, "packages": packages, "mb": round(megabytes, 1)})


def measure_runs(bench: Bench, names: list[str], sizes: list[int], repeats: int) -> None:
    """Measure every size, in turns; what the smaller ones took says which larger ones are tried."""
    with endpoint(replies_of(names), bench.place) as base_url:
        driven("jurybox", base_url, FEW, bench.folder())
        body = ("--body", str(record_body(base_url, bench.place)))
        # Without a small size, nobody would know how long a large one takes.
        scout = {SCOUT} if min(sizes) > SCOUT else set[int]()
        for size in sorted({FEW, *scout, *sizes}):
            for _ in range(repeats):
                for name in names:
                    bench.run(name, base_url, size, body)


def measure_kills(bench: Bench, names: list[str], samples: int) -> None:
    """Kill every tool half-way once."""
    replies = replies_of(names)
    for name in names:
        if name.startswith("floor"):
            continue
        if bench.expected(name, samples) > bench.budget:
            why = "not killed: a run promises to take longer than the budget, or failed before"
            bench.keep("kill", {"name": name, "samples": samples, "notes": why})
            continue
        row = bench.keep("kill", survival.killed(name, replies, bench.folder(), samples))
        print(f"{name} killed: {row}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), metavar="TOOL")
    parser.add_argument("--sizes", type=int, nargs="+", default=[SCOUT, 1000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3, help="rounds to measure (3)")
    parser.add_argument("--budget", type=float, default=60, help="most seconds of one run (60)")
    parser.add_argument("--kill", type=int, default=200, help="samples of a killed run; 0 for none")
    parser.add_argument("--alone", action="store_true", help="leave out what is of jurybox alone")
    parser.add_argument("--million", action="store_true", help="rules on a million samples too")
    parser.add_argument("--record", type=Path, default=RECORD, help="where the raw rows go")
    options = parser.parse_args()
    described = machine()
    print(described, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), options.budget, options.record)
        bench.keep("machine", {"name": described})
        ready = prepared(bench, options.only)
        names = rows_of(options.only, ready)
        measure_starts(bench, ready, options.repeats)
        measure_runs(bench, names, options.sizes, options.repeats)
        if options.kill:
            measure_kills(bench, names, options.kill)
        comparison.print_all(bench.rows, names, ready)
    print(flush=True)
    if not options.alone:
        print_of_jurybox(million=options.million)


def print_of_jurybox(*, million: bool) -> None:
    """Print what only jurybox is asked: latency, stages, and runs by rules alone."""
    sizes = ["1000", "10000", "100000", *(["1000000"] if million else [])]
    for program, arguments in (
        ("latency.py", ()),
        ("quick.py", ("--without-rules",)),
        ("runs.py", ("--sizes", *sizes)),
    ):
        subprocess.run([sys.executable, str(HERE / program), *arguments], check=True)
        print(flush=True)


if __name__ == "__main__":
    main()
