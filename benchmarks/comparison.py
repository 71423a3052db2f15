"""The tables of side_by_side.py: medians, spread, and ratios to jurybox."""

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import survival
from material import Peer
from processes import Row, best_pace
from quick import FEW

OURS = "jurybox"
NONE = "-"


def start(command: Sequence[str], environment: Mapping[str, str]) -> Row:
    """Run a command that only starts, and return its CPU and its elapsed milliseconds."""
    began = time.monotonic()
    child = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return {
        "cpu_ms": round((usage.ru_utime + usage.ru_stime) * 1000, 1),
        "ms": round((time.monotonic() - began) * 1000, 1),
        "exit": child.returncode,
    }


def ends(rows: Iterable[Row]) -> tuple[Row | None, Row | None]:
    """Return the median rows of the smallest and of the largest size."""
    by_size: dict[int, list[Row]] = {}
    for row in rows:
        by_size.setdefault(row["samples"], []).append(row)
    if not by_size:
        return None, None
    middle = [
        sorted(by_size[size], key=lambda row: row["seconds"])[len(by_size[size]) // 2]
        for size in (min(by_size), max(by_size))
    ]
    return middle[0], middle[1]


def print_all(rows: Sequence[Row], names: Sequence[str], ready: Mapping[str, Peer]) -> None:
    """Print every table."""
    runs = [row for row in rows if row["kind"] == "run"]
    whole = [row for row in runs if row["judged"] == row["samples"]]
    start_cpu = {
        name: median(row["cpu_seconds"] for row in whole if of(row, name, FEW)) for name in names
    }
    for size in sorted({row["samples"] for row in runs} - {FEW}):
        print_size(runs, names, size, start_cpu)
    print_installed(rows, names, ready)
    print_kills(rows, ready)
    notes = {(row["name"], row["notes"]) for row in rows if row.get("notes")}
    for name, note in sorted(notes):
        print(f"note: {name}: {note}")


def of(row: Row, name: str, size: int) -> bool:
    """Return whether a row is this tool's at this size."""
    return row["name"] == name and row["samples"] == size


def median(values: Iterable[float]) -> float | None:
    """Return the median, if there is one."""
    found = list(values)
    return statistics.median(found) if found else None


def print_size(
    runs: Sequence[Row], names: Sequence[str], size: int, start_cpu: Mapping[str, float | None]
) -> None:
    """Print the table of one size."""
    best = best_pace(runs)
    metrics: dict[str, tuple[Callable[[Row], float], str]] = {
        "CPU ms, all": (lambda row: row["cpu_seconds"] * 1000 / size, ",.2f"),
        "at full speed": (
            lambda row: row["cpu_seconds"] * best / row["pace"] * 1000 / size,
            ",.2f",
        ),
        "samples/s": (lambda row: size / row["seconds"], ",.0f"),
        "peak MB": (lambda row: row["peak_mb"], ",.0f"),
    }
    print(f"\n{size:,} samples: median (least - most), and how many times that of jurybox")
    heads = "".join(f"{head:>26}{'ratio':>8}" for head in metrics)
    print(f"{'a sample':18}{'CPU ms more':>12}{'ratio':>8}{heads}")
    found = {name: [row for row in runs if of(row, name, size)] for name in names}
    whole = {n: [r for r in rows if r["judged"] == r["samples"]] for n, rows in found.items()}

    def further(name: str) -> float | None:
        start, more = start_cpu[name], median(row["cpu_seconds"] for row in whole[name])
        if start is None or more is None or size <= FEW:
            return None
        # A small run on a busy machine can take less than one of ten samples: that says nothing.
        return (more - start) / (size - FEW) * 1000 if more > start else None

    ours = further(OURS) if OURS in names else None
    for name in names:
        if not found[name]:
            continue
        if not whole[name]:
            print(f"{name:18}  {why_not(found[name][0])}")
            continue
        mine = further(name)
        cells = f"{NONE if mine is None else f'{mine:,.3f}':>12}{ratio(mine, ours):>8}"
        for metric, form in metrics.values():
            values = [metric(row) for row in whole[name]]
            middle = statistics.median(values)
            spread = f"({min(values):{form}} - {max(values):{form}})"
            base = median(metric(row) for row in whole.get(OURS, ()))
            cells += f"{f'{middle:{form}} {spread}':>26}{ratio(middle, base):>8}"
        print(f"{name:18}{cells}")


def why_not(row: Row) -> str:
    """Say why a cell is empty."""
    if not row.get("not_run"):
        return row["notes"]
    if row["minutes"] is None:
        return "not run, for it failed before"
    return f"not run (~{row['minutes']:,.0f} min)"


def ratio(value: float | None, base: float | None) -> str:
    """Return how many times the base a value is."""
    if value is None or not base:
        return NONE
    times = value / base
    return f"{times:,.2f}" if times < 10 else f"{times:,.0f}"  # noqa: PLR2004 - no digits to waste


def print_installed(rows: Sequence[Row], names: Sequence[str], ready: Mapping[str, Peer]) -> None:
    """Print what it takes to have a tool and to start it, and what it leaves."""
    print("\nstarting and installing, medians")
    print(
        f"{'':16}{'start, CPU ms':>14}{'ms':>8}{'ten samples, s':>16}{'packages':>10}{'MB':>8}"
        f"{'kept/sample':>13}  what starts; what is kept"
    )
    for name, peer in ready.items():
        if name == "floor":
            continue
        starts = [row for row in rows if row["kind"] == "start" and row["name"] == name]
        size = next(row for row in rows if row["kind"] == "size" and row["name"] == name)
        runs = [row for row in rows if row["kind"] == "run" and row["name"] == name]
        whole = [row for row in runs if row["judged"] == row["samples"]]
        few, most = ends(whole)
        begins = peer.starts if isinstance(peer.starts, str) else f"{name} --version"
        kept = most["kept_bytes"] / most["samples"] / 1000 if most else 0.0
        print(
            f"{name:16}{median(row['cpu_ms'] for row in starts) or 0:14,.0f}"
            f"{median(row['ms'] for row in starts) or 0:8,.0f}"
            f"{few['seconds'] if few else 0:16.2f}{size['packages']:10}{size['mb']:8,.0f}"
            f"{kept:10.1f} kB  {begins}; {peer.keeps}"
        )
    versions = {row["name"]: row["version"] for row in rows if row.get("version")}
    print("versions: " + ", ".join(f"{n} {versions[n]}" for n in names if n in versions))
    for row in rows:
        if row["kind"] == "problem":
            print(f"{row['name']}: {row['notes']}")


def print_kills(rows: Sequence[Row], ready: Mapping[str, Peer]) -> None:
    """Print what survives a kill."""
    kills = [row for row in rows if row["kind"] == "kill"]
    if not kills:
        return
    print(f"\nkilled half-way, of {kills[0]['samples']} samples, {survival.LATENCY:g} ms a call")
    heads = ("paid", "answered", "kept", "calls after", "paid twice")
    print(f"{'':18}" + "".join(f"{head:>12}" for head in heads) + f"{'finished':>10}  by")
    for row in kills:
        print(f"{survival.described(row)}  {ready[row['name'].partition(':')[0]].again}")
