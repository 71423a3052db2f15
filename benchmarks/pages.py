"""Measures `jurybox serve` on a large run: the server's own time for each page, and its memory.

The run is written straight into a store: a few hundred samples are judged by a function, and copied
under other names until there are enough. Times are the application's own (`Server-Timing`), from
the request's head to the answer's. Next to them is the CPU time of the process, which counts where
other programs use the machine.
"""

import argparse
import contextlib
import http.client
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from processes import machine

from jurybox.app.review_desk import ReviewDesk
from jurybox.engine.driver import drive_sync
from jurybox.engine.plan import DatasetPlan, DocumentPlan, Plan, plan_text, planned_metadata
from jurybox.engine.records import (
    ENCODER,
    ExchangeRow,
    RunRow,
    SampleRow,
    StoredOutcome,
    Work,
    framed,
    hashed_sample,
    hashes_of,
    notes_of,
    read_result,
    request_key,
    run_digest,
    sample_row,
    sealed,
    text_hash,
)
from jurybox.judging.flow import ModelReply, ModelRequest, Outcome
from jurybox.review.reviews import Circumstances, HumanVerdict
from jurybox.rubric_files import RubricFiles
from jurybox.sample import Response, Row, Timing, Usage
from jurybox.scoring.evaluate_sample import Procedure, evaluate_sample
from jurybox.scoring.summary import RunTally
from jurybox.storage import open_store

SCORES = ("accuracy", "clarity", "tone")
CHECKED = ("position", "verbosity", "self_enhancement", "formatting", "authority")
RUN = "20260301-091400-aaaa"
WHEN = "2026-03-01T09:14:00.000Z"
PATTERNS = 400
TOGETHER = 1000
ASKED = 100
REVIEWS = 15
AIM = 300.0
# Nobody opens a page sooner than that, and the server uses the time to get ready.
READY = 2.0
RUBRIC = """---
id: answers
version: 1.0.0
scale: 1-5
votes: 3
pass: ["accuracy >= 3"]
gates: ["accuracy_mean >= 3", "pass_rate >= 0.9"]
---
# Answers

## Criteria
### Accuracy
### Clarity
### Tone
"""
WORDS = [
    "the",
    "answer",
    "water",
    "boils",
    "sooner",
    "on",
    "a",
    "mountain",
    "air",
    "presses",
    "less",
]


def plan_of(count: int) -> Plan:
    """Return the plan of the run."""
    files = RubricFiles(Path("rubrics"))
    checklist = files.read("bias-awareness")
    return Plan(
        suite="a large suite",
        rubric=DocumentPlan(origin="answers.md", text=RUBRIC),
        checklist=DocumentPlan(origin=checklist.origin, text=checklist.data.decode()),
        dataset=DatasetPlan(
            id="rows.jsonl", path="rows.jsonl", sha256="0" * 64, bytes=1, rows=count
        ),
        judges=("python/judge:one",),
        votes=3,
        repeats=1,
    )


class Patterns:
    """Samples that were really judged, to be stored again and again."""

    def __init__(self, plan: Plan) -> None:
        self._chance = random.Random(7)  # noqa: S311 - the same run every time
        self._procedure: Procedure = plan.procedure()
        self.made = [self._make(number) for number in range(PATTERNS)]

    def _make(self, number: int) -> tuple[SampleRow, list[ExchangeRow]]:
        chance = self._chance
        text = " ".join(chance.choices(WORDS, k=120))
        row = Row(
            id="",
            task=f"Why does water boil sooner on a mountain? ({number})",
            scenario=f"scenario {number % 12}",
            metadata={"demographic": f"group {number % 5}"},
            response=Response(
                text=text,
                timing=Timing(latency_e2e_ms=round(chance.lognormvariate(6, 1), 1)),
                usage=Usage(input_tokens=300, output_tokens=120),
            ),
        )
        exchanges: list[ExchangeRow] = []

        def judge(request: ModelRequest) -> Outcome:
            middle = chance.randint(2, 4)
            scores = {name: middle + chance.randint(-1, 1) for name in SCORES}
            reply = {
                "reasoning": {name: " ".join(chance.choices(WORDS, k=20)) for name in SCORES},
                "scores": scores,
                "bias_checklist": dict.fromkeys(CHECKED, "Not at work."),
                "safety_concerns": [],
            }
            outcome = ModelReply(text=msgspec.json.encode(reply).decode(), latency_ms=7.0)
            asked = framed(request)
            exchanges.append(
                ExchangeRow(
                    run_id=RUN,
                    number=0,
                    position=len(exchanges),
                    role="judge",
                    key=request_key(text_hash(asked.frame), text_hash(asked.material), "here", 0),
                    frame=asked.frame,
                    material=asked.material,
                    outcome=ENCODER.encode({"reply": outcome}).decode(),
                    notes="{}",
                )
            )
            return outcome

        outcome = drive_sync(evaluate_sample(self._procedure, row), judge)
        work = Work(number=0, repeat=0, row=row)
        return sample_row(RUN, work, outcome, notes_of(exchanges)), exchanges

    def copy(self, number: int) -> tuple[SampleRow, list[ExchangeRow]]:
        """Return a sample under another number and name."""
        sample, exchanges = self.made[(number * 7919) % PATTERNS]
        # Only a page of one sample shows its exchanges, and those of all would fill the disk.
        if number % ASKED:
            sample, exchanges = msgspec.structs.replace(sample, notes=notes_of(())), []
        mine = [sealed(msgspec.structs.replace(each, number=number)) for each in exchanges]
        renamed = msgspec.structs.replace(sample, number=number, sample_id=f"q{number}")
        return hashed_sample(renamed, map(hashes_of, mine)), mine


def write_run(file: Path, count: int) -> None:
    """Write the run into a new store."""
    plan = plan_of(count)
    row = RunRow(
        id=RUN,
        suite=plan.suite,
        status="running",
        created_at=WHEN,
        finished_at=None,
        plan=plan_text(plan),
        metadata=ENCODER.encode(planned_metadata(plan, plan.procedure())).decode(),
        outcome=None,
        digest=None,
    )
    patterns = Patterns(plan)
    tally = RunTally(plan.procedure().judging.rubric, plan.repeats)
    store = open_store(str(file))
    store.create_run(sealed(row))
    hashes: list[str] = []
    for first in range(0, count, TOGETHER):
        copies = [patterns.copy(number) for number in range(first, min(first + TOGETHER, count))]
        store.append(
            [sample for sample, _ in copies], [each for _, mine in copies for each in mine]
        )
        for sample, _ in copies:
            tally.add(read_result(sample.result), sample.repeat)
            hashes.append(sample.record_sha256)
    outcome = StoredOutcome(conclusion=tally.conclude(), cost={"dollars": None, "models": []})
    finished = msgspec.structs.replace(
        row,
        status="finished",
        finished_at=WHEN,
        outcome=ENCODER.encode(outcome).decode(),
        digest=run_digest(sorted(hashes)),
    )
    store.update_run(sealed(finished))
    store.close()


def review(file: Path) -> None:
    """Review a few samples, because reviews change how all samples are counted and sorted."""
    with contextlib.closing(open_store(str(file))) as store:
        desk = ReviewDesk(store, store.runs()[0])
        verdict = HumanVerdict(scores=dict.fromkeys(SCORES, 3), safety_concern=False)
        for queue in (*["random"] * REVIEWS, *["flagged"] * REVIEWS):
            case = desk.next("anna", kind=queue)
            if case is not None:
                desk.submit(case.number, "anna", verdict, shown=Circumstances(queue=queue))


@contextlib.contextmanager
def served(file: Path) -> Iterator[tuple[int, str]]:
    """Start the server; yield its process and its address."""
    command = [sys.executable, "-m", "jurybox", "serve", "--port", "0", "--store", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = "" if process.stderr is None else process.stderr.readline()
            found = re.match(r"(http://\S+) ", said)
            if found is None:
                raise SystemExit(f"the server doesn't start: {said}")
            time.sleep(READY)
            yield process.pid, urlsplit(found[1]).netloc
        finally:
            process.terminate()


def cpu_ms(process: int) -> float:
    """Return the CPU time of a process so far in milliseconds."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(line: http.client.HTTPConnection, path: str) -> float:
    """Ask for a page; return the server's own time in milliseconds."""
    line.request("GET", path)
    answer = line.getresponse()
    answer.read()
    if answer.status != http.client.OK:
        raise SystemExit(f"{path}: {answer.status}")
    return float((answer.headers["Server-Timing"] or "").partition("dur=")[2])


def memory(process: int) -> float:
    """Return the resident memory of a process in megabytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    (found,) = re.findall(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(found) / 1000


def pages_of(count: int) -> dict[str, str]:
    """Return the addresses that are measured, by what they show."""
    run = f"/runs/{RUN}"
    last = max(1, count // 50)
    return {
        "runs": "/",
        "run": run,
        "progress": f"/api{run}/progress",
        "samples": f"{run}/samples",
        "by a metric": f"{run}/samples?sort=metric:overall",
        "worst first": f"{run}/samples?sort=metric:latency_e2e_ms&descending=true",
        "by urgency": f"{run}/samples?sort=urgency&descending=true",
        "filtered": f"{run}/samples?flag=split&scenario=scenario+3&metric=accuracy&low=2&high=4",
        "flagged": f"{run}/samples?flag=low_confidence&sort=metric:tone",
        "searched": f"{run}/samples?search=q{count - 1}",
        "found in 1%": f"{run}/samples?search=q12",
        "found in all": f"{run}/samples?search=water",
        "last page": f"{run}/samples?page={last}",
        "last, sorted": f"{run}/samples?page={last}&sort=metric:overall",
        "sample": f"{run}/samples/{count // 2}",
        "in a filter": f"{run}/samples/{count // 2}?sort=metric:overall&at={count // 2}",
        "rubric": f"{run}/rubric",
        "agreement": f"{run}/review/agreement",
        "review": f"/api{run}/review/next?reviewer=anna",
    }


def measure(file: Path, count: int, repeats: int, turned: int) -> None:
    """Print a row for each page, and the memory before and after many."""
    with served(file) as (process, place):
        line = http.client.HTTPConnection(place, timeout=120)
        print(f"{'page':14}{'first':>9}{'CPU':>6}{'median':>9}{'CPU':>6}   ms of server time")
        for name, path in pages_of(count).items():
            before = cpu_ms(process)
            first = ask(line, path)
            between = cpu_ms(process)
            rest = [ask(line, path) for _ in range(repeats)]
            after = cpu_ms(process)
            cost, costs = between - before, (after - between) / repeats
            late = "" if max(cost, costs) < AIM else f"   more than {AIM:.0f}"
            median = statistics.median(rest)
            print(f"{name:14}{first:9.1f}{cost:6.0f}{median:9.1f}{costs:6.0f}{late}")
        before = memory(process)
        for number in range(turned):
            ask(line, f"/runs/{RUN}/samples?page={1 + number * max(1, count // 50 // turned)}")
        after = memory(process)
        print(f"memory {before:.1f} MB, after turning {turned} pages {after:.1f} MB")


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--store", type=Path, help="keep the store in this file, and use it again")
    options = parser.parse_args()
    print(f"pages of a run of {options.samples:,} samples, median of {options.repeats}")
    print(machine())
    with tempfile.TemporaryDirectory(prefix="jurybox-pages-") as folder:
        file: Path = options.store or Path(folder) / "runs.db"
        if not file.exists():
            start = time.perf_counter()
            write_run(file, options.samples)
            review(file)
            took = time.perf_counter() - start
            print(f"written in {took:.1f} s, {file.stat().st_size / 1e6:.0f} MB")
        measure(file, options.samples, options.repeats, options.pages)


if __name__ == "__main__":
    main()
