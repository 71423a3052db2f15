"""One run in progress: its samples, counts, batches and progress reports."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby, islice
from typing import Final

import msgspec

from jurybox.app.ids import now_utc
from jurybox.app.metadata import ALLOW_VERSION_DRIFT, MAX_COST
from jurybox.app.model_session import Budget, JudgeBatches, close_batches, open_session
from jurybox.app.view_run import run_cost
from jurybox.datasets import Dataset, Survey
from jurybox.engine import records
from jurybox.engine.limiter import Share
from jurybox.engine.plan import Plan
from jurybox.engine.runner import Runner, Stop
from jurybox.errors import IncompleteError
from jurybox.models.batched import OpenBatch
from jurybox.reporting.stored import reading
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import RunTally
from jurybox.storage.store import Store
from jurybox.text_format import verb
from jurybox.wiring import read_prices

_PROGRESS_INTERVAL: Final = 0.1


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a run.

    ``before`` counts samples finished before the run was resumed. ``batches`` describes the open
    ones, and ``outages`` lists endpoints that don't answer, and why.
    """

    run_id: str
    planned: int
    done: int
    before: int
    elapsed_s: float
    unscored: int
    flagged: int
    failed: int
    dollars: float | None
    batches: tuple[str, ...] = ()
    outages: tuple[str, ...] = ()


OnProgress = Callable[[Progress], None]
Known = Mapping[int, Sequence[records.ExchangeRow]]
"""Stored replies for unfinished samples, by sample number."""
Spread = Callable[["Job", Dataset], Awaitable[None]]
"""Lets other processes finish the missing samples of a job, until it is stopped."""
Watch = Callable[["Job"], AbstractContextManager[object]]
"""Watches a job, and may stop it; entered before the job starts, and left after it ends."""


class _Throttle:
    """Calls a function at most once per interval; requests in between become one delayed call."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._last = time.monotonic()
        self._late: asyncio.TimerHandle | None = None

    def __call__(self, *, now: bool = False) -> None:
        if not now and time.monotonic() - self._last < _PROGRESS_INTERVAL:
            if self._late is None:
                self._late = asyncio.get_running_loop().call_later(_PROGRESS_INTERVAL, self)
            return
        if self._late is not None:
            self._late.cancel()
            self._late = None
        self._last = time.monotonic()
        self._call()


class Job:
    """A run in progress.

    ``on_notice`` is called with warnings for the user, ``on_progress`` with the state of the run;
    ``stop`` ends it early. ``part`` limits a job to these sample numbers.
    """

    def __init__(
        self,
        store: Store,
        row: records.RunRow,
        plan: Plan,
        *,
        part: range | None = None,
    ) -> None:
        self.row = row
        self.stop = Stop()
        self.on_notice: Callable[[str], None] | None = None
        self.on_progress: OnProgress | None = None
        self._store = store
        self._plan = plan
        self._procedure = plan.procedure()
        self._is_part = part is not None
        self._part = part or range(plan.samples)
        self._tally = RunTally(self._procedure.judging.rubric, plan.repeats)
        self._done = bytearray(len(self._part))
        self._before = 0
        self._faults: dict[str, Exception] = {}
        self._prices = read_prices()
        self._report = _Throttle(self._show_progress)
        self._batches = JudgeBatches(store, row.id, self._report, self._notify)
        self._outages: Callable[[], Sequence[str]] = tuple
        self.elsewhere: Callable[[], Sequence[Progress]] = tuple
        self.stop.on_request = self._stop_batches
        self._began = time.monotonic()

    @property
    def batched(self) -> bool:
        """Whether judges are asked in batches."""
        return self._plan.batch

    @property
    def why_stopped(self) -> str:
        """Why the run isn't finished, and which batches continue without it."""
        rows = [each.row for each in self._batches.open()]
        if not rows:
            return self.stop.reason
        names = [f"{row.batch_id or 'one being submitted'} ({row.requests})" for row in rows]
        what = f"{'batch' if len(rows) == 1 else 'batches'} {', '.join(names)}"
        continuing = f"{what} {verb(len(rows), 'continue')} at the provider"
        return f"{self.stop.reason}; {continuing}: resuming reads the results"

    async def work(
        self, dataset: Dataset, base_url: str | None = None, spread: Spread | None = None
    ) -> records.RunRow:
        """Finish the missing samples, and return the stored run.

        A run that can't be finished now is left as stopped; ``stop.reason`` says why. ``spread``
        lets other processes work first; the rest is done here.
        """
        try:
            known = self._read_stored()
            if spread is not None:
                await spread(self, dataset)
            await self._run(self.remaining(dataset), known, base_url)
        except IncompleteError as error:
            # Even if all samples are stored, their dataset may have changed.
            self.stop.soon(str(error))
            self._report(now=True)
            return self._leave()
        self._report(now=True)
        self._note_faults()
        return self._finish() if self._tally.samples == self._plan.samples else self._leave()

    async def work_on_part(
        self, rows: Iterable[records.Work], base_url: str | None, share: Share
    ) -> None:
        """Finish the missing samples of the part; other processes work on other parts."""
        known = self._read_stored()
        missing = (work for work in rows if self.is_missing(work.number))
        await self._run(missing, known, base_url, share)
        self._report(now=True)
        self._note_faults()

    async def _run(
        self,
        work: Iterable[records.Work],
        known: Known,
        base_url: str | None,
        share: Share | None = None,
    ) -> None:
        metadata = msgspec.json.decode(self.row.metadata)
        async with open_session(
            self._plan,
            self._store,
            self._batches,
            base_url,
            allow_version_drift=metadata.get(ALLOW_VERSION_DRIFT) is True,
            budget=self._budget(metadata.get(MAX_COST), known),
            share=share,
        ) as session:
            self._outages = session.outages
            runner = Runner(
                run_id=self.row.id,
                procedure=self._procedure,
                session=session,
                store=self._store,
                observer=self,
                stop=self.stop,
            )
            await runner.run(work, known)

    def _note_faults(self) -> None:
        if not self.stop.requested and self._faults:
            name, error = next(iter(self._faults.items()))
            more = f" and {len(self._faults) - 1} more" if len(self._faults) > 1 else ""
            what = f"an internal error in sample {name}{more}"
            self.stop.soon(f"{what} ({type(error).__name__}: {error})")

    def count_stored(self, numbers: range) -> None:
        """Count samples that another process has finished and stored."""
        with reading(self.row):
            for number, repeat, _, result in self._store.results(self.row.id, numbers):
                if self.is_missing(number):
                    self._add(records.read_result(result), repeat, number)

    def _add(self, result: SampleResult, repeat: int, number: int) -> None:
        self._mark_done(number)
        self._tally.add(result, repeat)

    def _mark_done(self, number: int) -> None:
        if number not in self._part:
            raise IndexError(number)
        self._done[number - self._part.start] = 1

    def report(self) -> None:
        """Report progress, at most once per interval."""
        self._report()

    def finished(self, work: records.Work, result: SampleResult) -> None:
        """Count a finished sample."""
        self._add(result, work.repeat, work.number)
        self._report()

    def sample_error(self, sample_id: str, error: Exception) -> None:
        """Note a sample that failed with an internal error."""
        self._faults[sample_id] = error

    def _read_stored(self) -> Known:
        """Count the stored samples, and return the replies for unfinished ones, by number."""
        with reading(self.row):
            for number, repeat, _, result in self._store.results(self.row.id, self._part):
                if self._is_part:
                    self._mark_done(number)  # the driver counts it
                else:
                    self._add(records.read_result(result), repeat, number)
        self._before = self._tally.samples
        rows = self._store.unfinished(self.row.id, self._part)
        return {number: tuple(each) for number, each in groupby(rows, lambda row: row.number)}

    def _budget(self, most: float | None, known: Known) -> Budget | None:
        """Return the remaining budget of a run with a maximum cost."""
        if most is None:
            return None
        budget = Budget(self._plan, most)
        spent: float | None = run_cost(self._tally.uses(), self._prices)["dollars"]
        if spent is None:
            what = "the cost so far is unknown, because a reply didn't report its tokens"
            raise IncompleteError(f"{what}; start a new run without --max-cost")
        budget.spent = spent
        for row in chain.from_iterable(known.values()):
            budget.add(records.read_request(row), records.read_outcome(row))
        return budget

    @property
    def is_complete(self) -> bool:
        """Whether every sample is finished."""
        return all(self._done)

    def is_missing(self, number: int) -> bool:
        """Return whether a sample has no result yet."""
        return not self._done[number - self._part.start]

    def remaining(self, dataset: Dataset) -> Iterator[records.Work]:
        """Yield the samples that aren't done."""
        plan = self._plan.dataset
        expected = Survey(rows=plan.rows, sha256=plan.sha256, bytes=plan.bytes)
        for repeat in range(self._plan.repeats):
            base = repeat * plan.used
            if all(self._done[base : base + plan.used]):
                continue
            rows = dataset.rows(needs_response=self._plan.target is None, expected=expected)
            for index, (_, row) in enumerate(islice(rows, plan.used)):
                if self.is_missing(base + index):
                    yield records.Work(number=base + index, repeat=repeat, row=row)
            # Reads the rows after a limit too, because the hash is checked at the end of the file.
            deque(rows, maxlen=0)

    def _notify(self, text: str) -> None:
        if self.on_notice is not None:
            self.on_notice(text)

    def _stop_batches(self, at_once: bool) -> None:  # noqa: FBT001 - a callback
        self._batches.stop(self.stop.reason, at_once=at_once)

    def _show_progress(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.progress())

    def progress(self) -> Progress:
        """Return the progress of the run."""
        tally, parts = self._tally, self.elsewhere()
        dollars = run_cost(tally.uses(), self._prices, batched=self._plan.batch)["dollars"]
        costs = [dollars, *(part.dollars for part in parts)]
        known = [each for each in costs if each is not None]
        return Progress(
            run_id=self.row.id,
            planned=len(self._part),
            done=tally.samples + sum(part.done for part in parts),
            before=self._before,
            elapsed_s=time.monotonic() - self._began,
            unscored=tally.count("unscored_rate") + sum(part.unscored for part in parts),
            flagged=tally.queued + sum(part.flagged for part in parts),
            failed=tally.count("target_error_rate") + sum(part.failed for part in parts),
            dollars=sum(known) if len(known) == len(costs) else None,
            batches=tuple(_shown(each) for each in self._batches.open() if each.row.batch_id),
            outages=(*self._outages(), *dict.fromkeys(o for part in parts for o in part.outages)),
        )

    def _finish(self) -> records.RunRow:
        if self._plan.batch:
            close_batches(self._store, self.row.id)
        conclusion = self._tally.conclude()
        outcome = records.StoredOutcome(
            conclusion=conclusion,
            cost=run_cost(conclusion.uses, self._prices, batched=self._plan.batch),
            # Unknown for a resumed run.
            elapsed_s=None if self._before else round(time.monotonic() - self._began, 3),
        )
        self.row = finish_row(self.row, outcome, self._store)
        return self.row

    def _leave(self) -> records.RunRow:
        row = records.sealed(msgspec.structs.replace(self.row, status="stopped"))
        try:
            self._store.update_run(row)
        except IncompleteError:
            # The store failed; a run without a process counts as stopped anyway.
            return self.row
        self.row = row
        return row


def _shown(batch: OpenBatch) -> str:
    row = batch.row
    waited = datetime.now(UTC) - datetime.fromisoformat(row.submitted_at)
    answered = "" if batch.answered is None else f"{batch.answered} of "
    time = timedelta(seconds=round(waited.total_seconds()))
    return f"{row.batch_id}: {answered}{row.requests} requests for {time}"


def finish_row(row: records.RunRow, outcome: records.StoredOutcome, store: Store) -> records.RunRow:
    """Store a run as finished, with its outcome and the digest of its samples."""
    finished = records.sealed(
        msgspec.structs.replace(
            row,
            status="finished",
            finished_at=now_utc(),
            outcome=records.ENCODER.encode(outcome).decode(),
            digest=records.run_digest(store.hashes(row.id)),
        )
    )
    store.update_run(finished)
    return finished
