"""One model's batches, from what is gathered to what comes of it."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, Final

import msgspec

from jurybox.errors import IncompleteError
from jurybox.judging.exchange import Failure, ModelRequest, Outcome
from jurybox.running.attendance import Attendance
from jurybox.running.batch_model import BatchModel, LapsedTrouble, Look, Results
from jurybox.running.batch_post import GivenUpError, Pace, Parcel, Post, RefusedError, usable_names
from jurybox.running.ledger import Ledger, key_in, name_of, short_key
from jurybox.running.ports import ModelTrouble
from jurybox.running.records import BatchRow

Delivered = tuple[Outcome, str]
"""What came of a request, and the name of the batch that it was in."""

# So many lines are read between two looks at the rest of the world.
_STRETCH: Final = 64
# What stands in a line beside the words of the messages.
_FRAME: Final = 1000
_UNANSWERED: Final = "the batch has no answer to it"


class Asked:
    """A request that waits for a batch."""

    def __init__(self, request: ModelRequest, key: str) -> None:
        self.request = request
        self.key = key
        self.future: asyncio.Future[Delivered] = asyncio.get_running_loop().create_future()
        self.attempts = 0
        self.lapses = 0
        # The batch in which the reply was, once there is one.
        self.row: BatchRow | None = None
        words = sum(len(turn.content.encode("utf-8", "replace")) for turn in request.messages)
        self.size = words + len(request.schema or "") + _FRAME


class Means(msgspec.Struct, frozen=True, kw_only=True):
    """What the lanes of a run share."""

    ledger: Ledger
    attendance: Attendance
    pace: Pace
    tell: Callable[[str], None]


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to what an earlier process asked."""

    line: bytes
    row: BatchRow


class Lane:
    """Gathers one model's requests, sends them in batches, and hands out what comes of them."""

    def __init__(self, name: str, model: BatchModel, post: Post, means: Means) -> None:
        self._name = name
        self._model = model
        self._post = post
        self._means = means
        self._queue: list[Asked] = []
        self._size = 0
        self._most = means.pace.requests
        # There once a provider has said that fewer requests at once would do.
        self._turn: asyncio.Lock | None = None
        self._found: dict[str, deque[_Found]] = {}
        # How many replies of a batch nobody has heard yet, and one while they are handed out.
        self._left: dict[int, int] = {}
        self._read: list[BatchRow] = []
        self._sent: dict[asyncio.Task[None], Sequence[Asked]] = {}
        self._recovering = False
        self._halt: Failure | None = None
        self.left_open: dict[int, BatchRow] = {}

    @property
    def gathered(self) -> bool:
        """Whether anybody waits to be sent."""
        return bool(self._queue)

    @property
    def tasks(self) -> Sequence[asyncio.Task[None]]:
        """What goes on."""
        return tuple(self._sent)

    def add(self, asked: Asked) -> None:
        """Take a request; the one that makes a batch full sends it."""
        if self._halt is not None:
            self._answer(asked, self._halt, "")
            return
        # Where a provider wants fewer at once, batches go one by one, and when nothing more comes;
        # and what an open batch may answer isn't asked again.
        if self._turn is None and not self._recovering and self._full(asked):
            self.send()
        self._queue.append(asked)
        self._size += asked.size

    def _full(self, asked: Asked) -> bool:
        """Tell whether there is no room for one more beside those that were gathered."""
        too_large = self._size + asked.size > self._means.pace.bytes
        return bool(self._queue) and (too_large or len(self._queue) >= self._most)

    def forget(self, asked: Asked) -> None:
        """Let go of a request that nobody waits for any more."""
        if asked in self._queue:
            self._queue.remove(asked)
            self._size -= asked.size

    def send(self) -> None:
        """Send all that was gathered."""
        gathered, self._queue, self._size = self._queue, [], 0
        for part in self._parts([each for each in gathered if not each.future.done()]):
            self._start(self._carry(part), part)

    def _parts(self, gathered: Sequence[Asked]) -> Iterator[list[Asked]]:
        part: list[Asked] = []
        size = 0
        for each in gathered:
            if part and (len(part) >= self._most or size + each.size > self._means.pace.bytes):
                yield part
                part, size = [], 0
            part.append(each)
            size += each.size
        if part:
            yield part

    def _start(self, work: Coroutine[Any, Any, None], asked: Sequence[Asked]) -> None:
        task = asyncio.create_task(self._guarded(work, asked))
        self._sent[task] = asked
        task.add_done_callback(self._sent.pop)

    async def _guarded(self, work: Coroutine[Any, Any, None], asked: Sequence[Asked]) -> None:
        try:
            await work
        except (GivenUpError, IncompleteError) as error:
            self.stop(Failure(kind="unreachable", message=str(error), everybody=True))
        except Exception as error:  # noqa: BLE001 - a fault of ours is told with each sample
            for each in asked:
                if not each.future.done():
                    self._means.attendance.enter()
                    each.future.set_exception(error)

    async def _carry(self, part: Sequence[Asked]) -> None:
        async with self._turn or nullcontext():
            sent: dict[str, Asked] = {}
            row = await self._submit(part, sent)
            if row is not None and self._halt is None:
                look = await self._post.wait(row)
                with self._means.attendance.held():
                    await self._end(row, look, sent)

    async def _submit(self, part: Sequence[Asked], sent: dict[str, Asked]) -> BatchRow | None:
        """Submit what can be sent, and fill in under which name; None where nothing is."""
        draft = self._means.ledger.draft(self._name, self._model.endpoint, self._model.terms())

        async def pack() -> Parcel | None:
            if self._halt is not None:
                return None
            lines = self._lines(draft, part, sent)
            row = self.left_open.get(draft.number)
            if row is None and lines:
                row = await self._intend(draft, len(lines))
            return None if row is None else Parcel(row, lines)

        try:
            row = await self._post.submit(pack)
        except RefusedError:
            await self._let_go(self.left_open[draft.number])
            raise
        if row is not None:
            self.left_open[row.number] = row
        return row

    async def _intend(self, draft: BatchRow, requests: int) -> BatchRow | None:
        row = self.left_open[draft.number] = await self._means.ledger.intend(draft, requests)
        if self._halt is None:
            return row
        # The provider never hears of it.
        await self._let_go(row)
        return None

    def _lines(self, draft: BatchRow, part: Sequence[Asked], sent: dict[str, Asked]) -> list[bytes]:
        lines: list[bytes] = []
        for index, each in enumerate(part):
            name = name_of(draft, each.key, index)
            try:
                lines.append(self._model.line(name, each.request, draft.terms))
                sent[name] = each
            except ModelTrouble as trouble:
                self._fail(each, trouble, "")
        return lines

    async def _end(self, row: BatchRow, look: Look, sent: dict[str, Asked]) -> None:
        if look.state == "ended":
            await self._hand_out(row, look, sent)
            return
        await self._let_go(row)
        if not look.too_much or row.requests == 1:
            said = f"{self._model.endpoint}: batch {row.batch_id} was refused: {look.problem}"
            raise GivenUpError(said)
        self._most = max(1, min(self._most, row.requests // 2))
        self._turn = self._turn or asyncio.Lock()
        self._means.tell(
            f"batch {row.batch_id} of {row.requests} requests was too much ({look.problem}); going"
            f" on with at most {self._most} at a time"
        )
        for each in sent.values():
            self._again(each)

    async def _let_go(self, row: BatchRow) -> None:
        await self._means.ledger.note(row, "gone")
        self.left_open.pop(row.number, None)

    async def _hand_out(self, row: BatchRow, look: Look, sent: dict[str, Asked]) -> None:
        results = await self._post.fetch(row, look)
        self._left[row.number] = 1
        halting: list[tuple[Asked, ModelTrouble]] = []
        try:
            usable = usable_names(row, results, sent, self._means.tell)
            for count, result in enumerate(results):
                asked = sent.pop(result.name, None) if result.name in usable else None
                trouble = None if asked is None else self._deliver(asked, result.line, row)
                if asked is not None and trouble is not None:
                    halting.append((asked, trouble))
                if count % _STRETCH == 0:
                    await asyncio.sleep(0)
        finally:
            results.close()
        if sent:
            self._means.tell(f"batch {row.batch_id}: requests without an answer: {len(sent)}")
        for asked in sent.values():
            self._lapse(asked, LapsedTrouble("unreadable", _UNANSWERED), row)
        if halting:
            # Who hears of it ends the run: all others have what was paid for before that.
            await asyncio.sleep(0)
        for asked, trouble in halting:
            self._fail(asked, trouble, row.batch_id)
        self._one_less(row)

    def _one_less(self, row: BatchRow) -> None:
        """Note that a reply was heard; a batch with others is read again when the run goes on."""
        self._left[row.number] -= 1
        if not self._left[row.number]:
            self._read.append(row)

    def heard(self, asked: Asked) -> None:
        """Note that who asked has the reply, which is stored from now on."""
        if asked.row is not None:
            self._one_less(asked.row)

    def _deliver(self, asked: Asked, line: bytes, row: BatchRow) -> ModelTrouble | None:
        """Hand out what a line says; return trouble of everybody, which is told to nobody yet."""
        try:
            reply = self._model.read(line, asked.request, row.terms)
        except LapsedTrouble as trouble:
            self._lapse(asked, trouble, row)
            return None
        except ModelTrouble as trouble:
            conceded = self._model.concede(trouble, asked.request, row.terms)
            asked.attempts += not conceded
            if conceded or (trouble.retry and asked.attempts < self._means.pace.attempts):
                self._again(asked)
                return None
            if trouble.everybody:
                return trouble
            self._fail(asked, trouble, row.batch_id)
            return None
        # Also where nobody waits for it any more: then nobody ever hears it.
        self._left[row.number] += 1
        if self._answer(asked, reply, row.batch_id):
            asked.row = row
        return None

    def _lapse(self, asked: Asked, trouble: LapsedTrouble, row: BatchRow) -> None:
        asked.lapses += 1
        if asked.lapses <= self._means.pace.lapses:
            self._again(asked)
        else:
            self._fail(asked, trouble, row.batch_id)

    def _again(self, asked: Asked) -> None:
        if not asked.future.done():
            self._queue.append(asked)
            self._size += asked.size

    def _fail(self, asked: Asked, trouble: ModelTrouble, batch: str) -> None:
        tries = max(asked.attempts, asked.lapses)
        often = f" after {tries} attempts" if tries > 1 else ""
        message = f"{self._model.endpoint}: {trouble}{often}"
        failure = Failure(kind=trouble.kind, message=message, everybody=trouble.everybody)
        self._answer(asked, failure, batch)

    def _answer(self, asked: Asked, outcome: Outcome, batch: str) -> bool:
        if asked.future.done():
            return False
        self._means.attendance.enter()
        asked.future.set_result((outcome, batch))
        return True

    def recover(self, rows: Sequence[BatchRow]) -> None:
        """Have batches waited for that an earlier process left open, before others are sent."""
        for row in rows:
            self.left_open[row.number] = row
        if rows:
            self._recovering = True
            self._means.attendance.enter()
            self._start(self._recover(rows), ())

    async def _recover(self, rows: Sequence[BatchRow]) -> None:
        try:
            for row in rows:
                await self._recover_one(row)
        finally:
            self._recovering = False
            self._means.attendance.leave()

    async def _recover_one(self, row: BatchRow) -> None:
        if row.endpoint != self._model.endpoint:
            raise GivenUpError(
                f"batch {row.batch_id or row.number} was submitted to {row.endpoint}, not to"
                f" {self._model.endpoint}; go on with that address, or `jurybox resume"
                " --forget-batches` asks anew, and pays again"
            )
        named = row if row.state == "submitted" else await self._post.find(row)
        look = None if named is None else await self._post.wait(named)
        if named is None or look is None or look.state != "ended":
            # It never arrived, or was refused: nobody has paid for it.
            await self._let_go(row)
            return
        self.left_open[row.number] = named
        results = await self._post.fetch(named, look)
        try:
            self._keep(named, results)
        finally:
            results.close()
        for asked in tuple(self._queue):
            found = None if asked.future.done() else self.known(asked)
            if found is not None:
                self.forget(asked)
                self._answer(asked, *found)

    def _keep(self, row: BatchRow, results: Results) -> None:
        usable = usable_names(row, results, None, self._means.tell)
        self._left[row.number] = 1
        for each in results:
            key = key_in(each.name, row)
            if key is not None and each.name in usable:
                usable.remove(each.name)
                found = self._found.setdefault(key, deque())
                found.append(_Found(line=each.line, row=row))
                self._left[row.number] += 1
        self._one_less(row)

    def known(self, asked: Asked) -> Delivered | None:
        """Return what a batch of an earlier process says to an equal request."""
        key = short_key(asked.key)
        while found := self._found.get(key):
            each = found.popleft()
            try:
                reply = self._model.read(each.line, asked.request, each.row.terms)
            except ModelTrouble:
                # That time it failed; it is asked again like any other.
                self._one_less(each.row)
                continue
            asked.row = each.row
            return reply, each.row.batch_id
        self._found.pop(key, None)
        return None

    def read(self, *, finished: bool) -> Sequence[BatchRow]:
        """Return what was heard to its end, and in a finished run also what nobody needed."""
        return tuple(self.left_open.values() if finished else self._read)

    async def settle(self, rows: Sequence[BatchRow]) -> None:
        """Note that all that anybody heard of these is stored."""
        for row in rows:
            await self._means.ledger.note(row, "read")
            self.left_open.pop(row.number, None)
            self._read = [each for each in self._read if each.number != row.number]

    def stop(self, failure: Failure, *, at_once: bool = False) -> None:
        """Wait for nothing more; what is being submitted is noted first, unless at once."""
        self._halt = self._halt or failure
        self._post.stopped = True
        waiting = [*self._queue, *(each for sent in self._sent.values() for each in sent)]
        self._queue, self._size = [], 0
        for each in waiting:
            self._answer(each, self._halt, "")
        for task in self._sent:
            if at_once or task not in self._post.uploading:
                task.cancel()
