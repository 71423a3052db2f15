"""Writing to the store while the run goes on: in batches, from a thread, within bounds."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from jurybox.engine.records import ExchangeRow, SampleRow
from jurybox.engine.store_port import Store

# A commit costs a write to the disk; so many seconds of finished work go into one.
_PAUSE: Final = 0.05
_FULL: Final = 1000
"""How many rows may wait before the run waits for the store."""


class Sink:
    """Collects rows and stores them; whoever finishes too much at once is made to wait.

    Trouble with the store is kept and raised to whoever comes next, so that the run ends.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._samples: list[SampleRow] = []
        self._exchanges: list[ExchangeRow] = []
        self._wake = asyncio.Event()
        self._urgent = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()
        self._closing = False
        self._trouble: BaseException | None = None
        self._task = asyncio.create_task(self._write())

    def add(self, sample: SampleRow | None, exchanges: Sequence[ExchangeRow] = ()) -> None:
        """Take rows without waiting; after trouble with the store nobody stores them any more."""
        if self._trouble is not None:
            return
        if sample is not None:
            self._samples.append(sample)
        self._exchanges += exchanges
        self._wake.set()
        if len(self._samples) + len(self._exchanges) >= _FULL:
            self._drained.clear()
            self._urgent.set()

    def add_reply(self, row: ExchangeRow) -> None:
        """Take a reply to a sample that isn't finished yet: it is paid for."""
        self.add(None, (row,))

    @property
    def in_trouble(self) -> bool:
        """Whether the store takes nothing any more."""
        return self._trouble is not None

    async def room(self) -> None:
        """Wait until there is room for more.

        Raises:
            IncompleteError: the store is in trouble.

        """
        await self._drained.wait()
        if self._trouble is not None:
            raise self._trouble

    async def close(self) -> None:
        """Store all that is left.

        Raises:
            IncompleteError: the store is in trouble.

        """
        self._closing = True
        self._wake.set()
        self._urgent.set()
        # Whoever is impatient may cancel the waiting, but not the writing.
        await asyncio.shield(self._task)
        if self._trouble is not None:
            raise self._trouble

    async def _write(self) -> None:
        try:
            while not (self._closing and not self._samples and not self._exchanges):
                await self._wake.wait()
                self._wake.clear()
                await self._gather()
                await self._flush()
        except Exception as error:  # noqa: BLE001 - it is raised to whoever comes next
            self._trouble = error
        finally:
            self._drained.set()

    async def _gather(self) -> None:
        """Let some more come together, unless there is enough already."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PAUSE):
                await self._urgent.wait()

    async def _flush(self) -> None:
        samples, self._samples = self._samples, []
        exchanges, self._exchanges = self._exchanges, []
        if not self._closing:
            self._urgent.clear()
        if samples or exchanges:
            await asyncio.to_thread(self._store.append, samples, exchanges)
        self._drained.set()
