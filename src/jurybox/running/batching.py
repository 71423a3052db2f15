"""Asking judges in batches: gather what is asked until nobody can ask more, then send all of it.

Flows know nothing of it: a request waits a little longer for its outcome. A question that is asked
again, or comes after another, is part of the next batch.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from jurybox.judging.exchange import Failure, ModelRequest
from jurybox.running.attendance import Attendance
from jurybox.running.batch_lane import Asked, Delivered, Lane, Means
from jurybox.running.batch_model import BatchModel
from jurybox.running.batch_post import Pace, Post, Waiting
from jurybox.running.clock import SystemClock
from jurybox.running.ledger import Ledger
from jurybox.running.ports import Clock
from jurybox.running.records import BatchRow


async def _at_once() -> None:
    """Wait for no store."""


class BatchWatch(Protocol):
    """Is told how batches get on; it must not wait."""

    def noticed(self, text: str) -> None:
        """Note what a person should know."""
        ...

    def waited(self) -> None:
        """Note that a batch is waited for, was looked at, or has ended."""
        ...


class Batcher:
    """The batches of one run, a lane for each model."""

    def __init__(
        self,
        models: Mapping[str, BatchModel],
        ledger: Ledger,
        watch: "BatchWatch",
        *,
        pace: Pace | None = None,
        clock: Clock | None = None,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.attendance = Attendance(self._quiet)
        pace, clock = pace or Pace(), clock or SystemClock()
        means = Means(
            ledger=ledger,
            attendance=self.attendance,
            pace=pace,
            tell=watch.noticed,
        )
        gate = asyncio.Lock()
        self._ledger = ledger
        self._posts: list[Post] = []
        self._lanes: dict[str, Lane] = {}
        for name, model in models.items():
            post = Post(model, ledger, pace, clock, draw, gate)
            post.on_change = watch.waited
            self._posts.append(post)
            self._lanes[name] = Lane(name, model, post, means)
        self._stored: Callable[[], Awaitable[None]] = _at_once
        self._halt: Failure | None = None
        self._flushing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Look for batches that the run left open, and have them waited for first.

        Raises:
            IncompleteError: the store is in trouble.

        """
        rows = await self._ledger.open_rows()
        for name, lane in self._lanes.items():
            lane.recover([row for row in rows if row.model == name])

    def attach(self, stored: Callable[[], Awaitable[None]]) -> None:
        """Take what waits until all replies that were handed out are stored."""
        self._stored = stored

    async def ask(self, request: ModelRequest, key: str) -> Delivered:
        """Return what comes of a request, and the name of the batch it was in."""
        lane = self._lanes[request.model]
        if self._halt is not None:
            return self._halt, ""
        asked = Asked(request, key)
        delivered = lane.known(asked) or await self._wait(lane, asked)
        # From here to the store's queue nobody is waited for, so nothing can come between.
        lane.heard(asked)
        return delivered

    async def _wait(self, lane: Lane, asked: Asked) -> Delivered:
        lane.add(asked)
        self.attendance.leave()
        try:
            return await asked.future
        except asyncio.CancelledError:
            lane.forget(asked)
            # Who got an outcome in the very moment of the cancellation was counted with it.
            if asked.future.cancelled():
                self.attendance.enter()
            raise

    def _quiet(self) -> None:
        waiting = any(lane.gathered for lane in self._lanes.values())
        if waiting and self._halt is None and self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        try:
            # What the last batches said is on the disk before they are forgotten. What is heard
            # while the store is waited for may not be.
            read = self._read(finished=False)
            await self._stored()
            await self._settle(read)
        except Exception as error:  # noqa: BLE001 - told to everybody who waits
            self.stop(str(error) or type(error).__name__)
        finally:
            self._flushing = None
        if self.attendance.quiet and self._halt is None:
            for lane in self._lanes.values():
                lane.send()

    async def settle(self, *, finished: bool = False) -> None:
        """Note that what was read is stored; in a finished run nothing is waited for any more.

        Raises:
            IncompleteError: the store is in trouble.

        """
        await self._settle(self._read(finished=finished))

    def _read(self, *, finished: bool) -> Sequence[tuple[Lane, Sequence[BatchRow]]]:
        return [(lane, lane.read(finished=finished)) for lane in self._lanes.values()]

    async def _settle(self, read: Sequence[tuple[Lane, Sequence[BatchRow]]]) -> None:
        for lane, rows in read:
            await lane.settle(rows)

    def stop(self, reason: str, *, at_once: bool = False) -> None:
        """Wait for nothing more and submit nothing more; what is submitted stays so."""
        if self._halt is None:
            self._halt = Failure(kind="unreachable", message=reason, everybody=True)
        for lane in self._lanes.values():
            lane.stop(self._halt, at_once=at_once)
        if at_once and self._flushing is not None:
            self._flushing.cancel()

    async def aclose(self) -> None:
        """Let what is being submitted be noted, and leave the rest."""
        self.stop("the run ended")
        flushing = () if self._flushing is None else (self._flushing,)
        for task in flushing:
            task.cancel()
        tasks = [task for lane in self._lanes.values() for task in lane.tasks]
        await asyncio.gather(*tasks, *flushing, return_exceptions=True)

    @property
    def waiting(self) -> Sequence[Waiting]:
        """What providers are working on."""
        return [each for post in self._posts for each in post.waiting.values()]

    @property
    def left_open(self) -> Sequence[BatchRow]:
        """What was submitted and not read to its end."""
        return [row for lane in self._lanes.values() for row in lane.left_open.values()]
