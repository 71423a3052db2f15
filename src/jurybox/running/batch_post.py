"""Dealing with a provider about one batch: hand it over, wait for it, get what it came to."""

import asyncio
from collections.abc import Awaitable, Callable, Container
from typing import Final, NamedTuple, TypeVar

import msgspec

from jurybox.running.batch_model import BatchModel, Look, Results
from jurybox.running.ledger import Ledger, key_in, mark_of
from jurybox.running.limits import Limits, delay
from jurybox.running.ports import Clock, ModelTrouble
from jurybox.running.records import BatchRow

T = TypeVar("T")

_MEGABYTE: Final = 1_000_000
_FORGET: Final = "`jurybox resume --forget-batches` asks anew, and pays again"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How batches are filled, waited for and given up; times in seconds.

    Attributes:
        first: before the first look at a batch; a server of one's own may answer at once.
        growth: each wait is so many times as long as the one before.
        longest: no wait is longer. Providers take minutes to hours, up to a day.
        requests: the most in one batch; providers take at least 50,000.
        bytes: the most in one batch; providers take at least 200 MB, but here it stands in memory,
            twice while it is sent.
        attempts: how often one request is tried in all where the provider had trouble with it.
        lapses: how often one is asked again that a batch left out, lost or was too late for.
        patience: so long a provider may be out of reach before waiting for it is given up.

    """

    first: float = 0.2
    growth: float = 1.6
    longest: float = 60.0
    requests: int = 10_000
    bytes: int = 25 * _MEGABYTE
    attempts: int = 4
    lapses: int = 1
    patience: float = 900.0


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is waited for; ``answered`` as far as the provider says."""

    row: BatchRow
    answered: int | None = None


class Parcel(NamedTuple):
    """A batch that the ledger knows, and its requests as they are sent."""

    row: BatchRow
    lines: list[bytes]


class GivenUpError(Exception):
    """Nobody in the run gets on by asking; the message says why."""


class RefusedError(GivenUpError):
    """The provider won't have a batch."""


class _Lost(NamedTuple):
    """An attempt to hand over a batch that came to nothing, as far as one knows."""

    row: BatchRow
    trouble: ModelTrouble


class Post:
    """One model's provider, asked as patiently as a batch deserves."""

    def __init__(
        self,
        model: BatchModel,
        ledger: Ledger,
        pace: Pace,
        clock: Clock,
        draw: Callable[[], float],
        gate: asyncio.Lock,
    ) -> None:
        self._model = model
        self._ledger = ledger
        self._pace = pace
        self._clock = clock
        self._draw = draw
        self._limits = Limits(longest_delay=pace.longest)
        self.waiting: dict[int, Waiting] = {}
        self.on_change: Callable[[], None] = lambda: None
        # One after the other, also with other models: what is sent stands in memory meanwhile.
        self._gate = gate
        self.stopped = False
        self.uploading: set[asyncio.Task[None] | None] = set()

    async def submit(self, pack: Callable[[], Awaitable[Parcel | None]]) -> BatchRow | None:
        """Hand over a batch and write down its name; None where there is nothing to hand over.

        Where it isn't known whether the provider took it, it is looked for before it is handed
        over again: a batch that is submitted twice is paid for twice. ``pack`` is called for each
        attempt, so that nothing of the batch stands in memory between two.

        Raises:
            RefusedError: the provider won't have it.
            GivenUpError: the provider is out of reach; nobody knows whether it has the batch.
            IncompleteError: the store is in trouble.

        """
        began, attempts = self._clock.now(), 0
        while True:
            attempts += 1
            async with self._gate:
                tried = await self._upload(pack)
            if not isinstance(tried, _Lost):
                return tried
            row, trouble = tried
            if trouble.kind == "refused":
                raise RefusedError(self._why(trouble))
            if self.stopped or not self._may_retry(trouble, began):
                raise GivenUpError(self._why(trouble))
            await self._pause(trouble, attempts)
            if trouble.kind != "rate-limit":
                found = await self.find(row)
                if found is not None:
                    return found

    async def _upload(
        self, pack: Callable[[], Awaitable[Parcel | None]]
    ) -> "BatchRow | _Lost | None":
        """Try once, and say which task does so: it is cancelled only by who leaves at once."""
        task = asyncio.current_task()
        self.uploading.add(task)
        try:
            parcel = await pack()
            if parcel is None:
                return None
            try:
                batch_id = await self._model.submit(parcel.lines, mark_of(parcel.row))
            except ModelTrouble as trouble:
                return _Lost(parcel.row, trouble)
            return await self._ledger.note(parcel.row, "submitted", batch_id)
        finally:
            self.uploading.discard(task)

    async def find(self, row: BatchRow) -> BatchRow | None:
        """Look for a batch of which only the intention is known; write down its name.

        A provider may list nothing by which to tell, so a batch that may be the one is waited for:
        the names of its requests say whether it is. One that the run
        knows under another number isn't.
        """

        async def find() -> list[str]:
            found = await self._model.find(mark_of(row), row.submitted_at, row.requests)
            return [each for each in found if each not in self._ledger.names]

        for batch_id in await self._patiently(find, row):
            candidate = msgspec.structs.replace(row, batch_id=batch_id)
            look = await self.wait(candidate)
            if look.state == "ended":
                results = await self.fetch(candidate, look)
                try:
                    mine = any(key_in(each.name, row) is not None for each in results)
                finally:
                    results.close()
                if mine:
                    return await self._ledger.note(row, "submitted", batch_id)
        return None

    async def wait(self, row: BatchRow) -> Look:
        """Wait until a batch has ended.

        Raises:
            GivenUpError: the provider doesn't know it, or is out of reach.

        """
        self._show(row, None)
        try:
            pause = self._pace.first
            while True:
                await self._clock.sleep(pause)
                pause = min(pause * self._pace.growth, self._pace.longest)
                look = await self._patiently(lambda: self._model.look(row.batch_id), row)
                if look.state != "open":
                    return look
                self._show(row, look.answered)
        finally:
            self.waiting.pop(row.number, None)
            self.on_change()

    async def fetch(self, row: BatchRow, look: Look) -> Results:
        """Get what a batch came to.

        Raises:
            GivenUpError: it isn't there any more, or the provider is out of reach.

        """
        return await self._patiently(lambda: self._model.fetch(look), row)

    def _show(self, row: BatchRow, answered: int | None) -> None:
        self.waiting[row.number] = Waiting(row=row, answered=answered)
        self.on_change()

    async def _patiently(self, call: Callable[[], Awaitable[T]], row: BatchRow | None = None) -> T:
        began, attempts = self._clock.now(), 0
        while True:
            attempts += 1
            try:
                return await call()
            except ModelTrouble as trouble:
                if not self._may_retry(trouble, began):
                    raise GivenUpError(self._why(trouble, row)) from None
                await self._pause(trouble, attempts)

    def _may_retry(self, trouble: ModelTrouble, began: float) -> bool:
        return trouble.retry and self._clock.now() - began < self._pace.patience

    async def _pause(self, trouble: ModelTrouble, attempts: int) -> None:
        asked = min(trouble.retry_after or 0.0, self._pace.patience)
        await self._clock.sleep(max(asked, delay(attempts - 1, self._limits, self._draw)))

    def _why(self, trouble: ModelTrouble, row: BatchRow | None = None) -> str:
        said = f"{self._model.endpoint}: {trouble}"
        if row is None or trouble.retry:
            return said
        name = row.batch_id or f"{row.number}, which may have been submitted or not"
        return f"{said}; it was asked about batch {name}; {_FORGET}"


def usable_names(
    row: BatchRow,
    results: Results,
    sent: Container[str] | None,
    tell: Callable[[str], None],
) -> set[str]:
    """Return the names under which there is one answer to one request; tell of the others."""
    seen: dict[str, int] = {}
    twice: set[str] = set()
    unreadable = strange = 0
    for each in results:
        if not each.name:
            unreadable += 1
        elif key_in(each.name, row) is None or (sent is not None and each.name not in sent):
            strange += 1
        elif seen.setdefault(each.name, hash(each.line)) != hash(each.line):
            twice.add(each.name)
    told = (
        (unreadable, "lines that can't be read"),
        (strange, "answers to requests that weren't in it"),
        (len(twice), "requests with different answers, none of which is used"),
    )
    for count, what in told:
        if count:
            tell(f"batch {row.batch_id}: {what}: {count}")
    return seen.keys() - twice
