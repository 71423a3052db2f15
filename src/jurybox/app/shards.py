"""Runs on a cluster: samples are split into shards, and each worker runs one at a time.

With PostgreSQL, workers write to the store themselves. A file is opened on the driver's node only,
and workers have their rows written there as they arrive.
"""

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from jurybox import __version__
from jurybox.app.dataset_check import aligned, hash_dataset, plan_dataset
from jurybox.app.job import Job, Progress
from jurybox.app.metadata import MAX_COST
from jurybox.datasets import Dataset
from jurybox.engine import records
from jurybox.engine.plan import Plan, read_plan
from jurybox.errors import InputError, JuryboxError
from jurybox.integrations.ray_engine import RayCluster, StopOrder, WorkerLink
from jurybox.storage.store import Store
from jurybox.wiring import open_run_store, read_limits, worker_variables

_SERVER: Final = "postgresql:"
# Makes shards small enough to keep all workers busy to the end, but worth their startup time.
_SHARDS_PER_WORKER: Final = 4
_FEWEST, _MOST = 25, 10_000
# Seconds to wait until a lost worker's lock on its shard is released.
_LONGEST_WAIT: Final = 60.0
_PAUSE: Final = 0.1


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """Some samples of a run, with everything that a worker on another machine needs.

    If ``rows`` is None, the worker reads them itself, for all ``numbers`` that aren't ``done``.
    """

    number: int
    run: records.RunRow
    numbers: range
    rows: tuple[records.Work, ...] | None
    done: frozenset[int]
    concurrency: int | None

    @property
    def claim(self) -> str:
        """The key that a worker locks in the store while it works on the shard."""
        return f"{self.run.id} shard {self.number}"


class _Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """Secrets that workers need and that are never stored: addresses with passwords, and keys.

    ``store`` is None if workers can't open the store themselves.
    """

    version: str
    store: str | None
    base_url: str | None
    variables: dict[str, str]


def work_on_shard(shard: Shard, link: WorkerLink) -> str:
    """Finish a shard in a worker; return why it isn't finished, or an empty string."""
    return asyncio.run(_work_on(shard, link))


async def _work_on(shard: Shard, link: WorkerLink) -> str:
    given = msgspec.json.decode(await link.secrets(), type=_Secrets)
    if given.version != __version__:
        return f"a node has jurybox {__version__}, the driver {given.version}; use one version"
    os.environ.update(given.variables)
    try:
        if given.store is None:
            return await _finish(shard, cast("Store", _HostedStore(link)), given.base_url, link)
        with closing(open_run_store(given.store)) as store:
            deadline = time.monotonic() + _LONGEST_WAIT
            while True:
                with store.claim(shard.claim) as mine:
                    if mine:
                        return await _finish(shard, store, given.base_url, link)
                if time.monotonic() > deadline:
                    return f"another worker has shard {shard.number}"
                await asyncio.sleep(_PAUSE)
    except JuryboxError as error:
        return str(error)


class _HostedStore:
    """Calls the store on the driver's node; has only the methods that a job needs."""

    def __init__(self, link: WorkerLink) -> None:
        self.results = partial(link.call_host, "results")
        self.unfinished = partial(link.call_host, "unfinished")
        self.find_exchange = partial(link.call_host, "find_exchange")
        self.append = partial(link.call_host, "append")


async def _finish(shard: Shard, store: Store, base_url: str | None, link: WorkerLink) -> str:
    plan = read_plan(shard.run.plan)
    if shard.concurrency is not None:
        plan = msgspec.structs.replace(plan, concurrency=shard.concurrency)
    job = Job(store, shard.run, plan, part=shard.numbers)

    def stop(order: StopOrder) -> None:
        (job.stop.at_once if order.at_once else job.stop.soon)(order.reason)

    async with link.connected(lambda: msgspec.json.encode(job.progress()), stop):
        await job.work_on_part(_rows(shard, plan), base_url, link.share)
    return job.stop.reason


def _rows(shard: Shard, plan: Plan) -> Iterator[records.Work]:
    """Yield the rows of a shard; read them from the dataset if the shard has only numbers."""
    if shard.rows is not None:
        yield from shard.rows
        return
    repeat = shard.numbers.start // plan.dataset.used
    base = repeat * plan.dataset.used
    wanted = range(shard.numbers.start - base, shard.numbers.stop - base)
    dataset = plan_dataset(plan)
    rows = dataset.rows_between(wanted, needs_response=plan.target is None)
    for number in shard.numbers:
        row = next(rows, None)
        if row is None:
            raise dataset.changed("it has fewer rows")
        if number not in shard.done:
            yield records.Work(number=number, repeat=repeat, row=row)


class ShardedRun:
    """Distributes the missing samples of a job over a cluster."""

    def __init__(
        self,
        cluster: RayCluster,
        store: Store,
        row: records.RunRow,
        plan: Plan,
        base_url: str | None,
    ) -> None:
        """Prepare the cluster for a run; refuse a run that can't be split into shards."""
        if msgspec.json.decode(row.metadata).get(MAX_COST) is not None:
            problem = "the run has a maximum cost, and workers don't know each other's costs"
            raise InputError(problem, "use --engine local", "--engine")
        if plan.batch:
            problem, hint = "batches need a single process", "ask directly with --no-batch"
            raise InputError(problem, hint, "--engine ray")
        calls = read_limits(concurrency=plan.concurrency).concurrency
        opening = partial(open_run_store, str(Path(store.address).resolve()))
        is_server = store.address.startswith(_SERVER)
        secrets = _Secrets(
            version=__version__,
            store=store.address if is_server else None,
            base_url=base_url,
            variables=worker_variables(plan.model_specs()),
        )
        cluster.begin_run(calls, msgspec.json.encode(secrets), None if is_server else opening)
        self._cluster = cluster
        self._plan = plan
        self._reports: list[Progress] = []

    async def __call__(self, job: Job, dataset: Dataset) -> None:
        """Distribute shards until all are done or the job is stopped."""
        job.elsewhere = lambda: self._reports
        tell = job.stop.on_request

        def stop(at_once: bool) -> None:  # noqa: FBT001 - a callback
            tell(at_once)
            self._cluster.stop(job.stop.reason, at_once=at_once)

        job.stop.on_request = stop
        slices = dataset.slices()
        shards = self._shards(job, dataset, slices)
        try:
            if slices and not self._plan.model_specs():
                await self._map(job, shards)
            else:
                await self._hand_out(job, shards)
            if slices and job.is_complete:
                # Checked last, after the workers have finished reading the files.
                hashing = self._cluster.call(hash_dataset, self._plan)
                sha256, _ = await asyncio.to_thread(self._cluster.result, hashing)
                if sha256 != self._plan.dataset.sha256:
                    raise dataset.changed("its SHA-256 differs")
        finally:
            self._reports = []
            job.stop.on_request = tell

    async def _hand_out(self, job: Job, shards: Iterator[Shard]) -> None:
        """Keep two shards per worker running or queued."""
        running: dict[Any, Shard] = {}
        while True:
            while len(running) < 2 * self._cluster.cpus and not job.stop.requested:
                shard = await asyncio.to_thread(next, shards, None)
                if shard is None:
                    break
                running[self._cluster.submit(work_on_shard, str(shard.number), shard)] = shard
            if not running:
                return
            for part in await self._cluster.wait([*running]):
                _collect(job, running.pop(part), self._cluster.result(part))
            await self._report(job, [str(shard.number) for shard in running.values()])

    async def _map(self, job: Job, shards: Iterator[Shard]) -> None:
        """Score shards through Ray Data; used if no model is called."""
        prepared = {str(shard.number): shard for shard in shards}
        if not prepared:
            return  # Ray Data takes no empty list
        done = self._cluster.map(work_on_shard, prepared)
        while True:
            following = asyncio.create_task(asyncio.to_thread(next, done, None))
            while not (await asyncio.wait([following], timeout=_PAUSE))[0]:
                await self._report(job, [*prepared])
            found = await following
            if found is None:
                return
            name, reason = found
            _collect(job, prepared.pop(name), reason)

    async def _report(self, job: Job, running: Sequence[str]) -> None:
        reports = await self._cluster.reports(running)
        self._reports = [msgspec.json.decode(report, type=Progress) for report in reports]
        job.report()

    def _shards(
        self, job: Job, dataset: Dataset, slices: Sequence[range] | None
    ) -> Iterator[Shard]:
        """Yield the shards, with their rows unless workers can read them."""
        used, number = self._plan.dataset.used, count()

        def shard(numbers: range, rows: tuple[records.Work, ...] | None) -> Shard:
            done = frozenset(each for each in numbers if not job.is_missing(each))
            return Shard(
                number=next(number),
                run=job.row,
                numbers=numbers,
                rows=rows,
                done=done,
                concurrency=self._plan.concurrency,
            )

        even = self._plan.samples // (_SHARDS_PER_WORKER * self._cluster.cpus)
        size = min(max(_FEWEST, even), _MOST)
        if slices is None:
            missing = (work for work in job.remaining(dataset) if job.is_missing(work.number))
            while rows := tuple(islice(missing, size)):
                yield shard(range(rows[0].number, rows[-1].number + 1), rows)
            return
        for start in range(0, self._plan.repeats * used, used):
            for piece in aligned(slices, size, used):
                numbers = range(start + piece.start, start + piece.stop)
                if any(map(job.is_missing, numbers)):
                    yield shard(numbers, None)


def _collect(job: Job, shard: Shard, reason: str) -> None:
    """Count the results of a shard, and stop the job if the shard isn't finished."""
    job.count_stored(shard.numbers)
    if reason and not job.stop.requested:
        job.stop.soon(reason)
