"""A batch: rows in, records out, within bounds of memory, until all is done or somebody stops it.

The runner owns no policy of its own: a procedure says what happens to a sample, callers hold the
limits of endpoints, the sink those of the store. It adds that only so many samples are under
way at once, that one bad sample stops nobody, and that whatever was finished is stored.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from jurybox.judging.exchange import ModelRequest, Outcome
from jurybox.running.drive import drive, drive_sync
from jurybox.running.records import (
    ENCODER,
    ExchangeRow,
    SampleRow,
    hashed_sample,
    notes_of,
)
from jurybox.running.sink import Sink
from jurybox.running.storing import Store
from jurybox.running.transcript import HaltedError, Place, Stage, Transcript
from jurybox.sample import Row
from jurybox.scoring.conduct import Conducted, Procedure, conduct
from jurybox.scoring.result import SampleResult
from jurybox.scoring.uses import with_uses

# How many samples are done between two looks at the clock, where nobody is asked.
_STRETCH: Final = 16
# Then nothing is lost that was paid for, and to wait for the disk seldom is to wait less.
_BETWEEN: Final = 0.25
_ALONE: Final = notes_of(())


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One row in one repeat: a place in the plan."""

    number: int
    repeat: int
    row: Row


class Watch(Protocol):
    """Is told how the run goes on; it must not wait."""

    def finished(self, work: Work, result: SampleResult) -> None:
        """Note a finished sample."""
        ...

    def broken_sample(self, sample_id: str, error: Exception) -> None:
        """Note a sample that couldn't be finished through a fault."""
        ...


class Stop:
    """How somebody asks a run to end: soon, and then at once."""

    def __init__(self) -> None:
        self.requested = False
        self.reason = ""
        self._tasks: dict[asyncio.Task[None], Transcript] = {}
        self._one_less: asyncio.Future[None] | None = None
        self._listeners: list[Callable[[str, bool], None]] = []

    @property
    def under_way(self) -> int:
        """How many samples are under way."""
        return sum(transcript.begun for transcript in self._tasks.values())

    @property
    def held(self) -> int:
        """How many samples are under way or wait for a model."""
        return len(self._tasks)

    def soon(self, reason: str) -> None:
        """Begin no further sample; finish those that are under way."""
        if not self.requested:
            self.requested = True
            self.reason = reason
            # Who only stood in the queue for a model has lost nothing.
            self._cancel(lambda transcript: not transcript.begun)
            self._say(at_once=False)

    def at_once(self, reason: str) -> None:
        """Leave the samples that are under way; what is finished is stored."""
        self.soon(reason)
        self._cancel(lambda _: True)
        self._say(at_once=True)

    def listen(self, listener: Callable[[str, bool], None]) -> None:
        """Have somebody told why the run ends, and whether at once."""
        self._listeners.append(listener)
        if self.requested:
            listener(self.reason, False)  # noqa: FBT003 - nobody is told twice

    def _say(self, *, at_once: bool) -> None:
        for listener in self._listeners:
            listener(self.reason, at_once)

    def _cancel(self, whom: Callable[[Transcript], bool]) -> None:
        for task, transcript in self._tasks.items():
            if whom(transcript):
                task.cancel()

    def hold(self, task: asyncio.Task[None], transcript: Transcript) -> None:
        """Remember a sample, whose transcript says whether anybody was asked about it yet."""
        self._tasks[task] = transcript
        task.add_done_callback(self._let_go)

    def _let_go(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task).leave()
        if self._one_less is not None and not self._one_less.done():
            self._one_less.set_result(None)

    async def until(self, fewer: int) -> None:
        """Wait until fewer samples than that are under way."""
        # One future for all of them: to look at each would cost more the more are under way.
        while len(self._tasks) >= fewer:
            self._one_less = asyncio.get_running_loop().create_future()
            await self._one_less


class Runner:
    """Runs one run."""

    def __init__(
        self, *, run_id: str, procedure: Procedure, stage: Stage, store: Store, window: int
    ) -> None:
        self._run_id = run_id
        self._procedure = procedure
        self._stage = stage
        self._store = store
        self._window = max(1, window)
        # Nobody has to be asked: no task, no waiting.
        self._alone = procedure.target is None and not procedure.judges

    async def run(
        self,
        work: Iterable[Work],
        watch: Watch,
        stop: Stop,
        known: Mapping[int, Sequence[ExchangeRow]] | None = None,
    ) -> None:
        """Finish the work, or as much of it as is asked for.

        ``known`` are replies of this run to samples that weren't finished.

        Raises:
            IncompleteError: the store is in trouble; what it took is kept.

        """
        sink = Sink(self._store)
        if self._stage.batches is not None:
            self._stage.batches.attach(sink.stored)
            # The runner itself, who begins further samples.
            self._stage.batches.attendance.enter()
        try:
            if self._alone:
                await self._run_alone(work, watch, stop, sink)
            else:
                await self._run_together(iter(work), watch, stop, sink, known or {})
        finally:
            await sink.close()

    async def _run_alone(self, work: Iterable[Work], watch: Watch, stop: Stop, sink: Sink) -> None:
        """Finish one sample after the other, in turns with the store.

        There is nobody to wait for, and a thread that stores while this one scores would only take
        the interpreter from it, twice for every row.
        """
        now = asyncio.get_running_loop().time
        stored = now()
        for count, each in enumerate(work, start=1):
            self._finish_alone(each, watch, sink)
            if count % _STRETCH == 0 and (not sink.has_room or now() - stored >= _BETWEEN):
                await sink.store()
                stored = now()
                if stop.requested:
                    return

    def _finish_alone(self, work: Work, watch: Watch, sink: Sink) -> None:
        try:
            conducted = drive_sync(conduct(self._procedure, work.row), _nobody)
            sample = hashed_sample(sample_row(self._run_id, work, conducted, _ALONE), ())
        except Exception as error:  # noqa: BLE001 - one bad sample never stops a run
            watch.broken_sample(work.row.id, error)
            return
        sink.add(sample)
        watch.finished(work, conducted.result)

    async def _until(self, stop: Stop, fewer: int) -> None:
        """Wait until fewer samples are under way; meanwhile no further one is begun."""
        if self._stage.batches is None:
            await stop.until(fewer)
        else:
            with self._stage.batches.attendance.away():
                await stop.until(fewer)

    async def _run_together(
        self,
        work: Iterator[Work],
        watch: Watch,
        stop: Stop,
        sink: Sink,
        known: Mapping[int, Sequence[ExchangeRow]],
    ) -> None:
        try:
            while not stop.requested and (each := next(work, None)) is not None:
                transcript = self._transcript(each, sink, known.get(each.number, ()))
                task = asyncio.create_task(self._finish(each, watch, stop, sink, transcript))
                stop.hold(task, transcript)
                if stop.held >= self._window:
                    await self._until(stop, self._window)
                if not sink.has_room:
                    await sink.room()
            await self._until(stop, 1)
        except BaseException as error:
            stop.at_once(str(error) or type(error).__name__)
            await stop.until(1)
            raise

    def _transcript(self, work: Work, sink: Sink, known: Sequence[ExchangeRow]) -> Transcript:
        return Transcript(
            self._stage,
            Place(run_id=self._run_id, number=work.number, repeat=work.repeat),
            target=self._procedure.target is not None,
            known=known,
            on_reply=lambda row: sink.add(None, (row,)),
        )

    async def _finish(
        self, work: Work, watch: Watch, stop: Stop, sink: Sink, transcript: Transcript
    ) -> None:
        try:
            conducted = await drive(conduct(self._procedure, work.row), transcript)
            result = with_uses(conducted.result, transcript.exchanged())
            conducted = msgspec.structs.replace(conducted, result=result)
            notes = notes_of(transcript.rows(), transcript.unused())
            sample = sample_row(self._run_id, work, conducted, notes)
            sample = hashed_sample(sample, transcript.hashes())
        except HaltedError as halted:
            stop.soon(halted.failure.message)
            return
        except Exception as error:  # noqa: BLE001 - one bad sample never stops a run
            watch.broken_sample(work.row.id, error)
            return
        sink.add(sample, transcript.unstored())
        watch.finished(work, result)


def sample_row(run_id: str, work: Work, conducted: Conducted, notes: str) -> SampleRow:
    """Return a sample as it is stored, but for its hashes."""
    inputs = msgspec.structs.replace(work.row, response=None, response_b=None)
    responses = {"response": conducted.response, "response_b": work.row.response_b}
    return SampleRow(
        run_id=run_id,
        number=work.number,
        sample_id=work.row.id,
        repeat=work.repeat,
        inputs=_json(inputs),
        responses=_json(responses),
        report=None if conducted.report is None else _json(conducted.report),
        automated=None if conducted.automated is None else _json(conducted.automated),
        result=_json(conducted.result),
        notes=notes,
        record_sha256="",
    )


def _json(value: object) -> str:
    return ENCODER.encode(value).decode()


def _nobody(request: ModelRequest) -> Outcome:
    raise AssertionError(f"nobody answers {request.model} here")
