"""What is left of a run that is killed when half of its calls are made.

The endpoint takes its time, so that the moment is well defined. The driver's processes get SIGKILL
all at once; then the tool's own files are looked into, and the tool is started again, with its way
of going on where it has one.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import drive
import material
from processes import Row, command_of, driven, endpoint, surroundings

LATENCY = 100.0
PATIENCE = 300.0
MOMENT = 0.005


def killed(name: str, replies: Mapping[str, Any], place: Path, samples: int) -> Row:
    """Kill a run half-way, and return what was paid, what is left, and what the second took."""
    place.mkdir()
    folder = place / "work"
    with endpoint(replies, place, LATENCY) as base_url:
        paid, answered = kill_half_way(name, base_url, samples, folder)
        if not paid:
            return {"name": name, "samples": samples, "notes": "it ended before it could be killed"}
        told = driven(name, base_url, samples, folder, ("--survey",))
        second = driven(name, base_url, samples, folder, ("--again",))
    return {
        "name": name,
        "samples": samples,
        "paid": paid,
        "answered": answered,
        "kept": told.get("kept"),
        "calls_to_finish": second.get("calls"),
        "judged": second["judged"],
        "notes": "; ".join(filter(None, (told.get("notes", ""), second["notes"]))),
    }


def kill_half_way(name: str, base_url: str, samples: int, folder: Path) -> tuple[int, int]:
    """Start a driver, kill it when half of the calls are made, and return how many were.

    The second number leaves out those that were under way, whose answers nobody can have kept.
    """
    peer = drive.load(name.partition(":")[0])
    calls = samples * (3 if name.endswith(":votes3") else 1)
    folder.mkdir(parents=True)
    with (folder.parent / "words").open("w") as words:
        process = subprocess.Popen(
            command_of(name, base_url, samples, folder),
            env=surroundings(peer, folder.with_name("work.home")),
            stdout=words,
            stderr=words,
            start_new_session=True,
        )
        give_up = time.monotonic() + PATIENCE
        while (counted := material.count(base_url))["calls"] < calls / 2:
            if process.poll() is not None or time.monotonic() > give_up:
                break
            time.sleep(MOMENT)
        alive = process.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    # What was sent before the kill still arrives.
    time.sleep(2 * LATENCY / 1000)
    if not alive:
        return 0, 0
    return material.count(base_url)["calls"], counted["calls"] - counted["in_flight"]


def described(row: Row) -> str:
    """Return a row as the table has it."""
    if not row.get("paid"):
        return f"{row['name']:18}  {row['notes']}"
    wanted = row["samples"] * (3 if row["name"].endswith(":votes3") else 1)
    twice = row["paid"] + (row["calls_to_finish"] or 0) - wanted
    finished = "yes" if row["judged"] == row["samples"] else str(row["judged"])
    cells = (row["paid"], row["answered"], row["kept"], row["calls_to_finish"], twice)
    return f"{row['name']:18}" + "".join(f"{cell!s:>12}" for cell in cells) + f"{finished:>10}"
