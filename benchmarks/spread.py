"""What a Ray cluster adds: samples per second by workers, and the cost of a sample.

A cluster of one head without workers and nodes of one worker each, all on this machine; so beyond
its cores more workers only help to wait. Times are those of a further sample: of two runs, the
difference in seconds divided by the difference in samples, which leaves out starting.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from processes import endpoint, machine, replies_of

from jurybox.engine.records import ExchangeRow, SampleRow
from jurybox.storage import open_store
from jurybox.storage.store import Store

JURYBOX = str(Path(sys.executable).parent / "jurybox")
CALLS = 64
AT_ONCE = 250
LATENCY = 200
CLUSTER = """
import sys
from ray.cluster_utils import Cluster
few = {"object_store_memory": 80_000_000}
cluster = Cluster(
    initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **few}
)
for _ in range(int(sys.argv[1])):
    cluster.add_node(num_cpus=1, wait=False, **few)
cluster.wait_for_nodes()
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@contextmanager
def ray_cluster(workers: int) -> Iterator[tuple[list[str], int]]:
    """Start a cluster; yield the options that name it, and the process that started it."""
    with subprocess.Popen(
        [sys.executable, "-c", CLUSTER, str(workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
    ) as process:
        if process.stdin is None or process.stdout is None:
            raise SystemExit("the cluster doesn't start")
        try:
            address = process.stdout.readline().strip()
            yield ["--engine", "ray", "--address", address], process.pid
        finally:
            process.stdin.close()
            process.wait(60)


def write_judged(place: Path, samples: int, calls: int) -> Path:
    """Write a suite whose samples are judged with one vote."""
    rows = (
        json.dumps({"id": f"s{each}", "task": f"What is {each} + 1?", "response": f"{each + 1}"})
        for each in range(samples)
    )
    (place / f"{samples}.jsonl").write_text("\n".join(rows) + "\n")
    suite = place / f"{samples}-{calls}.yaml"
    suite.write_text(
        f"suite: spread\nrubric: general\ndataset: {samples}.jsonl\n"
        f"judge: {{models: [openai/judge-general-2025-01-01], votes: 1}}\nconcurrency: {calls}\n"
    )
    return suite


def write_rules(place: Path, samples: int) -> Path:
    """Write a suite of Parquet rows that the rubric's rules score."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([("id", pa.string()), ("task", pa.string()), ("response", pa.string())])
    with parquet.ParquetWriter(place / "rows.parquet", schema) as writer:
        for start in range(0, samples, 10_000):
            numbers = range(start, min(start + 10_000, samples))
            columns = {
                "id": [f"r{each}" for each in numbers],
                "task": [f"I feel sad about number {each}." for each in numbers],
                "response": [f"I'm sorry. What troubles you about {each}?" for each in numbers],
            }
            writer.write_table(pa.table(columns, schema=schema))
    suite = place / "rules.yaml"
    suite.write_text("suite: rules\nrubric: companion\ndataset: rows.parquet\n")
    return suite


class Cost(NamedTuple):
    """The seconds of a run, and the CPU seconds of its process and of the whole cluster."""

    elapsed: float
    cpu: float


def cost(suite: Path, *options: str, cluster: int | None = None) -> Cost:
    """Run a suite in a new store; return what it took, with the processes of a cluster."""
    with tempfile.TemporaryDirectory() as folder, cpu_meter(cluster) as used:
        command = [JURYBOX, "run", str(suite), "--store", f"{folder}/runs.db", "--json", *options]
        began = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "OPENAI_API_KEY": "sk-benchmark"},
        )
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in {0, 1}:
        raise SystemExit(f"exit status {ended.returncode}: {ended.stderr}")
    cpu = own.ru_utime + own.ru_stime - began.ru_utime - began.ru_stime
    return Cost(json.loads(ended.stdout)["elapsed_s"], cpu + sum(used.values()))


@contextmanager
def cpu_meter(process: int | None) -> Iterator[dict[int, float]]:
    """Yield the CPU seconds, from now on, of each process that one has started."""
    before = cpu_by_process(process)
    used: dict[int, float] = {}
    ended = threading.Event()

    def watch() -> None:
        # Often, because what a process took is gone with it.
        while not ended.wait(0.2):
            for each, seconds in cpu_by_process(process).items():
                used[each] = seconds - before.get(each, 0.0)

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield used
    finally:
        ended.set()
        watching.join()


def cpu_by_process(process: int | None) -> dict[int, float]:
    """Return the CPU seconds of all living processes that one has started, at any depth."""
    stats: dict[int, tuple[int, float]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            words = file.read_text().rpartition(")")[2].split()
            ticks = int(words[11]) + int(words[12])
            stats[int(file.parent.name)] = (int(words[1]), ticks / os.sysconf("SC_CLK_TCK"))
    family = {process}
    while grown := {child for child, (parent, _) in stats.items() if parent in family} - family:
        family |= grown
    return {each: stats[each][1] for each in family if each in stats}


def further(few: Path, many: Path, samples: int, *options: str, cluster: int | None = None) -> Cost:
    """Return what a further sample takes, of so many that one suite has more than another."""
    less, more = (cost(suite, *options, cluster=cluster) for suite in (few, many))
    return Cost((more.elapsed - less.elapsed) / samples, (more.cpu - less.cpu) / samples)


def print_workers(place: Path, samples: int, workers: list[int], replies: dict[str, Any]) -> None:
    """Print the samples per second against an endpoint that takes its time, and the overhead."""
    print(f"\n{LATENCY} ms latency, {CALLS} calls at once per worker, {samples:,} samples for each")
    print("                 samples/s   ms of CPU per further sample, driver and cluster")
    few = max(50, samples // 10)
    with endpoint(replies, place, LATENCY) as url:
        suites = [write_judged(place, each, CALLS) for each in (few, few + samples)]
        local = further(*suites, samples, "--base-url", url)
        print(f"  local engine  {1 / local.elapsed:10,.0f}{local.cpu * 1e3:10.2f}")
        for count in workers:
            sizes = (few * count, (few + samples) * count)
            suites = [write_judged(place, each, CALLS * count) for each in sizes]
            with ray_cluster(count) as (ray, pid):
                each = further(*suites, samples * count, "--base-url", url, *ray, cluster=pid)
            line = f"  {count} workers     {1 / each.elapsed:10,.0f}{each.cpu * 1e3:10.2f}"
            print(f"{line}, so Ray adds {(each.cpu - local.cpu) * 1e3:.2f}")


def print_storing(place: Path, samples: int, replies: dict[str, Any], server: str | None) -> None:
    """Print what it takes to store a judged sample."""
    suite, whole = write_judged(place, samples, CALLS), place / "whole.db"
    with endpoint(replies, place) as url:
        command = [JURYBOX, "run", str(suite), "--store", str(whole), "--base-url", url]
        keys = {**os.environ, "OPENAI_API_KEY": "sk-benchmark"}
        subprocess.run(command, capture_output=True, check=False, env=keys)
    store = open_store(str(whole), create=False)
    (run,) = store.runs()
    rows, exchanges = [*store.samples(run.id)], [*store.exchanges(run.id)]
    store.close()
    print("\nper judged sample with one reply: ms of CPU here, ms elapsed")
    for name, address in (("SQLite", str(place / "copy.db")), ("PostgreSQL", server)):
        if address is not None:
            with closing(open_store(address)) as copy:
                copy.create_run(run)
                print_timed(f"stored in {name}", samples, lambda: append(copy, rows, exchanges))


def append(store: Store, rows: list[SampleRow], exchanges: list[ExchangeRow]) -> None:
    """Store rows as a run does under load, some hundred at once."""
    for at in range(0, len(rows), AT_ONCE):
        store.append(rows[at : at + AT_ONCE], exchanges[at : at + AT_ONCE])


def print_timed(name: str, samples: int, work: Callable[[], object]) -> None:
    """Print the CPU and elapsed time of work by sample."""
    elapsed, cpu = time.perf_counter(), time.process_time()
    work()
    cpu, elapsed = time.process_time() - cpu, time.perf_counter() - elapsed
    print(f"  {name:24}{cpu / samples * 1e3:8.3f}{elapsed / samples * 1e3:8.3f}")


def print_rules(place: Path, rows: int, workers: int) -> None:
    """Print the rows per second of a suite without a model, through Ray Data."""
    suite = write_rules(place, rows)
    with ray_cluster(workers) as (ray, pid):
        elapsed, cpu = cost(suite, *ray, cluster=pid)
    print(f"\n{rows:,} rows by rules through Ray Data, {workers} workers:", end=" ")
    print(f"{elapsed:,.0f} s, {rows / elapsed:,.0f} rows/s, {cpu / rows * 1e3:.2f} ms of CPU each")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=2000, help="samples per worker (2000)")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows by rules (1000000)")
    parser.add_argument("--postgres", metavar="URL", help="an empty database to store in as well")
    options = parser.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        replies = replies_of(["jurybox:general"])
        if options.samples:
            print_storing(place, options.samples, replies, options.postgres)
            print_workers(place, options.samples, options.workers, replies)
        if options.rows:
            print_rules(place, options.rows, min(options.workers[-1], os.cpu_count() or 1))


if __name__ == "__main__":
    main()
