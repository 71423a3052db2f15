"""A batch: rows in, records out, within bounds of memory, until all is done or somebody stops it.

The runner owns no policy of its own: a procedure says what happens to a sample, callers hold the
limits of endpoints, the sink those of the store. It adds that only so many samples are under
way at once, that one bad sample stops nobody, and that whatever was finished is stored.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, cast

import msgspec

from jurybox.engine.driver import drive
from jurybox.engine.records import ENCODER, ExchangeRow, SampleRow, hashed_sample, notes_of
from jurybox.engine.sink import Sink
from jurybox.engine.stop import Stop
from jurybox.engine.store_port import Store
from jurybox.engine.transcript import HaltedError, Place, Stage, Transcript
from jurybox.sample import Row
from jurybox.scoring.evaluate_sample import Conducted, Procedure, conduct
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.uses import with_uses


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


class _Round(msgspec.Struct, frozen=True, kw_only=True):
    """What those who finish the samples of a run together share."""

    work: Iterator[Work]
    watch: Watch
    stop: Stop
    sink: Sink
    known: Mapping[int, Sequence[ExchangeRow]]

    def next(self) -> Work | None:
        """Return the next sample; none once the run is to end, so that no row is read in vain."""
        return None if self.stop.requested else next(self.work, None)


class Runner:
    """Runs one run.

    Samples take turns: at six points of its way a sample lets the others come to the same point
    (``asyncio.sleep(0)``), because a step whose code and data were used a moment ago is faster.
    Without the two in the driver, a sample with one vote takes 16% more CPU time (decision 18).
    """

    def __init__(
        self, *, run_id: str, procedure: Procedure, stage: Stage, store: Store, window: int
    ) -> None:
        self._run_id = run_id
        self._procedure = procedure
        self._stage = stage
        self._store = store
        self._window = max(1, window)

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
        shared = _Round(work=iter(work), watch=watch, stop=stop, sink=sink, known=known or {})
        try:
            await self._run(shared)
        finally:
            await sink.close()

    async def _run(self, shared: _Round) -> None:
        """Have as many samples under way as the window is wide."""
        # Each takes the next sample when its last one is done.
        workers = [asyncio.create_task(self._work(shared)) for _ in range(self._window)]
        try:
            await _until_done(workers, shared)
        except BaseException as error:
            try:
                shared.stop.at_once(_reason(error))
            finally:
                for each in workers:
                    each.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
            raise

    async def _work(self, shared: _Round) -> None:
        """Finish one sample after the other, as long as there are any."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        while (each := shared.next()) is not None:
            transcript = self._transcript(each, shared.sink, shared.known.get(each.number, ()))
            shared.stop.hold(task, transcript)
            try:
                await self._finish(each, shared, transcript)
            finally:
                shared.stop.let_go(task)
            await shared.sink.room()
            await asyncio.sleep(0)

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
            flow = conduct(self._procedure, work.row)
            conducted = await drive(flow, transcript)
            await asyncio.sleep(0)
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


async def _until_done(workers: Sequence[asyncio.Task[None]], shared: _Round) -> None:
    """Wait until there is nothing left to do.

    A fault of a worker is raised once the others have finished what is under way and paid for,
    unless it can't be stored.
    """
    await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
    faults = [each.exception() for each in workers if each.done() and not each.cancelled()]
    for fault in faults:
        if fault is None:
            continue
        if not shared.sink.in_trouble:
            shared.stop.soon(_reason(fault))
            await asyncio.wait(workers)
        raise fault


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


def _reason(error: BaseException) -> str:
    return str(error) or type(error).__name__


def _json(value: object) -> str:
    return ENCODER.encode(value).decode()
