"""Runs on a cluster: samples are split into shards, and each worker runs one at a time.

With PostgreSQL, workers write to the store itself. Otherwise each shard has its own file next to
the store's, which the driver checks row by row and merges. Files left by a killed driver are merged
when the run is resumed, by either engine.
"""

import asyncio
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from jurybox import __version__
from jurybox.app.dataset_check import aligned, hash_dataset, plan_dataset
from jurybox.app.job import Job, Known, Progress
from jurybox.engine import records
from jurybox.engine.plan import Plan, read_plan
from jurybox.errors import IncompleteError, InputError, JuryboxError
from jurybox.storage.store import Store, StoredRows
from jurybox.wiring import open_run_store, read_limits, worker_variables

if TYPE_CHECKING:
    from jurybox.datasets import Dataset
    from jurybox.integrations.ray_engine import RayCluster, StopOrder, WorkerLink

T = TypeVar("T")
_SERVER: Final = "postgresql:"
# Makes shards small enough to keep all workers busy to the end, but worth their startup time.
_SHARDS_PER_WORKER: Final = 4
_FEWEST, _MOST = 25, 10_000
# Rows in one transaction.
_BATCH: Final = 500
# Seconds to wait until a lost worker's lock on its shard is released.
_LONGEST_WAIT: Final = 60.0
_PAUSE: Final = 0.1


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """Some samples of a run, with everything that a worker on another machine needs.

    If ``rows`` is None, the worker reads them itself, for all ``numbers`` that aren't ``done``.
    ``file`` is None if workers write to the store itself.
    """

    number: int
    run: records.RunRow
    numbers: range
    rows: tuple[records.Work, ...] | None
    done: frozenset[int]
    file: str | None
    concurrency: int | None

    @property
    def claim(self) -> str:
        """The key that a worker locks in the store while it works on the shard."""
        return _claim(self.run.id, self.number)


class _Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """Secrets that workers need and that are never stored: addresses with passwords, and keys."""

    version: str
    store: str
    base_url: str | None
    variables: dict[str, str]


def _worker_secrets(store: Store, plan: Plan, base_url: str | None) -> bytes:
    """Return the secrets for the workers of a run."""
    return msgspec.json.encode(
        _Secrets(
            version=__version__,
            store=store.address,
            base_url=base_url,
            variables=worker_variables(plan.model_specs()),
        )
    )


def _claim(run_id: str, number: int) -> str:
    return f"{run_id} shard {number}"


def work_on_shard(shard: Shard, link: "WorkerLink") -> str:
    """Finish a shard in a worker; return why it isn't finished, or an empty string."""
    return asyncio.run(_work_on(shard, link))


async def _work_on(shard: Shard, link: "WorkerLink") -> str:
    given = msgspec.json.decode(await link.secrets(), type=_Secrets)
    if given.version != __version__:
        return f"a node has jurybox {__version__}, the driver {given.version}; use one version"
    os.environ.update(given.variables)
    try:
        with closing(open_run_store(shard.file or given.store)) as store:
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


async def _finish(shard: Shard, store: Store, base_url: str | None, link: "WorkerLink") -> str:
    plan = read_plan(shard.run.plan)
    if shard.concurrency is not None:
        plan = msgspec.structs.replace(plan, concurrency=shard.concurrency)
    job = Job(store, shard.run, plan, plan.procedure(), part=shard.numbers)

    def stop(order: "StopOrder") -> None:
        (job.stop.at_once if order.at_once else job.stop.soon)(order.reason)

    async with link.connected(lambda: msgspec.json.encode(job.progress()), stop):
        await job.work_on_part(_rows(shard, plan), base_url, link.share)
    return job.stop.reason


def _rows(shard: Shard, plan: Plan) -> Iterator[records.Work]:
    """Yield the rows of a shard; if it has none, read them from its slice of the dataset."""
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
        self, cluster: "RayCluster", store: Store, plan: Plan, base_url: str | None
    ) -> None:
        """Prepare the cluster for a run; refuse a run that can't be split into shards."""
        _check_shardable(plan, store)
        calls = read_limits(concurrency=plan.concurrency).concurrency
        cluster.begin_run(calls, _worker_secrets(store, plan, base_url))
        self._cluster = cluster
        self._store = store
        self._plan = plan
        self._folder = shard_folder(store)
        self._reports: list[Progress] = []

    async def __call__(self, job: Job, dataset: "Dataset", known: Known) -> None:
        """Distribute shards until all are done or the job is stopped."""
        job.elsewhere = lambda: self._reports
        tell = job.stop.on_request

        def stop(at_once: bool) -> None:  # noqa: FBT001 - a callback
            tell(at_once)
            self._cluster.stop(job.stop.reason, at_once=at_once)

        job.stop.on_request = stop
        slices = dataset.slices()
        shards = self._shards(job, self._pieces(job, dataset, slices))
        try:
            if slices and not self._plan.model_specs():
                await self._map(job, shards, known)
            else:
                await self._hand_out(job, shards, known)
            if slices and job.is_complete:
                # Checked last, after the workers have finished reading the files.
                hashing = self._cluster.call(hash_dataset, self._plan)
                sha256, _ = await asyncio.to_thread(self._cluster.result, hashing)
                if sha256 != self._plan.dataset.sha256:
                    raise dataset.changed("its SHA-256 differs")
        finally:
            self._reports = []
            job.stop.on_request = tell

    async def _hand_out(self, job: Job, shards: Iterator[Shard], known: Known) -> None:
        """Keep two shards per worker running or queued."""
        running: dict[Any, Shard] = {}
        while True:
            while len(running) < 2 * self._cluster.cpus and not job.stop.requested:
                shard = await asyncio.to_thread(next, shards, None)
                if shard is None:
                    break
                await asyncio.to_thread(self._prepare, shard, known)
                running[self._cluster.submit(work_on_shard, str(shard.number), shard)] = shard
            if not running:
                return
            for part in await self._cluster.wait([*running]):
                await self._collect(job, running.pop(part), self._cluster.result(part))
            await self._report(job, [str(shard.number) for shard in running.values()])

    async def _map(self, job: Job, shards: Iterator[Shard], known: Known) -> None:
        """Score shards through Ray Data; used if no model is called."""
        prepared: dict[str, Shard] = {}
        for shard in shards:
            self._prepare(shard, known)
            prepared[str(shard.number)] = shard
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
            await self._collect(job, prepared.pop(name), reason)

    async def _collect(self, job: Job, shard: Shard, reason: str) -> None:
        """Merge the results of a shard."""
        if self._folder is not None:
            file = _file(self._folder, shard.run.id, shard.number)
            await asyncio.to_thread(_take_over, self._store, shard.run, file)
        job.count_stored(shard.numbers)
        if reason and not job.stop.requested:
            job.stop.soon(reason)

    async def _report(self, job: Job, running: Sequence[str]) -> None:
        reports = await self._cluster.reports(running)
        self._reports = [msgspec.json.decode(report, type=Progress) for report in reports]
        job.report()

    def _size(self) -> int:
        even = self._plan.samples // (_SHARDS_PER_WORKER * self._cluster.cpus)
        return min(max(_FEWEST, even), _MOST)

    def _pieces(
        self, job: Job, dataset: "Dataset", slices: Sequence[range] | None
    ) -> Iterator[tuple[range, tuple[records.Work, ...] | None]]:
        """Yield the numbers of each shard, with their rows unless workers can read them."""
        if slices is None:
            missing = (work for work in job.remaining(dataset) if job.is_missing(work.number))
            for rows in _cut(missing, self._size()):
                yield range(rows[0].number, rows[-1].number + 1), rows
            return
        used = self._plan.dataset.used
        for repeat in range(self._plan.repeats):
            for piece in aligned(slices, self._size(), used):
                numbers = range(repeat * used + piece.start, repeat * used + piece.stop)
                if any(map(job.is_missing, numbers)):
                    yield numbers, None

    def _shards(
        self, job: Job, pieces: Iterable[tuple[range, tuple[records.Work, ...] | None]]
    ) -> Iterator[Shard]:
        folder = self._folder
        for number, (numbers, rows) in enumerate(pieces):
            yield Shard(
                number=number,
                run=job.row,
                numbers=numbers,
                rows=rows,
                done=frozenset(each for each in numbers if not job.is_missing(each)),
                file=None if folder is None else str(_file(folder, job.row.id, number)),
                concurrency=self._plan.concurrency,
            )

    def _prepare(self, shard: Shard, known: Known) -> None:
        """Create the file of a shard, with the stored replies for its samples."""
        if shard.file is None:
            return
        Path(shard.file).unlink(missing_ok=True)
        replies = [row for number in shard.numbers for row in known.get(number, ())]
        with closing(open_run_store(shard.file, create=True)) as store:
            store.create_run(shard.run)
            store.append([], replies)


def _check_shardable(plan: Plan, store: Store) -> None:
    """Check that a run can be split into shards."""
    where = "--engine ray"
    if plan.batch:
        raise InputError("batches need a single process", "ask directly with --no-batch", where)
    if plan.cache and shard_folder(store) is not None:
        hint = "use a PostgreSQL store, or --no-cache"
        raise InputError("workers can't search a file for replies of earlier runs", hint, where)


def shard_folder(store: Store) -> Path | None:
    """Return the folder of shard files; None if workers can write to the store itself."""
    address = store.address
    return None if address.startswith(_SERVER) else Path(f"{address}-shards")


def _file(folder: Path, run_id: str, number: int) -> Path:
    return folder / run_id / f"{number:06d}.db"


def take_over_shards(store: Store, run: records.RunRow) -> None:
    """Merge the shard files that a killed driver left."""
    folder = shard_folder(store)
    for file in sorted(folder.glob(f"{run.id}/*.db")) if folder is not None else ():
        _take_over(store, run, file)


def forget_shards(store: Store, run_id: str) -> None:
    """Remove the files of a run's shards."""
    folder = shard_folder(store)
    if folder is not None:
        shutil.rmtree(folder / run_id, ignore_errors=True)


def _take_over(store: Store, run: records.RunRow, file: Path) -> None:
    """Check every row of a shard's file, copy missing rows to the store, and remove the file."""
    try:
        shard = open_run_store(str(file))
    except InputError:
        # The driver was killed before anything was written to the file.
        file.unlink(missing_ok=True)
        return
    with closing(shard):
        _await_release(shard, _claim(run.id, int(file.stem)), file)
        for some in _cut(_checked(shard, run, file), _BATCH):
            _add_missing(store, run, some)
    for each in file.parent.glob(f"{file.name}*"):
        each.unlink()
    with suppress(OSError):  # the folder has other files
        file.parent.rmdir()
        file.parent.parent.rmdir()


def _add_missing(store: Store, run: records.RunRow, found: Sequence[StoredRows]) -> None:
    """Store missing rows; a killed driver may have stored some already."""
    span = range(found[0].number, found[-1].number + 1)
    finished = {number for number, *_ in store.results(run.id, span)}
    known = {(row.number, row.position) for row in store.unfinished(run.id, span)}
    found = [each for each in found if each.number not in finished]
    exchanges = [row for each in found for row in each.exchanges]
    store.append(
        [each.sample for each in found if each.sample is not None],
        [row for row in exchanges if (row.number, row.position) not in known],
    )


def _await_release(shard: Store, claim: str, file: Path) -> None:
    deadline = time.monotonic() + _LONGEST_WAIT
    while time.monotonic() < deadline:
        with shard.claim(claim) as mine:
            if mine:
                return
        time.sleep(_PAUSE)
    raise IncompleteError(f"{file}: a worker is still writing to it; stop it, then resume the run")


def _checked(shard: Store, run: records.RunRow, file: Path) -> Iterator[StoredRows]:
    """Yield the rows of each sample in a shard, checked against their seals."""
    for rows in shard.stored_rows(run.id):
        if rows.sample is None:
            # A damaged reply is requested again.
            sound = [row for row in rows.exchanges if records.seal_of(row) == row.seal]
            yield msgspec.structs.replace(rows, exchanges=sound)
        elif _is_whole(rows.sample, rows.exchanges):
            yield rows
        else:
            problem = f"{file}: sample {rows.sample.sample_id} was changed or is damaged"
            raise IncompleteError(f"{problem}; remove the file, then resume the run")


def _is_whole(sample: records.SampleRow, exchanges: Sequence[records.ExchangeRow]) -> bool:
    try:
        asked = records.in_order(sample, exchanges)
    except LookupError:
        return False
    unchanged = all(records.seal_of(row) == row.seal for row in exchanges)
    return unchanged and records.hashed_sample(sample, map(records.hashes_of, asked)) == sample


def _cut(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield the items in groups of ``size``; the last one may be smaller."""
    left = iter(items)
    while some := tuple(islice(left, size)):
        yield some
