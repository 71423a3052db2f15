"""What an endpoint that misbehaves costs a run: lost samples, throughput, memory, repeated calls.

Every row is one `jurybox run` against an endpoint whose weather follows a schedule, counted in
seconds since its first call; where the run stops, it is resumed until it is finished. The last row
kills the run half-way. With `--serve WEATHER` only the endpoint is started.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import material
from drive import load
from endpoint import FAILED, Connection, Endpoint

from replies import Answers, http

PROGRAM = str(Path(sys.executable).with_name("jurybox"))
LATENCY = 0.1
FOR_EVER = 1e5
MEGABYTE = 1_000_000

Odds = Callable[[float, random.Random], str]
"""What happens to a call that comes so many seconds after the first; "" where nothing does."""


def between(start: float, end: float, what: str) -> Odds:
    """Spoil every call in a stretch of time."""
    return lambda now, _: what if start <= now < end else ""


def share(**odds: float) -> Odds:
    """Spoil calls at random, by the probability of each fault."""
    return lambda _, chance: next((what for what, odd in odds.items() if chance.random() < odd), "")


WEATHERS: dict[str, Odds] = {
    "calm": lambda _now, _chance: "",
    "500 for 2 s": between(1, 3, "500"),
    "502 for 5 s": between(1, 6, "502"),
    "resets for 2 s": between(1, 3, "reset"),
    "2% 429": share(**{"429": 0.02}),
    "2% 429, 1% hangs": share(**{"429": 0.02, "hang": 0.01}),
    "10% 503": share(**{"503": 0.1}),
    "20% 429": share(**{"429": 0.2}),
    "a redirect a second": lambda now, _: "redirect" if 0 < now % 1 < 0.002 else "",  # noqa: PLR2004
    "10% of 20 MB": share(large=0.1),
    "28% of everything": share(
        **{"429": 0.04, "500": 0.04, "502": 0.04, "reset": 0.04, "garbage": 0.04},
        large=0.04,
        redirect=0.03,
        hang=0.01,
    ),
}
STATUS = {
    "429": ("429 Too Many Requests", "Retry-After: 1"),
    "500": ("500 Internal Server Error",),
    "502": ("502 Bad Gateway",),
    "503": ("503 Service Unavailable",),
    "redirect": ("307 Temporary Redirect", "Location: http://127.0.0.1:9/elsewhere"),
}
LARGE = http("200 OK", b'{"choices": "' + b"x" * 20 * MEGABYTE + b'"}')


class Storm(Endpoint):
    """An endpoint with weather."""

    def __init__(self, weather: str, said: dict[str, Any]) -> None:
        super().__init__(Answers(said), latency=LATENCY, fault=("", 0), slow=0)
        self.odds = WEATHERS[weather]
        self.chance = random.Random(1)  # noqa: S311 - nothing secret

    def request(self, connection: Connection, data: bytes) -> None:
        """Reset the connection, or answer as the weather is."""
        self.fault = ""
        if data.startswith(b"POST") and b"/reset " not in data[:40]:
            self.fault = self.odds(time.time() - (self.first or time.time()), self.chance)
        if self.fault == "reset":
            self.calls += 1
            self.faults += 1
            at_once = struct.pack("ii", 1, 0)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            self.drop(connection)
        elif connection.number in self.connections:
            super().request(connection, data)

    def chosen(self, kind: str, data: bytes) -> tuple[bytes, bool, float]:
        """Return the answer, whether the connection ends with it, and how long it takes."""
        if not self.fault:
            return super().chosen(kind, data)
        self.faults += 1
        if self.fault == "hang":
            return b"", True, FOR_EVER
        if self.fault == "large":
            return LARGE, False, self.latency
        if self.fault == "garbage":
            return http("200 OK", b'{"choices": [<html>'), False, self.latency
        status, *headers = STATUS[self.fault]
        return http(status, FAILED, *headers), False, self.latency

    def send(self, connection: Connection, answer: bytes, *, close: bool) -> None:
        """Send, but not to those that were reset."""
        with contextlib.suppress(KeyError, FileNotFoundError):
            super().send(connection, answer, close=close)


@contextlib.contextmanager
def storm(weather: str) -> Iterator[str]:
    """Start the endpoint, yield its address, and end it."""
    command = [sys.executable, __file__, "--serve", weather]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip() if process.stdout else ""
        finally:
            process.kill()


def write_suite(place: Path, samples: int, votes: int, timeout: float) -> None:
    """Write suite, rubric and dataset."""
    peer = sys.modules[load("jurybox").judge.__module__]
    job = material.Job(base_url="", count=samples, concurrency=64, folder=place)
    path: Path = peer.write_suite(job)
    suite = json.loads(path.read_text())
    suite["judge"] |= {"votes": votes, "timeout": timeout}
    path.write_text(json.dumps(suite))


def command(place: Path, base_url: str, *, again: bool) -> list[str]:
    """Return how to start the run, or to resume it."""
    start = ["resume", "last"] if again else ["run", str(place / "suite.yaml")]
    store = ["--store", str(place / "runs.db")]
    return [PROGRAM, *start, "--base-url", base_url, *store, "--json"]


def finished(place: Path, base_url: str) -> dict[str, Any]:
    """Run to the end, resuming as long as that helps; return the last result and what it took."""
    began, peak, stops = time.monotonic(), 0.0, 0
    done: dict[str, Any] = {}
    while done.get("status") != "finished" and stops < 5:  # noqa: PLR2004
        with (
            (place / "words").open("a") as words,
            subprocess.Popen(
                command(place, base_url, again=bool(stops)), stdout=subprocess.PIPE, stderr=words
            ) as child,
        ):
            out = child.stdout.read() if child.stdout else b""
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        peak = max(peak, usage.ru_maxrss / 1024)
        done = json.loads(out) if out else {}
        stops += 1
    return done | {"seconds": time.monotonic() - began, "peak": peak, "stops": stops - 1}


def measured(weather: str, samples: int, votes: int, timeout: float, keep: Path | None) -> str:
    """Run under a weather, and return a row of the table."""
    with tempfile.TemporaryDirectory() as folder, storm(weather) as base_url:
        place = keep or Path(folder)
        write_suite(place, samples, votes, timeout)
        done = finished(place, base_url)
        counted = material.count(base_url)
    summary = done.get("summary", {})
    lost = samples - summary.get("samples", 0)
    lost += round((summary.get("unscored_rate") or 0) * summary.get("samples", 0))
    rate = samples * votes / done["seconds"]
    return (
        f"{weather:22}{done['seconds']:9.1f}{rate:9.0f}{counted['calls']:9}{counted['faults']:8}"
        f"{lost:7}{done['stops']:7}{done['peak']:9.0f}"
    )


def killed(samples: int, votes: int) -> str:
    """Kill a run half-way, resume it, and return how many calls were made again."""
    with tempfile.TemporaryDirectory() as folder, storm("calm") as base_url:
        place = Path(folder)
        write_suite(place, samples, votes, 60)
        with subprocess.Popen(
            command(place, base_url, again=False),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as child:
            while material.count(base_url)["calls"] < samples * votes / 2:
                time.sleep(0.005)
            child.send_signal(signal.SIGKILL)
        time.sleep(2 * LATENCY)
        subprocess.run(command(place, base_url, again=True), capture_output=True, check=False)
        calls = material.count(base_url)["calls"]
    return f"killed half-way: {calls - samples * votes} of {samples * votes} calls made again"


def main() -> None:
    """Print one row a weather."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--serve", choices=WEATHERS)
    parser.add_argument("--only", nargs="+", choices=[*WEATHERS, "kill"])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--votes", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=5, help="of a call, in seconds")
    parser.add_argument("--keep", type=Path, help="a folder for the files of the runs")
    options = parser.parse_args()
    if options.serve:
        endpoint = Storm(options.serve, load("jurybox").replies)
        print(endpoint.listen(0), flush=True)
        endpoint.serve()
    heads = ("seconds", "calls/s", "calls", "faults", "lost", "stops", "peak MB")
    widths = (9, 9, 9, 8, 7, 7, 9)
    print(" " * 22 + "".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)))
    for weather in options.only or WEATHERS:
        if weather != "kill":
            each = measured(weather, options.samples, options.votes, options.timeout, options.keep)
            print(each, flush=True)
    if not options.only or "kill" in options.only:
        for _ in range(3):
            print(killed(options.samples, options.votes))


if __name__ == "__main__":
    main()
