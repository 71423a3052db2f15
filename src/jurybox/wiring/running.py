"""One run while it goes on: what is left to do, what is done, and how it ends."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

from jurybox.errors import IncompleteError
from jurybox.models.prices import load_prices
from jurybox.running.outcomes import StoredOutcome, read_result
from jurybox.running.plan import Plan
from jurybox.running.ports import Model
from jurybox.running.records import ENCODER, ExchangeRow, RunRow, run_digest, sealed_run
from jurybox.running.runner import Runner, Work
from jurybox.running.stop import Stop
from jurybox.running.storing import Store
from jurybox.scoring.conduct import Procedure
from jurybox.scoring.result import ModelUse, SampleResult
from jurybox.scoring.summary import RunTally
from jurybox.settings import Settings
from jurybox.wiring.judge_batches import batched_model, close_batches
from jurybox.wiring.spending import run_cost
from jurybox.wiring.staging import open_stage, window

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
            async with open_stage(
                self._plan, self._settings, self._store, base_url, self._in_batches
            ) as stage:
                runner = Runner(
                    run_id=self.row.id,
                    procedure=self._procedure,
                    stage=stage,
                    store=self._store,
                    window=window(self._plan),
                )
                await runner.run(self._work(dataset), self, self.stop, known)
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
        from jurybox.models.batch_log import BatchLog

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

    def broken_sample(self, sample_id: str, error: Exception) -> None:
        """Note a sample that couldn't be finished through a fault."""
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
        row = sealed_run(msgspec.structs.replace(self.row, **changes))
        self._store.update_run(row)
        self.row = row
        return row


def now_utc() -> str:
    """Return the time as runs record it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
