"""Runs one driver in the environment of its tool, and prints one line of JSON about it.

`python benchmarks/drive.py NAME[:VARIANT] --base-url URL --samples N --concurrency N --folder F`

Seconds count from the start of the process, CPU seconds are those of the process and of all that it
started (of a command alone, where the tool is one), and the peak is that of the largest process.
With `--survey` nothing is judged: it tells how many judged samples the files of the folder hold.
"""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import material
from material import Done, Job, Peer

PEERS = Path(__file__).parent / "peers"
ENVIRONMENTS = PEERS.parents[1] / ".cache" / "peers"


def load(name: str) -> Peer:
    """Return a driver by its name.

    Its module gets another name than its file has: several are called like what they import.
    """
    spec = importlib.util.spec_from_file_location(f"peer_{name}", PEERS / f"{name}.py")
    if spec is None or spec.loader is None:
        raise SystemExit(f"there is no driver {name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.PEER


def seconds_since_start() -> float:
    """Return how long this process has been there."""
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")


def version_of(peer: Peer) -> str:
    """Return the installed version of a tool."""
    if peer.node:
        file = ENVIRONMENTS / peer.package / "node_modules" / peer.package / "package.json"
        return json.loads(file.read_text())["version"]
    return importlib.metadata.version(peer.package)


def used(peer: Peer) -> tuple[float, float]:
    """Return CPU seconds and peak megabytes."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    counted = [children] if peer.commands else [own, children]
    cpu = sum(each.ru_utime + each.ru_stime for each in counted)
    return cpu, max(each.ru_maxrss for each in counted) / 1024


def judged(peer: Peer, job: Job) -> dict[str, Any]:
    """Do the work, and return its measurements."""
    began = time.monotonic()
    setup = 0.0 if peer.commands else seconds_since_start()
    notes: list[str] = []
    try:
        done = peer.judge(job)
        notes += [done.notes] if done.notes else []
    except Exception as error:  # noqa: BLE001 - a tool that fails is a row that says so
        traceback.print_exc()
        done = Done(judged=0)
        notes.append(f"failed: {type(error).__name__}: {' '.join(str(error).split())[:200]}")
    elapsed = time.monotonic() - began + setup - done.checking
    cpu, peak = used(peer)
    calls = material.count(job.base_url)["calls"]
    if done.judged != job.count:
        notes.append(f"only {done.judged:,} of {job.count:,} were judged")
    if calls != job.count * done.calls_each and not job.again:
        notes.append(f"{calls:,} calls were made, not {job.count * done.calls_each:,}")
    return {
        "judged": done.judged,
        "seconds": round(elapsed, 4),
        "cpu_seconds": round(cpu, 4),
        "peak_mb": round(peak, 1),
        "calls": calls,
        "kept_bytes": material.size_of(job.folder),
        "notes": "; ".join(notes),
    }


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--body", type=Path, help="a request that the floor posts")
    parser.add_argument("--again", action="store_true", help="finish what was broken off here")
    parser.add_argument("--survey", action="store_true")
    options = parser.parse_args()
    name, _, variant = options.name.partition(":")
    peer = load(name)
    options.folder.mkdir(parents=True, exist_ok=True)
    job = Job(
        base_url=options.base_url,
        count=options.samples,
        concurrency=options.concurrency,
        folder=options.folder.resolve(),
        variant=variant,
        body=options.body,
        again=options.again,
    )
    row: dict[str, Any] = {
        "name": options.name,
        "version": version_of(peer),
        "samples": job.count,
    }
    os.chdir(job.folder)
    row |= {"kept": peer.survey(job)} if options.survey else judged(peer, job)
    sys.stdout.flush()
    # Tools print what they like, and some do it while they go; this line is the last.
    print(f"\n{json.dumps(row)}", flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
