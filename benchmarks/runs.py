"""What a run costs with everything on: recorded responses, scored by rules, stored and hashed.

Every size is a process of its own: its CPU time (all threads) and its peak memory come from the
system. Flat memory and linear time show as ratios to the smallest size. Then the last run is shown
and verified, which reads all of it again.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("jurybox"))
RESPONSE = (
    "I'm so sorry to hear that, it must be very hard for you. Losing a friend hurts, and it makes"
    " sense that you feel sad. Would you like to tell me more about the time you had together?"
)


def write_suite(place: Path, samples: int) -> Path:
    """Write a suite of so many recorded conversations."""
    with (place / f"{samples}.jsonl").open("w", encoding="utf-8") as file:
        for number in range(samples):
            row = {
                "id": f"s{number}",
                "task": f"I feel sad, I lost my dog {number} days ago.",
                "response": f"{RESPONSE} ({number})",
                "scenario": ("grief", "small talk")[number % 2],
            }
            file.write(json.dumps(row) + "\n")
    suite = place / f"{samples}.yaml"
    suite.write_text(f"suite: bench\nrubric: companion\ndataset: {samples}.jsonl\n")
    return suite


def measured(*command: str) -> tuple[float, float, float]:
    """Run a command and return its elapsed seconds, CPU seconds and peak megabytes.

    Raises:
        SystemExit: the command failed, so its time would mean nothing.
    """
    times = os.times()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in {0, 1}:
            words = child.stderr.read().decode() if child.stderr else ""
            raise SystemExit(f"{' '.join(command)}: exit status {child.returncode}\n{words}")
    elapsed = os.times().elapsed - times.elapsed
    return elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print one row a size, then one for each way of reading the largest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--repeats", type=int, default=1, help="rounds to measure (1)")
    options = parser.parse_args()
    print(f"runs with rules only, median of {options.repeats}")
    print(f"{'':18}{'seconds':>9}{'CPU ms/sample':>15}{'samples/s':>11}{'peak MB':>9}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        smallest = 0.0
        for size in options.sizes:
            suite = write_suite(place, size)
            store = str(place / f"{size}.db")
            command = (PROGRAM, "run", str(suite), "--store", store, "--json")
            rounds = [measured(*command) for _ in range(options.repeats)]
            smallest = smallest or statistics.median(peak for *_, peak in rounds)
            print_row(f"run {size:,}", size, rounds, smallest)
            for name in ("show", "verify"):
                command = (PROGRAM, name, "last", "--store", store, "--json")
                rounds = [measured(*command) for _ in range(options.repeats)]
                print_row(f"{name} {size:,}", size, rounds, smallest)


def print_row(
    name: str, size: int, rounds: list[tuple[float, float, float]], smallest: float
) -> None:
    """Print the medians of one command; the ratio is of peak memory to the smallest run's."""
    elapsed, cpu, peak = (statistics.median(values) for values in zip(*rounds, strict=True))
    print(
        f"{name:18}{elapsed:9.2f}{cpu / size * 1000:15.3f}{size / elapsed:11,.0f}"
        f"{peak:9.1f}{peak / smallest:7.2f}"
    )


if __name__ == "__main__":
    main()
