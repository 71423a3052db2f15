"""Runs all samples within bounded memory until they are finished or a user stops the run.

The procedure defines what happens to a sample, callers enforce the limits of endpoints, and the
writer makes the run wait for a slow store. The runner ensures that a bounded number of samples is
in flight, that one bad sample doesn't stop the others, and that every finished sample is stored.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Final, NamedTuple, Protocol, cast

import msgspec

from jurybox.engine.driver import SampleState, drive
from jurybox.engine.limiter import UnwrittenReplies
from jurybox.engine.ports import Sink
from jurybox.engine.records import (
    ENCODER,
    ExchangeHashes,
    ExchangeRow,
    SampleRow,
    Work,
    exchange_seal,
    frame_hash,
    framed,
    hashed_sample,
    hashes_of,
    notes_of,
    outcome_text,
    read_outcome,
    request_key,
    sample_row,
    text_hash,
)
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome
from jurybox.judging.model_versions import contradiction
from jurybox.scoring.evaluate_sample import Procedure, evaluate_sample
from jurybox.scoring.sample_result import Role, SampleResult

# Rows are collected for this many seconds per commit, because each commit writes to the disk and
# interrupts the event loop several times: with 0.005, a judged sample takes 12% more CPU time. With
# 500 calls at once of 200 ms each, the speed is the same.
_PAUSE: Final = 0.02
_FULL: Final = 1000
"""How many samples and replies may be queued before the run waits for the store."""


class ModelSession(msgspec.Struct, frozen=True, kw_only=True):
    """The models of a run."""

    # Calls a model and waits for its reply.
    call: Callable[[Role, ModelRequest, SampleState], Awaitable[Outcome]]
    # Returns the address of a role's model, because the same name may mean different models.
    endpoint: Callable[[Role, str], str]
    # Returns a model's reply to an equal request of an earlier run; None if the run uses no cache.
    lookup: Callable[[str, str], Awaitable[ModelReply | None]] | None = None
    window: int = 1  # how many samples may be in flight at once
    # Returns a description of each endpoint that doesn't answer.
    outages: Callable[[], Sequence[str]] = tuple
    # Counts the replies that aren't stored yet; None if nothing waits for them.
    unwritten: UnwrittenReplies | None = None
    # Whether a model may answer with a different version than the plan names.
    allow_version_drift: bool = False


class FinishedExchange(NamedTuple):
    """The row of an exchange, its hashes, and whether the row has been handed to the store."""

    row: ExchangeRow
    hashes: ExchangeHashes
    is_stored: bool


class HaltedError(Exception):
    """A fatal failure: no request can succeed, so the sample is left for `jurybox resume`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Transcript:
    """Answers the requests of one sample's flow, and keeps the exchanges in the flow's order.

    Replies that an earlier process stored before it stopped are reused.
    """

    def __init__(
        self,
        session: ModelSession,
        run_id: str,
        work: Work,
        *,
        target: bool,
        known: Sequence[ExchangeRow],
        on_reply: Callable[[ExchangeRow], Awaitable[None]],
    ) -> None:
        self._session = session
        self._run_id = run_id
        self._work = work
        self._target = target
        self._known = _by_key(known)
        self._arrivals = 1 + max([row.position for row in known], default=-1)
        self._on_reply = on_reply
        self._exchanges: list[FinishedExchange | None] = []
        self._drift: Failure | None = None
        self.started = self.cancelled = False

    def __call__(self, request: ModelRequest) -> Awaitable[Outcome]:
        """Take the next position immediately, and return an awaitable for the answer.

        Raises:
            HaltedError: a model answered with a different version than requested.

        """
        self.check_versions()
        position = len(self._exchanges)
        self._exchanges.append(None)
        return self._answer(position, request)

    async def _answer(self, position: int, request: ModelRequest) -> Outcome:
        role: Role = "target" if self._target and position == 0 else "judge"
        frame, material = framed(request)
        asked = (frame_hash(frame), text_hash(material))
        endpoint = self._session.endpoint(role, request.model)
        key = request_key(*asked, endpoint, self._work.repeat)
        stored = self._known.get(key)
        if stored:
            row = stored.popleft()
            outcome = read_outcome(row)
            self._exchanges[position] = FinishedExchange(row, hashes_of(row), is_stored=True)
            self._check_version(request, outcome)
            return outcome
        lookup = self._session.lookup
        found = None if lookup is None else await lookup(request.model, key)
        if found is None:
            outcome = await self._session.call(role, request, self)
        else:
            outcome = msgspec.structs.replace(found, cached=True)
        if isinstance(outcome, Failure) and outcome.fatal:
            raise HaltedError(outcome)
        text, notes = _stored_form(role, outcome)
        is_reply = isinstance(outcome, ModelReply)
        # Only a fresh reply may be reused if the same request is made later.
        key = key if is_reply and not outcome.cached else ""
        arrival, self._arrivals = self._arrivals, self._arrivals + 1
        hashes = ExchangeHashes(role, *asked, text_hash(text))
        row = ExchangeRow(
            run_id=self._run_id,
            number=self._work.number,
            position=arrival,
            role=role,
            key=key,
            frame=frame,
            material=material,
            outcome=text,
            notes=notes,
        )
        row = msgspec.structs.replace(row, seal=exchange_seal(row, hashes))
        self._exchanges[position] = FinishedExchange(row, hashes, is_stored=is_reply)
        if is_reply:
            await self._on_reply(row)
        self._check_version(request, outcome)
        return outcome

    def _check_version(self, request: ModelRequest, outcome: Outcome) -> None:
        if isinstance(outcome, Failure) or self._session.allow_version_drift:
            return
        what = contradiction(request.model, outcome.model)
        if what is not None:
            self._drift = Failure(kind="refused", message=what, fatal=True)

    def check_versions(self) -> None:
        """Halt the sample if a model answered with a different version than requested.

        Called after the replies in flight have arrived, because they are paid for.

        Raises:
            HaltedError: a version differs.

        """
        if self._drift is not None:
            raise HaltedError(self._drift)

    def exchanges(self) -> list[FinishedExchange]:
        """Return the exchanges in the flow's order."""
        return [each for each in self._exchanges if each is not None]

    def unused(self) -> list[ExchangeRow]:
        """Return the stored replies that no request has used."""
        return [row for rows in self._known.values() for row in rows]


def _by_key(rows: Iterable[ExchangeRow]) -> Mapping[str, deque[ExchangeRow]]:
    """Group stored replies by request; equal requests get theirs in stored order."""
    known: dict[str, deque[ExchangeRow]] = {}
    for row in rows:
        known.setdefault(row.key, deque()).append(row)
    return known


def _stored_form(role: Role, outcome: Outcome) -> tuple[str, str]:
    """Return an outcome as text, and separately its values that differ between equal runs."""
    notes: dict[str, object] = {"at": time.time_ns() // 1_000_000}
    if role == "judge":
        notes["latency_ms"] = outcome.latency_ms
        usual: dict[str, object] = {"latency_ms": None}
        if outcome.attempts > 1:
            notes["attempts"], usual["attempts"] = outcome.attempts, 1
            if isinstance(outcome, ModelReply):
                notes["attempt_ms"], usual["attempt_ms"] = outcome.attempt_ms, None
        outcome = msgspec.structs.replace(outcome, **usual)
    if isinstance(outcome, ModelReply) and outcome.reference is not None:
        notes["reference"] = outcome.reference
        outcome = msgspec.structs.replace(outcome, reference=None)
    return outcome_text(outcome), ENCODER.encode(notes).decode()


class RunObserver(Protocol):
    """Follows a run; its methods must not block."""

    def finished(self, work: Work, result: SampleResult) -> None:
        """Report a finished sample."""
        ...

    def sample_error(self, sample_id: str, error: Exception) -> None:
        """Report a sample that couldn't be finished because of a bug."""
        ...


class Stop:
    """A request to end a run, either after the samples in flight or immediately."""

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self._samples: dict[asyncio.Task[None], Transcript] = {}
        self.on_request: Callable[[bool], None] = lambda _at_once: None
        """Called when a stop is requested, with whether the run must end immediately."""

    @property
    def in_flight(self) -> int:
        """How many unfinished samples have sent a request."""
        return sum(transcript.started for transcript in self._samples.values())

    def soon(self, reason: str) -> None:
        """Start no further sample; finish those in flight."""
        if not self.requested:
            self.requested = True
            self.reason = reason
            # A sample that has sent no request yet has cost nothing.
            self._cancel(lambda transcript: not transcript.started)
            self.on_request(False)  # noqa: FBT003 - a callback takes it by position

    def at_once(self, reason: str) -> None:
        """Abandon the samples in flight; finished ones are still stored."""
        self.soon(reason)
        self._cancel(lambda _: True)
        self.on_request(True)  # noqa: FBT003 - the same

    def _cancel(self, applies: Callable[[Transcript], bool]) -> None:
        for task, transcript in self._samples.items():
            if applies(transcript):
                transcript.cancelled = True
                task.cancel()

    def add(self, task: asyncio.Task[None], transcript: Transcript) -> None:
        """Register the sample of a task."""
        self._samples[task] = transcript

    def remove(self, task: asyncio.Task[None]) -> None:
        """Forget the sample of a finished task."""
        self._samples.pop(task)


class _Rows(NamedTuple):
    """A sample and its unstored exchanges, or one reply, which occupies a slot until stored."""

    sample: SampleRow | None
    exchanges: Sequence[ExchangeRow]


class Writer:
    """Stores rows in a thread of its own; a full queue makes the run wait.

    The event loop may be busy for a long time, so the thread doesn't wait for it. After an error of
    the store, every later call to `room` or `close` raises it, so that the run ends.
    """

    def __init__(self, store: Sink, unwritten: UnwrittenReplies | None = None) -> None:
        self._store = store
        self._unwritten = unwritten or UnwrittenReplies()
        self._queue: SimpleQueue[_Rows | None] = SimpleQueue()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._run())

    def add(self, sample: SampleRow, exchanges: Sequence[ExchangeRow] = ()) -> None:
        """Queue a finished sample without waiting; drop it if the store has failed."""
        self._put(_Rows(sample, exchanges))

    async def add_reply(self, row: ExchangeRow) -> None:
        """Store a reply of an unfinished sample: it is paid for and must not be lost."""
        if self._error is None:
            self._put(_Rows(None, (row,)))
            await self._unwritten.add()

    def _put(self, rows: _Rows) -> None:
        if self._error is None:
            self._queue.put(rows)
            if self._queue.qsize() >= _FULL:
                self._has_room.clear()

    @property
    def failed(self) -> bool:
        """Whether the store has failed."""
        return self._error is not None

    async def room(self) -> None:
        """Wait until the queue has room."""
        await self._has_room.wait()
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        """Store everything that is still queued."""
        self._queue.put(None)
        # A second Ctrl-C may cancel this wait, but not the writing.
        await asyncio.shield(self._task)
        if self._error is not None:
            raise self._error

    async def _run(self) -> None:
        try:
            await asyncio.to_thread(self._write)
        except Exception as error:  # noqa: BLE001 - it is raised to every later caller
            self._error = error
        finally:
            self._has_room.set()
            self._unwritten.stored(len(self._unwritten.replies))

    def _write(self) -> None:
        """Store rows until `close` ends the queue; rows that arrive together share a commit."""
        closing = False
        while not closing:
            entries = [self._queue.get()]
            time.sleep(_PAUSE)
            while not self._queue.empty():
                entries.append(self._queue.get())
            closing = None in entries
            rows = [each for each in entries if each is not None]
            self._store.append(
                [each.sample for each in rows if each.sample is not None],
                [row for each in rows for row in each.exchanges],
            )
            self._loop.call_soon_threadsafe(self._note_stored, rows)

    def _note_stored(self, rows: Sequence[_Rows]) -> None:
        self._has_room.set()
        self._unwritten.stored(sum(each.sample is None for each in rows))


class Runner:
    """Executes one run."""

    def __init__(
        self,
        *,
        run_id: str,
        procedure: Procedure,
        session: ModelSession,
        store: Sink,
        observer: RunObserver,
        stop: Stop,
    ) -> None:
        self._run_id = run_id
        self._procedure = procedure
        self._session = session
        self._store = store
        self._observer = observer
        self._stop = stop

    async def run(
        self, work: Iterable[Work], known: Mapping[int, Sequence[ExchangeRow]] | None = None
    ) -> None:
        """Evaluate samples until all are finished or a stop is requested.

        ``known`` has the stored replies of unfinished samples, by sample number.

        Raises:
            IncompleteError: the store has failed; rows that were stored before are kept.

        """
        writer = Writer(self._store, self._session.unwritten)
        remaining = iter(work)
        # Each worker takes the next sample when it is done with the previous one.
        workers = [
            asyncio.create_task(self._work(remaining, known or {}, writer))
            for _ in range(max(1, self._session.window))
        ]
        try:
            await self._join(workers, writer)
        except BaseException as error:
            try:
                self._stop.at_once(_reason(error))
            finally:
                for each in workers:
                    each.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
            raise
        finally:
            await writer.close()

    async def _join(self, workers: Sequence[asyncio.Task[None]], writer: Writer) -> None:
        """Wait for all workers.

        If a worker fails, its error is raised after the others have finished their samples in
        flight, because those are paid for; if the store failed, it is raised immediately.
        """
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        errors = [each.exception() for each in workers if each.done() and not each.cancelled()]
        for error in errors:
            if error is None:
                continue
            if not writer.failed:
                self._stop.soon(_reason(error))
                await asyncio.wait(workers)
            raise error

    async def _work(
        self,
        remaining: Iterator[Work],
        known: Mapping[int, Sequence[ExchangeRow]],
        writer: Writer,
    ) -> None:
        """Evaluate one sample after the other until none is left."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        while not self._stop.requested and (work := next(remaining, None)) is not None:
            transcript = Transcript(
                self._session,
                self._run_id,
                work,
                target=self._procedure.target is not None,
                known=known.get(work.number, ()),
                on_reply=writer.add_reply,
            )
            self._stop.add(task, transcript)
            try:
                await self._finish(work, transcript, writer)
            finally:
                self._stop.remove(task)
            await writer.room()
            if not transcript.started:
                await asyncio.sleep(0)  # lets other tasks run, although no model was called

    async def _finish(self, work: Work, transcript: Transcript, writer: Writer) -> None:
        try:
            outcome = await drive(evaluate_sample(self._procedure, work.row), transcript)
            transcript.check_versions()
            exchanges = transcript.exchanges()
            notes = notes_of([each.row for each in exchanges], transcript.unused())
            sample = sample_row(self._run_id, work, outcome, notes)
            sample = hashed_sample(sample, [each.hashes for each in exchanges])
        except HaltedError as halted:
            self._stop.soon(halted.failure.message)
            return
        except Exception as error:  # noqa: BLE001 - one bad sample never stops a run
            self._observer.sample_error(work.row.id, error)
            return
        writer.add(sample, [each.row for each in exchanges if not each.is_stored])
        self._observer.finished(work, outcome.result)


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__
