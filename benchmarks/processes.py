"""Starts the fake endpoint and the drivers, each as a process of its own."""

import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import drive
import material
from drive import ENVIRONMENTS
from material import Peer

HERE = Path(__file__).parent
ROOT = HERE.parent
# Nobody's settings, and above all nobody's keys.
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
LOOPBACK = "localhost,127.0.0.1,::1"

Row = dict[str, Any]


@contextlib.contextmanager
def endpoint(replies: Mapping[str, Any], folder: Path, latency: float = 0) -> Iterator[str]:
    """Start the endpoint, yield its address, and end it."""
    file = folder / "replies.json"
    file.write_text(json.dumps(replies), encoding="utf-8")
    command = [sys.executable, str(HERE / "endpoint.py"), "--replies", str(file)]
    command += ["--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or not (address := process.stdout.readline().strip()):
                raise SystemExit("the endpoint doesn't start")
            yield address
        finally:
            process.kill()


def replies_of(names: Sequence[str]) -> dict[str, Any]:
    """Return what the endpoint has to say to these drivers."""
    said: dict[str, Any] = {}
    for name in names:
        said |= drive.load(name.partition(":")[0]).replies
    return said


def python_of(name: str, peer: Peer) -> str:
    """Return the interpreter that a driver runs in."""
    if not peer.install or peer.node:
        return sys.executable
    return str(ENVIRONMENTS / name / "bin" / "python")


def surroundings(peer: Peer, home: Path) -> dict[str, str]:
    """Return the environment of a driver: no keys but a dummy, no telemetry, a home of its own."""
    kept = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    home.mkdir(parents=True, exist_ok=True)
    return kept | {
        "HOME": str(home),
        "NO_PROXY": LOOPBACK,
        "no_proxy": LOOPBACK,
        "OPENAI_API_KEY": "none",
        "NO_COLOR": "1",
        "DO_NOT_TRACK": "1",
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONWARNINGS": "ignore",
        **dict(peer.environment),
    }


def command_of(name: str, base_url: str, samples: int, folder: Path) -> list[str]:
    """Return the command that drives a tool."""
    plain = name.partition(":")[0]
    start = [python_of(plain, drive.load(plain)), str(HERE / "drive.py"), name]
    return [
        *start,
        "--base-url",
        base_url,
        "--samples",
        str(samples),
        "--folder",
        str(folder),
    ]


def driven(
    name: str, base_url: str, samples: int, folder: Path, options: Sequence[str] = ()
) -> Row:
    """Run a driver to its end, and return its line; one that fails says why.

    ``pace`` is that of the machine before and after it.
    """
    before = pace()
    row = _driven(name, base_url, samples, folder, options)
    return row | {"pace": (before + pace()) / 2}


def _driven(name: str, base_url: str, samples: int, folder: Path, options: Sequence[str]) -> Row:
    peer = drive.load(name.partition(":")[0])
    material.reset(base_url)
    command = [*command_of(name, base_url, samples, folder), *options]
    environment = surroundings(peer, folder.with_name(f"{folder.name}.home"))
    try:
        finished = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=1800
        )
    except subprocess.TimeoutExpired:
        return failed(name, samples, "it took more than half an hour")
    lines = finished.stdout.strip().splitlines()
    try:
        row = json.loads(lines[-1])
    except (IndexError, ValueError):
        words = " ".join(finished.stderr.split())[-300:]
        return failed(name, samples, f"no result, exit status {finished.returncode}: {words}")
    if row.get("judged", samples) != samples and finished.stderr:
        row["words"] = finished.stderr[-2000:]
    return row


def failed(name: str, samples: int, why: str) -> Row:
    """Return the row of a driver that couldn't be run."""
    return {"name": name, "samples": samples, "judged": 0, "notes": why}


def pace() -> float:
    """Return the CPU milliseconds of some fixed work in Python, the median of a few.

    A core that other machines use too takes up to twice as long for everything, in CPU time as
    well, for seconds or minutes. So metrics of one moment are held against the best moment seen.
    """

    def work() -> float:
        began = time.process_time()
        kept: dict[int, str] = {}
        for number in range(10_000):
            kept[number % 97] = str(number)
        return (time.process_time() - began) * 1000

    return statistics.median(work() for _ in range(7))


def best_pace(rows: Iterable[Row]) -> float:
    """Return the best pace of the machine that was seen around any of these runs."""
    return min(row["pace"] for row in rows if "pace" in row)


def machine() -> str:
    """Describe the machine that metrics belong to."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        cpu = next(
            line.partition(":")[2].strip() for line in lines if line.startswith("model name")
        )
    cores = len(os.sched_getaffinity(0))
    load = ", ".join(f"{each:.2f}" for each in os.getloadavg())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return (
        f"{cpu}, {cores} cores, {memory:.0f} GB, {platform.system()} {platform.release()},"
        f" Python {platform.python_version()}, load {load}"
    )
