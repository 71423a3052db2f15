"""A simulation of a run on a cluster: shards, workers, leased calls, turns, and the store.

It uses the real rules of the shared budget (`jurybox.engine.limiter`) in simulated time, with
costs that were measured elsewhere (spread.py, quick.py, and the store's below), and prints how many
samples per second come out for each number of workers, and what is busy most: there the bottleneck
is. docs/reference/capacity.md explains the table.
"""

import argparse
from collections import deque
from collections.abc import Iterator
from typing import Any

import simpy

from jurybox.engine.limiter import SharedBudget
from jurybox.suite.model_spec import ModelSpec

BEAT = 0.2
Wait = Iterator[Any]


class Cluster:
    """Workers that take shards, an endpoint, and a store, each with its queue."""

    def __init__(self, options: argparse.Namespace, workers: int) -> None:
        self.options = options
        self.env = simpy.Environment()
        self.budget = SharedBudget(options.calls)
        self.spec = ModelSpec(model="m/m", max_requests_per_minute=options.per_minute)
        self.store = simpy.Resource(self.env, capacity=1)
        self.left = options.samples
        self.done = 0
        self.store_busy = self.worker_busy = self.call_time = 0.0
        self.workers = workers
        for number in range(workers):
            self.env.process(self.work(f"w{number}"))

    def work(self, name: str) -> Wait:
        """Finish one shard after the other."""
        options, env = self.options, self.env
        processor = simpy.Resource(env, capacity=1)
        while self.left > 0:
            size = min(options.shard, self.left)
            self.left -= size
            yield env.timeout(options.start / 1000)
            shard = Shard(self, name, processor, size)
            env.process(shard.beat())
            yield shard.finished
            self.budget.release(name)

    def busy(self) -> dict[str, float]:
        """Return the share of the time that each part was busy."""
        elapsed = self.env.now
        return {
            "workers": self.worker_busy / elapsed / self.workers,
            "endpoint": self.call_time / elapsed / self.options.calls,
            "store": self.store_busy / elapsed,
        }


class Shard:
    """The samples of one worker: as many at once as were granted."""

    def __init__(
        self, cluster: Cluster, holder: str, processor: simpy.Resource, samples: int
    ) -> None:
        self.cluster = cluster
        self.env = cluster.env
        self.holder = holder
        self.processor = processor
        self.waiting = samples
        self.used = self.granted = 0
        self.remaining = samples
        self.asking: deque[simpy.Event] = deque()
        self.finished = cluster.env.event()

    def beat(self) -> Wait:
        """Renew the share five times a second."""
        while self.remaining:
            wanted = self.used + self.waiting
            demand = {"endpoint": (max(1, wanted), self.used)}
            granted = self.cluster.budget.renew(self.holder, demand, self.env.now)
            self.granted = granted["endpoint"]
            self.begin()
            yield self.env.timeout(BEAT)

    def begin(self) -> None:
        """Start samples while there is room for their calls."""
        while self.waiting and self.used < self.granted:
            self.waiting -= 1
            self.used += 1
            self.env.process(self.sample())

    def sample(self) -> Wait:
        """Ask, wait, score and store one sample."""
        cluster, options = self.cluster, self.cluster.options
        if options.per_minute:
            turn = self.env.event()
            self.asking.append(turn)
            if len(self.asking) == 1:
                self.env.process(self.ask())
            yield turn
        yield from self.compute(options.cpu / 2000)
        yield self.env.timeout(options.latency / 1000)
        cluster.call_time += options.latency / 1000
        yield from self.compute(options.cpu / 2000)
        self.used -= 1
        self.begin()
        with cluster.store.request() as turn:
            yield turn
            yield self.env.timeout(options.store / 1000)
            cluster.store_busy += options.store / 1000
        cluster.done += 1
        self.remaining -= 1
        if not self.remaining:
            self.finished.succeed()

    def ask(self) -> Wait:
        """Ask for the turns of all samples that wait for one."""
        while self.asking:
            starts, pause = self.cluster.budget.turns(
                "e", self.cluster.spec, [0.0] * len(self.asking), self.env.now
            )
            for start in starts:
                self.env.process(self.give(self.asking.popleft(), start))
            yield self.env.timeout(pause)

    def give(self, turn: simpy.Event, start: float) -> Wait:
        """Let a sample have its turn."""
        yield self.env.timeout(start)
        turn.succeed()

    def compute(self, seconds: float) -> Wait:
        """Use the worker's processor."""
        with self.processor.request() as turn:
            yield turn
            yield self.env.timeout(seconds)
            self.cluster.worker_busy += seconds


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 16, 64, 256])
    parser.add_argument("--samples", type=int, default=50_000)
    parser.add_argument("--shard", type=int, default=500, help="samples of a shard (500)")
    parser.add_argument("--calls", type=int, default=64, help="calls at once in all (64)")
    parser.add_argument("--calls-per-worker", type=int, default=0, help="instead of --calls")
    parser.add_argument("--per-minute", type=int, default=None, help="requests in all")
    parser.add_argument("--latency", type=float, default=200, help="ms of a call (200)")
    parser.add_argument("--cpu", type=float, default=1.0, help="ms of a worker per sample (1)")
    parser.add_argument("--store", type=float, default=0.2, help="ms of the store per sample (0.2)")
    parser.add_argument("--start", type=float, default=100, help="ms to begin a shard (100)")
    options = parser.parse_args()
    print(f"{'workers':>8}{'samples/s':>11}{'busy: workers':>15}{'endpoint':>10}{'store':>8}")
    for workers in options.workers:
        if options.calls_per_worker:
            options.calls = options.calls_per_worker * workers
        cluster = Cluster(options, workers)
        cluster.env.run()
        busy = cluster.busy()
        rate = cluster.done / cluster.env.now
        print(
            f"{workers:8}{rate:11,.0f}{busy['workers']:15.0%}{busy['endpoint']:10.0%}"
            f"{busy['store']:8.0%}"
        )


if __name__ == "__main__":
    main()
