"""What an endpoint that misbehaves costs a run: lost samples, throughput, memory, repeated calls.

Every row is one `jurybox run` against an endpoint whose weather follows a schedule, counted in
seconds since its first call; where the run stops, it is resumed until it is finished. With
`--kills N` a run is killed N times and resumed. `--program` measures another release by its
executable. With `--serve WEATHER` only the endpoint is started.
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


STATUS = {
    "408": ("408 Request Timeout",),
    "409": ("409 Conflict",),
    "425": ("425 Too Early",),
    "429": ("429 Too Many Requests", "Retry-After: 1"),
    "500": ("500 Internal Server Error",),
    "501": ("501 Not Implemented",),
    "502": ("502 Bad Gateway",),
    "503": ("503 Service Unavailable",),
    "504": ("504 Gateway Timeout",),
    "520": ("520 Unknown",),
    "529": ("529 Overloaded",),
    "301": ("301 Moved Permanently", "Location: http://127.0.0.1:9/elsewhere"),
    "302": ("302 Found", "Location: http://127.0.0.1:9/elsewhere"),
    "redirect": ("307 Temporary Redirect", "Location: http://127.0.0.1:9/elsewhere"),
}
LARGE = http("200 OK", b'{"choices": "' + b"x" * 20 * MEGABYTE + b'"}')
BODIES = {
    "large": LARGE,
    "garbage": http("200 OK", b'{"choices": [<html>'),
    "html": http("200 OK", b"<!DOCTYPE html><title>busy</title>"),
    "empty": http("200 OK", b""),
    "a list": http("200 OK", b"[1, 2]"),
    "no choices": http("200 OK", b'{"choices": []}'),
    "no text": http("200 OK", b'{"choices": [{"message": {"content": null}}]}'),
    "no utf-8": http("200 OK", b'{"choices": "\xff\xfe"}'),
    "no http": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
}
KINDS = (*STATUS, *BODIES, "reset", "hang", "cut")


def evenly(odds: float) -> Odds:
    """Spoil calls at random, with all kinds of faults."""
    return lambda _, chance: chance.choice(KINDS) if chance.random() < odds else ""


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
    "28% of all kinds": evenly(0.28),
}


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
        if self.fault == "cut":
            return super().chosen(kind, data)[0][:-40], True, self.latency
        if self.fault in BODIES:
            return BODIES[self.fault], self.fault == "no http", self.latency
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


def write_suite(place: Path, samples: int, votes: int) -> None:
    """Write suite, rubric and dataset."""
    peer = sys.modules[load("jurybox").judge.__module__]
    job = material.Job(base_url="", count=samples, concurrency=64, folder=place)
    path: Path = peer.write_suite(job)
    suite = json.loads(path.read_text())
    suite["judge"] |= {"votes": votes}
    path.write_text(json.dumps(suite))


def command(place: Path, base_url: str, *, again: bool) -> list[str]:
    """Return how to start the run, or to resume it."""
    start = ["resume", "last"] if again else ["run", str(place / "suite.yaml")]
    store = ["--store", os.environ.get("STORM_STORE") or str(place / "runs.db")]
    program = os.environ.get("STORM_PROGRAM", PROGRAM)
    return [program, *start, "--base-url", base_url, *store, "--json"]


def finished(place: Path, base_url: str, *, again: bool = False) -> dict[str, Any]:
    """Run to the end, resuming as long as that helps; return the last result and what it took."""
    began, peak, stops = time.monotonic(), 0.0, 0
    done: dict[str, Any] = {}
    while done.get("status") != "finished" and stops < 5:  # noqa: PLR2004
        with (
            (place / "words").open("a") as words,
            subprocess.Popen(
                command(place, base_url, again=again or bool(stops)),
                stdout=subprocess.PIPE,
                stderr=words,
            ) as child,
        ):
            out = child.stdout.read() if child.stdout else b""
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        peak = max(peak, usage.ru_maxrss / 1024)
        done = json.loads(out) if out else {}
        stops += 1
    return done | {"seconds": time.monotonic() - began, "peak": peak, "stops": stops - 1}


def measured(weather: str, samples: int, votes: int, keep: Path | None) -> str:
    """Run under a weather, and return a row of the table."""
    with tempfile.TemporaryDirectory() as folder, storm(weather) as base_url:
        place = keep or Path(folder)
        write_suite(place, samples, votes)
        done = finished(place, base_url)
        counted = material.count(base_url)
    summary = done.get("summary", {})
    lost = samples - summary.get("samples", 0)
    lost += round((summary.get("unscored_rate") or 0) * summary.get("samples", 0))
    rate = samples * votes / done["seconds"]
    return (
        f"{weather:22}{done['seconds']:9.1f}{rate:9.0f}{counted['calls']:9}{counted['faults']:8}"
        f"{lost:7}{done['stops']:7}{done['peak']:9.0f}{os.getloadavg()[0]:7.1f}"
    )


def killed(samples: int, votes: int, kills: int) -> str:
    """Kill a run again and again, resume it, and return how many calls were made again."""
    moments = random.Random(kills)  # noqa: S311 - nothing secret
    calls = samples * votes
    with tempfile.TemporaryDirectory() as folder, storm("calm") as base_url:
        place = Path(folder)
        write_suite(place, samples, votes)
        made = 0
        for kill in range(kills):
            with subprocess.Popen(
                command(place, base_url, again=kill > 0 and made > 0),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as child:
                goal = material.count(base_url)["calls"] + calls / kills * moments.uniform(0.1, 0.9)
                while child.poll() is None and material.count(base_url)["calls"] < goal:
                    time.sleep(0.005)
                child.send_signal(signal.SIGKILL)
            time.sleep(2 * LATENCY)
            made = material.count(base_url)["calls"]
        done = finished(place, base_url, again=True)
        again = material.count(base_url)["calls"] - calls
    complete = done.get("summary", {}).get("samples") == samples
    return (
        f"killed {kills} times, {done.get('status')}{'' if complete else ' INCOMPLETE'}:"
        f" {again} of {calls} calls made again, {again / kills:.0f} per kill"
        f" (64 at once; load {os.getloadavg()[0]:.1f})"
    )


def main() -> None:
    """Print one row a weather."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--serve", choices=WEATHERS)
    parser.add_argument("--only", nargs="*", choices=WEATHERS)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--program", help="the executable of another release")
    parser.add_argument("--store", help="of the runs, such as a database's address")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--votes", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=5, help="of a call, in seconds")
    parser.add_argument("--keep", type=Path, help="a folder for the files of the runs")
    options = parser.parse_args()
    if options.serve:
        endpoint = Storm(options.serve, load("jurybox").replies)
        print(endpoint.listen(0), flush=True)
        endpoint.serve()
    os.environ["JURYBOX_TIMEOUT"] = f"{options.timeout:g}"
    os.environ["STORM_PROGRAM"] = options.program or PROGRAM
    os.environ["STORM_STORE"] = options.store or ""
    heads = ("seconds", "calls/s", "calls", "faults", "lost", "stops", "peak MB", "load")
    widths = (9, 9, 9, 8, 7, 7, 9, 7)
    print(" " * 22 + "".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)))
    for weather in WEATHERS if options.only is None else options.only:
        print(measured(weather, options.samples, options.votes, options.keep), flush=True)
    if options.kills:
        print(killed(options.samples, options.votes, options.kills))


if __name__ == "__main__":
    main()
