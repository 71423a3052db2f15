"""A batch: rows in, records out, within bounds of memory, until all is done or somebody stops it.

The runner owns no policy of its own: a procedure says what happens to a sample, callers hold the
limits of endpoints, the sink those of the store. It adds that only so many samples are under
way at once, that one bad sample stops nobody, and that whatever was finished is stored.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, cast

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
from jurybox.running.turns import OTHERS
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
        self._samples: dict[asyncio.Task[None], Transcript] = {}
        self._listeners: list[Callable[[str, bool], None]] = []

    @property
    def under_way(self) -> int:
        """How many samples are under way."""
        return sum(transcript.begun for transcript in self._samples.values())

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
        for task, transcript in self._samples.items():
            if whom(transcript):
                task.cancel()

    def hold(self, task: asyncio.Task[None], transcript: Transcript) -> None:
        """Remember a sample, whose transcript says whether anybody was asked about it yet."""
        self._samples[task] = transcript

    def let_go(self, task: asyncio.Task[None]) -> None:
        """Forget the sample that a task has ended."""
        self._samples.pop(task).leave()


class _Round(msgspec.Struct, frozen=True, kw_only=True):
    """What those who finish the samples of a run together share."""

    work: Iterator[Work]
    watch: Watch
    stop: Stop
    sink: Sink
    known: Mapping[int, Sequence[ExchangeRow]]


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
            # The runner itself, until all who take samples are there.
            self._arrive()
        try:
            if self._alone:
                await self._run_alone(work, watch, stop, sink)
            else:
                await self._run_together(
                    _Round(work=iter(work), watch=watch, stop=stop, sink=sink, known=known or {})
                )
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

    async def _run_together(self, shared: _Round) -> None:
        """Have as many samples under way as the window is wide."""
        # Each of them takes the next sample when its last one is done: a task for every sample
        # would cost twice as much.
        takers: list[asyncio.Task[None]] = []
        try:
            while len(takers) < self._window and (first := next(shared.work, None)) is not None:
                self._arrive()
                takers.append(asyncio.create_task(self._take_turns(first, shared)))
            if takers:
                self._go()
                ended, _ = await asyncio.wait(takers, return_when=asyncio.FIRST_EXCEPTION)
                for each in ended:
                    if not each.cancelled():
                        each.result()
        except BaseException as error:
            shared.stop.at_once(str(error) or type(error).__name__)
            for each in takers:
                each.cancel()
            await asyncio.gather(*takers, return_exceptions=True)
            raise

    async def _take_turns(self, first: Work, shared: _Round) -> None:
        """Finish one sample after the other, as long as there are any."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        stop, sink = shared.stop, shared.sink
        each: Work | None = first
        try:
            while each is not None and not stop.requested:
                transcript = self._transcript(each, sink, shared.known.get(each.number, ()))
                stop.hold(task, transcript)
                # From here on the sample itself says whether it may ask something.
                self._go()
                try:
                    await self._finish(each, shared, transcript)
                finally:
                    self._arrive()
                    stop.let_go(task)
                if not sink.has_room:
                    await sink.room()
                await OTHERS
                each = next(shared.work, None)
        finally:
            self._go()

    def _arrive(self) -> None:
        """Say that somebody may begin a further sample."""
        if self._stage.batches is not None:
            self._stage.batches.attendance.enter()

    def _go(self) -> None:
        """Say that somebody won't any more, or waits."""
        if self._stage.batches is not None:
            self._stage.batches.attendance.leave()

    def _transcript(self, work: Work, sink: Sink, known: Sequence[ExchangeRow]) -> Transcript:
        return Transcript(
            self._stage,
            Place(run_id=self._run_id, number=work.number, repeat=work.repeat),
            target=self._procedure.target is not None,
            known=known,
            on_reply=sink.add_reply,
        )

    async def _finish(self, work: Work, shared: _Round, transcript: Transcript) -> None:
        try:
            conducted = await drive(conduct(self._procedure, work.row), transcript)
            await OTHERS
            told = transcript.entries()
            result = with_uses(conducted.result, [each.exchanged for each in told])
            conducted = msgspec.structs.replace(conducted, result=result)
            notes = notes_of([each.row for each in told], transcript.unused())
            sample = sample_row(self._run_id, work, conducted, notes)
            sample = hashed_sample(sample, [each.hashes for each in told])
        except HaltedError as halted:
            shared.stop.soon(halted.failure.message)
            return
        except Exception as error:  # noqa: BLE001 - one bad sample never stops a run
            shared.watch.broken_sample(work.row.id, error)
            return
        shared.sink.add(sample, [each.row for each in told if not each.is_stored])
        shared.watch.finished(work, result)


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
