"""Where the CPU time of a judged sample goes: prompt, call, read, score, store, rest.

`jurybox run` is run in this process while a timer of CPU time looks, some hundred times a second,
at what the main thread is doing. Each look counts for the stage of the innermost function that
belongs to one; what a library does counts for who called it. The looks give the shares; the
main thread's CPU clock gives the microseconds. Of the other threads, those of an HTTP client
count as call, and the rest serve the store.

What it doesn't say: a single look is off by the length of one call into C, so stages that call
each other in turns smear into each other by some percent; garbage collection counts for whoever
happened to run; and "call" is our end of the connection, never the endpoint's.
"""

import argparse
import collections
import contextlib
import io
import json
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType

EVERY = 0.001
STAGES = ("prompt", "call", "read", "score", "store", "rest")
# By the path inside the package; the first that fits.
PLACES = (
    ("judging/formats/", "read"),
    ("judging/safety", "read"),
    ("judging/jury", "score"),
    ("judging/evaluation_report", "score"),
    ("scoring/", "score"),
    ("judging/", "prompt"),
    ("documents/", "prompt"),
    ("rubric/", "prompt"),
    ("models/", "call"),
    ("engine/driver", "call"),
    ("engine/records", "store"),
    ("storage/", "store"),
)
FUNCTIONS = {"_answer": "store", "_stored_form": "store"}
"""Of modules that belong to no stage as a whole."""
CLIENT_THREADS = ("wreq",)
CLIENTS = ("/asyncio/selector_events",)


def stage_of(frame: FrameType | None) -> str | None:
    """Return the stage that a stack is in; None while it only waits."""
    if frame is not None and frame.f_code.co_filename.endswith("selectors.py"):
        return None
    client = False
    while frame is not None:
        path = frame.f_code.co_filename
        client = client or any(part in path for part in CLIENTS)
        inside = path.rpartition("/jurybox/")[2] if "/jurybox/" in path else ""
        if inside:
            if frame.f_code.co_name in FUNCTIONS:
                return FUNCTIONS[frame.f_code.co_name]
            for place, stage in PLACES:
                if inside.startswith(place):
                    return stage
        frame = frame.f_back
    return "call" if client else "rest"


def seconds_of_clients() -> float:
    """Return the CPU time of threads that an HTTP client started outside of Python."""
    ticks = 0
    for stat in Path("/proc/self/task").glob("*/stat"):
        name, _, metrics = stat.read_text().partition("(")[2].rpartition(")")
        if name.startswith(CLIENT_THREADS):
            ticks += sum(map(int, metrics.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def profiled(arguments: list[str]) -> tuple[dict[str, float], int]:
    """Run jurybox here, and return the CPU seconds of each stage and the number of looks."""
    looks: collections.Counter[str] = collections.Counter()

    def look(_: int, frame: FrameType | None) -> None:
        stage = stage_of(frame)
        if stage is not None:
            looks[stage] += 1

    sys.argv = ["jurybox", *arguments]
    signal.signal(signal.SIGPROF, look)
    began, all_began = time.thread_time(), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        runpy.run_module("jurybox", run_name="__main__")
    signal.setitimer(signal.ITIMER_PROF, 0)
    own = time.thread_time() - began
    others = time.process_time() - all_began - own
    clients = seconds_of_clients()
    total = sum(looks.values()) or 1
    spent = {stage: own * looks[stage] / total for stage in STAGES}
    spent["call"] += clients
    spent["store"] += max(0.0, others - clients)
    return spent, total


def main() -> None:
    """Print one line of JSON: the seconds of each stage, of this command with these arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if threading.current_thread() is not threading.main_thread():
        raise SystemExit("signals come to the main thread alone")
    os.chdir(Path(options.arguments[1]).parent)
    spent, looks = profiled(options.arguments)
    print(json.dumps({"seconds": spent, "looks": looks}))


if __name__ == "__main__":
    main()
