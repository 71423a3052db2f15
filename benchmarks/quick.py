"""What jurybox costs today, within a minute: `make bench-quick`.

All of it against the fake endpoint of endpoint.py, without latency, so that what is left is ours:
CPU time a sample beside the floor of the same requests in the same run; starting; rules only; and
where the time of a sample goes (see stages.py for how that is measured and what it can't tell).

CPU time is that of the whole process minus that of a run of ten samples, divided by the rest: what
a further sample costs. Elapsed time is shown too, but means little on a busy machine. A core that
others use too is slow for spells, in CPU time as well; "full speed" is the CPU time at the best
pace that the machine had around any of the runs (see `processes.pace`).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import drive
import material
import startup
from material import Job
from processes import HERE, Row, best_pace, driven, endpoint, machine, replies_of

FEW = 10
ROWS = ("floor:socket", "floor:client", "jurybox", "jurybox:votes3", "jurybox:general")
STARTS = ('python -c "import jurybox"', "jurybox --version")


def each_sample(row: Row, few: Row, best: float) -> tuple[float, float, float]:
    """Return the milliseconds of a further sample: CPU, CPU at the best pace, elapsed."""
    more = (row["samples"] - few["samples"]) / 1000
    at_best = [each["cpu_seconds"] * best / each["pace"] for each in (row, few)]
    return (
        (row["cpu_seconds"] - few["cpu_seconds"]) / more,
        (at_best[0] - at_best[1]) / more,
        (row["seconds"] - few["seconds"]) / more,
    )


def record_body(base_url: str, folder: Path) -> Path:
    """Keep the request that the endpoint got last, for the floor to post."""
    file = folder / "body.json"
    file.write_text(json.dumps(material.ask(f"{base_url.removesuffix('/v1')}/last")))
    return file


def print_calls(base_url: str, place: Path, samples: int, repeats: int) -> None:
    """Print the cost of a judged sample, next to the floor."""
    numbers = iter(range(10**6))
    driven("jurybox", base_url, FEW, place / "body")
    body = ("--body", str(record_body(base_url, place)))

    def row(name: str, size: int) -> Row:
        measured = driven(name, base_url, size, place / f"{next(numbers)}", body)
        if measured["judged"] != size:
            raise SystemExit(f"{name}: {measured['notes']}\n{measured.get('words', '')}")
        return measured

    print(f"\none further sample, {samples:,} of them, median of {repeats}")
    heads = f"{'CPU ms':>9}{'full speed':>12}{'ms':>9}{'samples/s':>11}{'peak MB':>9}"
    print(f"{'':18}{heads}{'of client':>11}")
    taken: dict[str, list[tuple[Row, Row]]] = {name: [] for name in ROWS}
    for _ in range(repeats):
        for name in ROWS:
            # The floors are so quick that a start would hide them.
            measured = row(name, samples * 10 if name.startswith("floor") else samples)
            few = min((row(name, FEW) for _ in range(2)), key=lambda each: each["cpu_seconds"])
            taken[name].append((measured, few))
    best = best_pace(each for pairs in taken.values() for pair in pairs for each in pair)
    medians = {
        name: [
            statistics.median(values)
            for values in zip(*(each_sample(*pair, best) for pair in pairs), strict=True)
        ]
        for name, pairs in taken.items()
    }
    client = medians["floor:client"][0]
    for name, (cpu, at_best, elapsed) in medians.items():
        if min(cpu, at_best, elapsed, client) <= 0:
            print(f"{name:18}  lost in the noise: take more samples, or a quieter machine")
            continue
        peak = max(measured["peak_mb"] for measured, _ in taken[name])
        print(
            f"{name:18}{cpu:9.3f}{at_best:12.3f}{elapsed:9.3f}{1000 / elapsed:11,.0f}"
            f"{peak:9.1f}{cpu / client:11.1f}"
        )


def print_endpoint(base_url: str, place: Path, samples: int) -> None:
    """Print what the endpoint itself can do."""
    driven("floor:socket", base_url, samples, place / "endpoint")
    counted = material.count(base_url)
    each = counted["cpu_seconds"] / counted["calls"]
    print(f"endpoint: {each * 1e6:.0f} µs CPU a call, so {1 / each:,.0f} calls/s on one core")


def first_calls(base_url: str, place: Path, repeats: int) -> Iterator[float]:
    """Yield the seconds from starting `jurybox run` with ten samples to its first call."""
    sys.modules.pop("peer_jurybox", None)
    drive.load("jurybox")
    jurybox = sys.modules["peer_jurybox"]
    for number in range(repeats):
        folder = place / f"first{number}"
        folder.mkdir()
        job = Job(base_url=base_url, count=FEW, concurrency=32, folder=folder)
        suite = jurybox.write_suite(job)
        command = [jurybox.PROGRAM, "run", str(suite), "--base-url", base_url]
        command += ["--store", str(jurybox.store(job)), "--json"]
        material.reset(base_url)
        began = time.time()
        subprocess.run(
            command,
            env=os.environ | {"OPENAI_API_KEY": "none"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        yield material.count(base_url)["first_call"] - began


def print_starting(base_url: str, place: Path, repeats: int) -> None:
    """Print what it takes to begin."""
    print(f"\nstarting, median of {repeats}")
    bare = statistics.median(
        startup.cpu_milliseconds(startup.COMMANDS[startup.BARE]) for _ in range(repeats)
    )
    for name in STARTS:
        times = [startup.cpu_milliseconds(startup.COMMANDS[name]) for _ in range(repeats)]
        median = statistics.median(times)
        print(f"{name:36}{median:8.1f} ms CPU, {median - bare:.1f} more than an empty program")
    first = statistics.median(first_calls(base_url, place, repeats))
    print(f"{'jurybox run, ten samples, first call':36}{first * 1000:8.1f} ms after the command")


def stage_seconds(base_url: str, place: Path, samples: int) -> tuple[dict[str, float], int]:
    """Run jurybox under the profile, and return its seconds by stage."""
    place.mkdir()
    jurybox = sys.modules["peer_jurybox"]
    job = Job(base_url=base_url, count=samples, concurrency=32, folder=place)
    command = [sys.executable, str(HERE / "stages.py"), "run", str(jurybox.write_suite(job))]
    command += ["--base-url", base_url, "--store", str(jurybox.store(job)), "--json"]
    measured = subprocess.run(
        command,
        env=os.environ | {"OPENAI_API_KEY": "none"},
        capture_output=True,
        text=True,
        check=False,
    )
    if measured.returncode != 0:
        raise SystemExit(f"the profile failed\n{measured.stderr}")
    found = json.loads(measured.stdout.strip().splitlines()[-1])
    return found["seconds"], found["looks"]


def print_stages(base_url: str, place: Path, samples: int) -> None:
    """Print how the time of a sample is spent."""
    few, _ = stage_seconds(base_url, place / "few", FEW)
    many, looks = stage_seconds(base_url, place / "many", samples)
    each = {stage: max(0.0, many[stage] - few[stage]) / (samples - FEW) * 1e6 for stage in many}
    total = sum(each.values()) or 1.0
    print(f"\nstages of one vote, µs CPU a sample, of {looks:,} looks")
    for stage, microseconds in each.items():
        print(f"{stage:18}{microseconds:9.0f}{microseconds / total:8.0%}")
    print(f"{'together':18}{total:9.0f}")


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1000, help="judged samples (1000)")
    parser.add_argument("--rules", type=int, default=20_000, help="samples by rules (20000)")
    parser.add_argument("--repeats", type=int, default=1, help="rounds to measure (1)")
    parser.add_argument("--without-rules", action="store_true", help="leave those out")
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with endpoint(replies_of(("jurybox", "floor")), place) as base_url:
            print_endpoint(base_url, place, options.samples * 10)
            print_calls(base_url, place, options.samples, options.repeats)
            print_starting(base_url, place, max(3, options.repeats))
            print_stages(base_url, place, options.samples)
    print(flush=True)
    if options.without_rules:
        return
    runs = [sys.executable, str(HERE / "runs.py"), "--sizes", str(options.rules)]
    subprocess.run(runs, check=True)


if __name__ == "__main__":
    main()
