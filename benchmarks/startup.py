"""What starting costs: CPU time of a bare interpreter, of `import jurybox` and of small commands.

CPU time (user and system, of the child alone) and not elapsed time, because a busy machine delays a
process without making it work more. The commands take turns, so that a slow spell hits all alike.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("jurybox"))
BARE = "python -c pass"
COMMANDS = {
    BARE: [sys.executable, "-c", "pass"],
    'python -c "import jurybox"': [sys.executable, "-c", "import jurybox"],
    "jurybox --version": [PROGRAM, "--version"],
    "jurybox --help": [PROGRAM, "--help"],
    "jurybox rubric list --json": [PROGRAM, "rubric", "list", "--json"],
}


def cpu_milliseconds(command: list[str]) -> float:
    """Run the command once and return the CPU time it used.

    Raises:
        SystemExit: The command failed, so its time would mean nothing.
    """
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {child.returncode}, nothing to measure")
    return (usage.ru_utime + usage.ru_stime) * 1000


def measure(repeats: int) -> dict[str, list[float]]:
    """Measure every command `repeats` times, in turns, after one round that warms the caches."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for turn in range(repeats + 1):
        for name, command in COMMANDS.items():
            spent = cpu_milliseconds(command)
            if turn:
                times[name].append(spent)
    return times


def print_table(times: dict[str, list[float]]) -> None:
    """Print medians and quartiles, and what each command adds to a bare interpreter."""
    bare = statistics.median(times[BARE])
    width = max(map(len, times))
    print(f"{'CPU time':{width}}  {'median':>9}  {'quartiles':>15}  {'added':>9}  {'ratio':>6}")
    for name, values in times.items():
        median = statistics.median(values)
        low, _, high = statistics.quantiles(values, n=4)
        print(
            f"{name:{width}}  {median:6.1f} ms  {low:5.1f} - {high:5.1f} ms"
            f"  {median - bare:+6.1f} ms  {median / bare:6.2f}"
        )


def import_times(statement: str) -> dict[str, int]:
    """Return the modules that a statement loads, with the microseconds of each one itself."""
    command = [sys.executable, "-X", "importtime", "-c", statement]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    rows = (line.removeprefix("import time:").split("|") for line in report.splitlines()[1:])
    return {name.strip(): int(own) for own, _, name in rows}


def outside_modules() -> list[tuple[str, int]]:
    """Return what `import jurybox` loads beyond itself and the standard library, heaviest first."""
    ours = {*sys.stdlib_module_names, "jurybox"}
    bare = import_times("pass")
    loaded = import_times("import jurybox").items()
    outside = [(n, t) for n, t in loaded if n not in bare and n.partition(".")[0] not in ours]
    return sorted(outside, key=lambda entry: -entry[1])


def main() -> int:
    """Print the table, and fail if importing the package loads anybody else's code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=20, help="rounds to measure (20)")
    print_table(measure(parser.parse_args().repeats))
    outside = outside_modules()
    print("\nModules from outside the standard library that `import jurybox` loads:", end=" ")
    print(f"{len(outside)}, and there should be none" if outside else "none")
    for name, microseconds in outside[:10]:
        print(f"  {name}  {microseconds / 1000:.1f} ms")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
