"""Starting a run, and going on with one."""

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from jurybox.app.costs import run_cost
from jurybox.app.metadata import describe_change, run_metadata
from jurybox.app.model_session import batched_model, close_batches, open_session
from jurybox.app.prepare import Prepared
from jurybox.app.view_run import view_unfinished
from jurybox.engine.plan import Plan, plan_text, read_plan
from jurybox.engine.ports import Model, Store
from jurybox.engine.records import (
    ENCODER,
    ExchangeRow,
    RunRow,
    StoredOutcome,
    read_result,
    run_digest,
    sealed,
)
from jurybox.engine.runner import Runner, Stop
from jurybox.engine.transcript import Work
from jurybox.errors import IncompleteError, InputError
from jurybox.models.prices import load_prices
from jurybox.reporting.view import RunView, finished_view
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.sample_result import ModelUse, SampleResult
from jurybox.scoring.summary import RunTally
from jurybox.settings import Settings
from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from jurybox.datasets import Dataset, Survey
    from jurybox.models.batched import BatchedModel, OpenBatch

# People can't read faster.
_INTERVAL: Final = 0.1


class BatchProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A batch at a provider; ``answered`` as far as it says, ``elapsed_s`` since its submission."""

    batch_id: str
    model: str
    requests: int
    answered: int | None
    elapsed_s: float


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run is; ``before`` counts what was finished before it was resumed."""

    run_id: str
    planned: int
    done: int
    before: int
    elapsed_s: float
    unscored: int
    flagged: int
    failed: int
    dollars: float | None
    batches: tuple[BatchProgress, ...] = ()


OnProgress = Callable[[Progress], None]


class Job:
    """One run while it goes on."""

    def __init__(
        self,
        store: Store,
        row: RunRow,
        plan: Plan,
        settings: Settings,
        on_progress: OnProgress | None = None,
    ) -> None:
        self.row = row
        self.stop = Stop()
        self.broken: dict[str, Exception] = {}
        self.on_notice: Callable[[str], None] | None = None
        self._store = store
        self._plan = plan
        self._settings = settings
        self._procedure: Procedure = plan.procedure()
        self._tally = RunTally(self._procedure.judging.rubric, plan.repeats)
        self._done = bytearray(plan.samples)
        self._before = self._unscored = self._failed = 0
        self._prices = load_prices(settings.prices)
        self._on_progress = on_progress
        self._late: asyncio.TimerHandle | None = None
        self._batched: dict[str, BatchedModel] = {}
        self._began = self._shown = time.monotonic()

    async def work(self, dataset: "Dataset", base_url: str | None = None) -> RunRow:
        """Do what isn't done yet, and return the run as it is stored then.

        A run that can't be finished now is left as stopped; ``stop.reason`` says why.

        Raises:
            InputError: a model can't be had.

        """
        try:
            known = self._take_stock()
            async with open_session(
                self._plan, self._settings, self._store, base_url, self._in_batches
            ) as session:
                runner = Runner(
                    run_id=self.row.id,
                    procedure=self._procedure,
                    session=session,
                    store=self._store,
                    observer=self,
                    stop=self.stop,
                )
                await runner.run(self._work(dataset), known)
        except IncompleteError as error:
            # All samples may be there and yet be worth nothing: their dataset has changed.
            self.stop.soon(str(error))
            self._report(last=True)
            return self._leave()
        self._report(last=True)
        if self._complete:
            return self._finish()
        if not self.stop.requested:
            self.stop.soon(self._why_broken())
        return self._leave()

    @property
    def batched(self) -> bool:
        """Whether judges are asked in batches."""
        return self._plan.batch

    @property
    def _complete(self) -> bool:
        return self._tally.samples == self._plan.samples

    @property
    def why_stopped(self) -> str:
        """Why the run isn't finished, and what goes on without it."""
        reason = self.stop.reason
        rows = [each.row for each in self._open_batches()]
        if not rows:
            return reason
        names = [f"{row.batch_id or 'one being submitted'} ({row.requests})" for row in rows]
        what = "batch" if len(rows) == 1 else "batches"
        verb = "isn't cancelled, and goes" if len(rows) == 1 else "aren't cancelled, and go"
        return f"{reason}; {what} {', '.join(names)} {verb} on at the provider: resuming reads it"

    def _in_batches(self, models: Mapping[str, Model]) -> Mapping[str, Model]:
        """Return the judges as they are asked in batches; who stops the run stops waiting."""
        from jurybox.models.batched import BatchLog

        log = BatchLog(self._store, self.row.id, now_utc)
        self._batched = {name: batched_model(name, each, log) for name, each in models.items()}
        for model in self._batched.values():
            model.on_change, model.warn = self._report, self._warn
        self.stop.on_request = self._stop_waiting
        return self._batched

    def _stop_waiting(self, at_once: bool) -> None:  # noqa: FBT001 - a callback
        for model in self._batched.values():
            model.stop(self.stop.reason, at_once=at_once)

    def _open_batches(self) -> "list[OpenBatch]":
        return [each for model in self._batched.values() for each in model.open.values()]

    def _warn(self, text: str) -> None:
        if self.on_notice is not None:
            self.on_notice(text)

    def _why_broken(self) -> str:
        name, error = next(iter(self.broken.items()))
        more = f" and {len(self.broken) - 1} more" if len(self.broken) > 1 else ""
        return f"sample {name}{more} met a fault of ours ({type(error).__name__}: {error})"

    def _take_stock(self) -> Mapping[int, Sequence[ExchangeRow]]:
        """Count what is stored already; return replies to samples that aren't finished."""
        try:
            for number, repeat, _, result in self._store.results(self.row.id):
                self._done[number] = 1
                self._count(read_result(result), repeat, number)
        except (msgspec.DecodeError, IndexError) as error:
            what = f"run {self.row.id} is damaged ({error}); `jurybox verify` says where"
            raise IncompleteError(what) from None
        self._before = self._tally.samples
        rows = self._store.unfinished(self.row.id)
        return {number: tuple(each) for number, each in groupby(rows, lambda row: row.number)}

    def _work(self, dataset: "Dataset") -> Iterator[Work]:
        used = self._plan.dataset.used
        for repeat in range(self._plan.repeats):
            base = repeat * used
            if all(self._done[base : base + used]):
                continue
            rows = dataset.rows(needs_response=self._plan.target is None, expected=self._expected())
            for index, (_, row) in enumerate(islice(rows, used)):
                if not self._done[base + index]:
                    yield Work(number=base + index, repeat=repeat, row=row)
            # To the end, also where a limit leaves the rest out: there the file's hash is checked.
            deque(rows, maxlen=0)

    def _expected(self) -> "Survey":
        from jurybox.datasets import Survey

        plan = self._plan.dataset
        return Survey(rows=plan.rows, used=plan.used, sha256=plan.sha256, bytes=plan.bytes)

    def finished(self, work: Work, result: SampleResult) -> None:
        """Count a sample that has just been finished."""
        self._count(result, work.repeat, work.number)
        self._report()

    def sample_error(self, sample_id: str, error: Exception) -> None:
        """Note a sample that a bug kept from being finished."""
        self.broken[sample_id] = error

    def _count(self, result: SampleResult, repeat: int, number: int) -> None:
        self._tally.add(result, repeat, number)
        self._unscored += result.evaluator_error is not None
        self._failed += result.target_error is not None

    def _report(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._on_progress is None:
            return
        if now - self._shown < _INTERVAL and not last:
            # The last of many that come together is shown too, a moment later.
            if self._late is None:
                self._late = asyncio.get_running_loop().call_later(_INTERVAL, self._report)
            return
        if self._late is not None:
            self._late.cancel()
            self._late = None
        self._shown = now
        self._on_progress(
            Progress(
                run_id=self.row.id,
                planned=self._plan.samples,
                done=self._tally.samples,
                before=self._before,
                elapsed_s=now - self._began,
                unscored=self._unscored,
                flagged=self._tally.queued,
                failed=self._failed,
                dollars=self._cost(self._tally.uses())["dollars"],
                batches=self._batch_progress(),
            )
        )

    def _cost(self, uses: Iterable[ModelUse]) -> dict[str, Any]:
        return run_cost(uses, self._prices, batched=self._plan.batch)

    def _batch_progress(self) -> tuple[BatchProgress, ...]:
        now = datetime.now(UTC)
        return tuple(
            BatchProgress(
                batch_id=each.row.batch_id,
                model=each.row.model,
                requests=each.row.requests,
                answered=each.answered,
                elapsed_s=(now - datetime.fromisoformat(each.row.submitted_at)).total_seconds(),
            )
            for each in self._open_batches()
            if each.row.batch_id
        )

    def _finish(self) -> RunRow:
        if self._plan.batch:
            # All replies are stored, so the batches that they came in needn't be read again.
            close_batches(self._store, self.row.id, "read")
        conclusion = self._tally.conclude()
        outcome = StoredOutcome(
            conclusion=conclusion,
            cost=self._cost(conclusion.uses),
            # Of a run that was stopped in between, nobody knows it.
            elapsed_s=None if self._before else round(time.monotonic() - self._began, 3),
        )
        return self._update(
            status="finished",
            finished_at=now_utc(),
            outcome=ENCODER.encode(outcome).decode(),
            digest=run_digest(self._store.hashes(self.row.id)),
        )

    def _leave(self) -> RunRow:
        try:
            return self._update(status="stopped")
        except IncompleteError:
            # The store is what stopped it; a run that nobody works on counts as stopped anyway.
            return self.row

    def _update(self, **changes: str | None) -> RunRow:
        row = sealed(msgspec.structs.replace(self.row, **changes))
        self._store.update_run(row)
        self.row = row
        return row


def now_utc() -> str:
    """Return the time as runs record it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# No letters that are taken for each other.
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"

Hold = Callable[[Job], None]
"""Is given the job before it begins, so that somebody can stop it."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How working on a run ended; ``stopped`` says why it isn't finished."""

    view: RunView
    stopped: str | None = None


def start_run(
    prepared: Prepared,
    store: Store,
    *,
    base_url: str | None = None,
    on_progress: OnProgress | None = None,
    hold: Hold | None = None,
) -> Ended:
    """Store the plan of a run, and work on it until it is finished or stopped.

    Raises:
        IncompleteError: the store is in trouble.

    """
    row = new_run(prepared.plan, prepared.procedure)
    with store.claim(row.id):
        store.create_run(row)
        job = Job(store, row, prepared.plan, read_settings(), on_progress)
        return _work(job, store, prepared.dataset, base_url, hold)


def resume_run(
    row: RunRow,
    store: Store,
    *,
    base_url: str | None = None,
    concurrency: int | None = None,
    on_progress: OnProgress | None = None,
    hold: Hold | None = None,
) -> Ended:
    """Go on with a run where it was stopped.

    Raises:
        InputError: it is finished, somebody is at work on it, or its dataset has changed.
        IncompleteError: the store is in trouble.

    """
    from jurybox.datasets import open_dataset

    if row.status == "finished":
        raise InputError("the run is finished", "`jurybox show` shows it", row.id)
    plan = _plan_of(row)
    if plan.derived_from is not None:
        raise InputError("re-scoring was broken off", "re-score the run anew", row.id)
    with store.claim(row.id) as mine:
        if not mine:
            raise InputError("another process is working on the run", "wait for it", row.id)
        # Somebody may have finished it while this process was waiting for its turn.
        current = store.run(row.id) or row
        if current.status == "finished":
            return Ended(view=finished_view(current))
        recorded = plan.dataset.responses
        dataset = open_dataset(
            Path(plan.dataset.path),
            None if recorded is None else Path(recorded),
            limit=plan.dataset.limit,
        )
        if dataset.recorded != plan.dataset.responses_sha256:
            problem = "the recorded responses have changed since the run began"
            raise InputError(problem, "bring the file back, or start a new run", str(recorded))
        changed = describe_change(dataset, plan, store, row.id)
        if changed is not None:
            raise InputError(changed, "bring the file back, or start a new run", dataset.origin)
        if concurrency is not None:
            plan = msgspec.structs.replace(plan, concurrency=concurrency)
        job = Job(store, current, plan, read_settings(), on_progress)
        return _work(job, store, dataset, base_url, hold)


def forget_batches(row: RunRow, store: Store) -> None:
    """Wait for no batch of a run any more: what they were asked is asked again.

    Raises:
        InputError: somebody is at work on the run.
        IncompleteError: the store is in trouble.

    """
    with store.claim(row.id) as mine:
        if not mine:
            raise InputError("another process is working on the run", "wait for it", row.id)
        close_batches(store, row.id, "gone")


def _work(
    job: Job, store: Store, dataset: "Dataset", base_url: str | None, hold: Hold | None
) -> Ended:
    async def work() -> RunRow:
        if hold is not None:
            hold(job)
        return await job.work(dataset, base_url)

    row = asyncio.run(work())
    if row.status == "finished":
        return Ended(view=finished_view(row))
    return Ended(view=view_unfinished(row, store, working=False), stopped=job.why_stopped)


def new_run(plan: Plan, procedure: Procedure) -> RunRow:
    """Return the row of a run that begins now, with its metadata (A11)."""
    now = datetime.now(UTC)
    tail = "".join(secrets.choice(_LETTERS) for _ in range(4))
    run_id = f"{now:%Y%m%d-%H%M%S}-{tail}"
    timestamp = now_utc()
    metadata = run_metadata(
        run_id=run_id,
        timestamp=timestamp,
        plan=plan,
        procedure=procedure,
        region=read_settings().region,
    )
    return sealed(
        RunRow(
            id=run_id,
            suite=plan.suite,
            status="running",
            created_at=timestamp,
            finished_at=None,
            plan=plan_text(plan),
            metadata=ENCODER.encode(metadata).decode(),
            outcome=None,
            digest=None,
        )
    )


def _plan_of(row: RunRow) -> Plan:
    try:
        return read_plan(row.plan)
    except msgspec.DecodeError as error:
        what = f"the plan of run {row.id} can't be read ({error}); `jurybox verify` says where"
        raise IncompleteError(what) from None
