"""Everything that goes wrong at once: storms, kills, damaged files and a flood, in one table.

MINUTES is how long each reader is fuzzed; with less than 10, storms and kills are smaller too.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
WHOLE = 10.0
PROGRAM = str(Path(sys.executable).with_name("jurybox"))

sys.path.insert(0, str(HERE.parent / "tests" / "contract"))


def stages(minutes: float, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each stage: its name, and the command."""
    from stores import postgres_server

    share = min(1.0, minutes / WHOLE)
    samples, kills = max(100, round(10_000 * share)), max(3, round(50 * share))
    storm = [sys.executable, str(HERE / "storm.py")]
    size = ["--samples", str(samples), "--votes", "3"]
    yield "storm", [*storm, "--only", "28% of all kinds", *size]
    killed = [*storm, "--only", "--kills", str(kills), "--samples", str(max(100, samples // 5))]
    yield "kills, SQLite", killed
    with postgres_server() as server:
        yield "kills, PostgreSQL", [*killed, "--store", server.fresh_url()]
    yield "readers", [sys.executable, str(HERE / "fuzz.py"), "--minutes", str(minutes)]
    for verb in ("init", "run suite.yaml"):
        subprocess.run([PROGRAM, *verb.split()], cwd=folder, capture_output=True, check=False)
    store = str(folder / ".jurybox" / "jurybox.db")
    yield "flood", [sys.executable, str(HERE / "flood.py"), store]


def main() -> int:
    """Run every stage and print what it printed; 1 where one has failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=WHOLE)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, command in stages(options.minutes, Path(folder)):
            began = time.monotonic()
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
            bad = done.returncode or "INCOMPLETE" in done.stdout
            failed += bool(bad)
            took, load = time.monotonic() - began, os.getloadavg()[0]
            state = "FAILED" if bad else "fine"
            print(f"== {name}: {state} in {took:.0f} s, load {load:.1f}\n{done.stdout}", flush=True)
    return min(1, failed)


if __name__ == "__main__":
    sys.exit(main())
