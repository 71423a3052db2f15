"""A model that collects requests and submits them in its provider's batches.

The engine calls it like any other model. A batch is written to the store before it is submitted, so
that a killed run finds it again instead of paying twice.
"""

import asyncio
import hashlib
import math
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Coroutine, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from jurybox.engine.limiter import Limits, delay
from jurybox.engine.ports import ModelError
from jurybox.engine.records import ENCODER, BatchRow, sealed
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.chat_model import ChatModel, ProviderBatch, Refused
from jurybox.models.http import HttpAnswer, HttpCall, read_json
from jurybox.models.model_errors import StatusError
from jurybox.storage.store import Store

T = TypeVar("T")

_UNSUPPORTED: Final = {404, 405, 501}
_REFUSED: Final = msgspec.json.Decoder(Refused)
_LOST: Final = "if it can't be read any more, start a new run with `jurybox run`"
_BACKOFF: Final = Limits(longest_delay=60.0)
_LONGEST_RETRY_AFTER: Final = 120.0
# Consecutive failures of a provider before a warning.
_WORTH_A_WARNING: Final = 5
# The name of a request has at most 64 characters: its key, its batch's tag, a number.
_KEY_LENGTH: Final = 40
_TAG_LENGTH: Final = 12
_TOO_LARGE: Final = "token_limit_exceeded"
_LARGEST_RESULTS: Final = 1_000_000_000  # bytes


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """When batches are submitted and how they are polled; times in seconds."""

    idle: float = 2.0  # a batch is submitted when no request has arrived for this long
    requests: int = 10_000  # or when it has this many requests; providers accept at least 50,000
    bytes: int = 25_000_000  # or this many bytes, which are in memory; providers accept 200 MB
    first: float = 0.2  # before the first poll; a local server may answer at once
    growth: float = 1.6  # the factor between consecutive waits
    longest: float = 60.0  # the longest wait; providers take minutes to hours, up to a day
    patience: float = 900.0  # how long a submission is retried while the provider is unreachable


class BatchLog:
    """The batches of one run in its store."""

    def __init__(self, store: Store, run_id: str, now: Callable[[], str]) -> None:
        self._store = store
        self._run_id = run_id
        self._now = now
        self._rows = {row.number: row for row in store.batches(run_id)}
        self._next = 1 + max(self._rows, default=-1)

    def draft(self, model: str, endpoint: str, terms: str, requests: int) -> BatchRow:
        """Return the row of the next batch, which isn't stored yet."""
        number, self._next = self._next, self._next + 1
        return BatchRow(
            run_id=self._run_id,
            number=number,
            model=model,
            endpoint=endpoint,
            state="submitting",
            batch_id="",
            requests=requests,
            terms=terms,
            submitted_at=self._now(),
        )

    async def write(self, row: BatchRow, state: str, batch_id: str = "") -> BatchRow:
        """Store a batch in a new state."""
        row = sealed(msgspec.structs.replace(row, state=state, batch_id=batch_id or row.batch_id))
        save = self._store.update_batch if row.number in self._rows else self._store.add_batch
        self._rows[row.number] = row
        await asyncio.to_thread(save, row)
        return row

    def ids(self) -> set[str]:
        """Return the provider's ids of the run's batches."""
        return {row.batch_id for row in self._rows.values()}

    def open_rows(self, model: str) -> Sequence[BatchRow]:
        """Return the batches of a model whose results haven't been read yet."""
        rows = [row for row in self._rows.values() if row.model == model]
        return [row for row in rows if row.state in {"submitting", "submitted"}]

    def stored_names(self, rows: Sequence[BatchRow]) -> dict[str, set[str]]:
        """Return the names of requests with a stored reply, by the tag of their batch."""
        names: dict[str, set[str]] = {_tag(row): set() for row in rows}
        for exchange in self._store.exchanges(self._run_id):
            name = _NOTES.decode(exchange.notes).reference.partition("/")[2]
            if (tag := _tag_in(name)) in names:
                names[tag].add(name)
        return names


class _BatchNotes(msgspec.Struct):
    reference: str = ""


_NOTES: Final = msgspec.json.Decoder(_BatchNotes)


def _mark(row: BatchRow) -> str:
    """Return a unique id for a batch, across all runs."""
    return f"{row.run_id}.{row.number}"


def _tag(row: BatchRow) -> str:
    """Return the part of a request's name that identifies its batch."""
    return hashlib.sha256(_mark(row).encode()).hexdigest()[:_TAG_LENGTH]


def _tag_in(name: str) -> str:
    return name.partition("-")[2].partition("-")[0]


class OpenBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that has not ended; ``answered`` is the provider's count."""

    row: BatchRow
    answered: int | None = None


class _Result(NamedTuple):
    """A line of a batch's results, the name of its request, and the batch."""

    line: bytes
    name: str
    row: BatchRow


class _Pending(NamedTuple):
    """A request without an answer."""

    request: ModelRequest
    key: str
    size: int
    result: asyncio.Future[_Result]


class BatchedModel:
    """Collects requests, submits them in batches, and answers each when its batch has ended."""

    def __init__(
        self, name: str, model: ChatModel, log: BatchLog, pace: Pace | None = None
    ) -> None:
        self._name = name
        self._model = model
        self._log = log
        self._pace = pace or Pace()
        self._most = self._pace.requests
        self._queue: list[_Pending] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._pending: set[asyncio.Future[_Result]] = set()
        self._found: dict[str, list[_Result]] = {}
        self._recovery: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._uploads: set[asyncio.Task[BatchRow]] = set()
        # Only one batch is submitted at a time, because it is held in memory meanwhile.
        self._upload_lock = asyncio.Lock()
        # Set once the provider has refused a batch as too large.
        self._one_by_one: asyncio.Lock | None = None
        self._stopped: str | None = None
        self.open: dict[int, OpenBatch] = {}
        self.on_change: Callable[[], None] = lambda: None
        self.warn: Callable[[str], None] = lambda _text: None

    @property
    def endpoint(self) -> str:
        """The address."""
        return self._model.client.address

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the answer from a batch; if a parameter is refused, ask again without it."""
        while True:
            line, name, row = await self._result(request)
            refused = _REFUSED.decode(row.terms)
            payload = self._model.payload(request, refused)
            try:
                body = self._model.batch_answer(line)
                answer = HttpAnswer(body=body, headers={}, elapsed_ms=0.0)
                reply = self._model.reply(answer, payload)
            except StatusError as error:
                self._model.learn(error, refused, payload)
            else:
                reference = f"{row.batch_id}/{name}"
                return msgspec.structs.replace(reply, latency_ms=None, reference=reference)

    async def _result(self, request: ModelRequest) -> _Result:
        if self._recovery is None:
            self._recovery = self._start(self._tasks, self._guarded(self._recover()))
        await asyncio.wait({self._recovery})
        key = hashlib.sha256(ENCODER.encode(request)).hexdigest()[:_KEY_LENGTH]
        if found := self._found.get(key):
            return found.pop()
        if self._stopped is not None:
            raise ModelError("unreachable", self._stopped, retry=False, fatal=True)
        size = len(self._line("", request))
        pending = _Pending(request, key, size, asyncio.get_running_loop().create_future())
        self._pending.add(pending.result)
        pending.result.add_done_callback(self._pending.discard)
        self._enqueue(pending)
        return await pending.result

    def _line(self, name: str, request: ModelRequest) -> bytes:
        payload = self._model.payload(request, self._model.refused)
        return self._model.batch_line(name, payload)

    def _enqueue(self, pending: _Pending) -> None:
        """Queue a request; submit the queue when it is full, or after an idle time."""
        if len(self._queue) >= self._most or self._size + pending.size > self._pace.bytes:
            self._send()
        self._queue.append(pending)
        self._size += pending.size
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._pace.idle, self._send)

    def _send(self) -> None:
        part = [each for each in self._queue if not each.result.done()]
        self._queue, self._size = [], 0
        if part:
            self._start(self._tasks, self._guarded(self._run_batch(part)))

    def _start(self, tasks: set[asyncio.Task[T]], work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - it is raised to all pending requests
            self.stop(str(error) or type(error).__name__)

    async def _run_batch(self, part: Sequence[_Pending]) -> None:
        """Submit one batch, wait until it has ended, and answer its requests."""
        async with self._one_by_one or nullcontext():
            async with self._upload_lock:
                row, sent = await self._submit(part)
            status = await self._wait(row)
            if status.state == "refused":
                await self._resubmit(row, status, part)
                return
            results = await self._results(row, status, sent)
            self._close(row)
        for name, pending in sent.items():
            if pending.result.done():
                continue
            if name in results:
                pending.result.set_result(_Result(results[name], name, row))
            else:
                missing = ModelError("unreadable", "no answer in the batch's results", retry=True)
                pending.result.set_exception(missing)

    async def _submit(self, part: Sequence[_Pending]) -> tuple[BatchRow, dict[str, _Pending]]:
        """Submit requests; if the provider's answer is lost, look for the batch before a retry.

        Submitting a batch twice would cost twice.
        """
        terms = ENCODER.encode(sorted(self._model.refused)).decode()
        row = self._log.draft(self._name, self.endpoint, terms, len(part))
        # The index distinguishes equal requests.
        sent = {f"{each.key}-{_tag(row)}-{index}": each for index, each in enumerate(part)}
        lines = [self._line(name, each.request) for name, each in sent.items()]
        started, attempts = _now(), 0
        while True:
            attempts += 1
            try:
                # The id must be stored even if waiting is cancelled.
                upload = self._start(self._uploads, self._upload(row, lines))
                return await asyncio.shield(upload), sent
            except ModelError as error:
                if error.kind == "refused":
                    await self._forget(row)
                    raise
                if not error.retry or _now() - started >= self._pace.patience:
                    raise
                await _pause(error, attempts)
                if error.kind != "rate-limit" and (found := await self._find(row)):
                    return found, sent

    async def _upload(self, row: BatchRow, lines: Sequence[bytes]) -> BatchRow:
        self._show(await self._log.write(row, "submitting"))
        try:
            batch_id = await self._model.submit_batch(lines, _mark(row))
        except StatusError as error:
            if error.status not in _UNSUPPORTED:
                raise
            what = f"it doesn't accept batches (HTTP {error.status}); ask directly with --no-batch"
            raise ModelError("refused", what, retry=False) from None
        submitted = await self._log.write(row, "submitted", batch_id)
        self._show(submitted)
        return submitted

    async def _find(self, row: BatchRow) -> BatchRow | None:
        """Look for a batch whose id never arrived, and store its id.

        The provider's list may not identify the batch, so each candidate is awaited: the names in
        its results identify it.
        """
        candidates = await self._retry(
            lambda: self._model.find_batches(_mark(row), row.submitted_at, row.requests),
            row,
            self._pace.patience,
        )
        for batch_id in [each for each in candidates if each not in self._log.ids()]:
            candidate = msgspec.structs.replace(row, batch_id=batch_id)
            status = await self._wait(candidate)
            if status.state == "ended":
                lines = await self._fetch(candidate, status)
                if any(_tag_in(_name_in(line)) == _tag(row) for line in lines):
                    return await self._log.write(row, "submitted", batch_id)
        return None

    async def _wait(self, row: BatchRow) -> ProviderBatch:
        """Poll a batch until it has ended."""
        self._show(row)
        pause = self._pace.first
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * self._pace.growth, self._pace.longest)
            status = await self._retry(lambda: self._model.batch_status(row.batch_id), row)
            if status.state != "open":
                return status
            self._show(row, status.answered)

    async def _results(
        self, row: BatchRow, status: ProviderBatch, sent: Container[str] | None = None
    ) -> dict[str, bytes]:
        """Return the result lines by the name of their request; warn about unusable ones."""
        results: dict[str, bytes] = {}
        problems: Counter[str] = Counter()
        ambiguous: set[str] = set()
        for line in await self._fetch(row, status):
            name = _name_in(line)
            if not name:
                problems["lines that can't be read"] += 1
            elif _tag_in(name) != _tag(row) or (sent is not None and name not in sent):
                problems["answers to requests that weren't in the batch"] += 1
            elif results.setdefault(name, line) != line:
                ambiguous.add(name)
        problems["requests with different answers, none of which is used"] = len(ambiguous)
        results = {name: line for name, line in results.items() if name not in ambiguous}
        if sent is not None:
            problems["requests without an answer"] = row.requests - len(results)
        for what, count in problems.items():
            if count:
                self.warn(f"batch {row.batch_id}: {what}: {count}")
        return results

    async def _fetch(self, row: BatchRow, status: ProviderBatch) -> list[bytes]:
        """Return the lines of the results."""
        lines: list[bytes] = []
        for path in self._model.batch_results(status):
            lines += await self._retry(lambda path=path: self._download(path), row)
        return lines

    async def _download(self, path: str) -> list[bytes]:
        answer = await self._model.client.send(HttpCall(path=path, largest=_LARGEST_RESULTS))
        return [line for line in answer.body.split(b"\n") if line.strip()]

    async def _resubmit(
        self, row: BatchRow, status: ProviderBatch, part: Sequence[_Pending]
    ) -> None:
        """Split a refused batch into smaller ones if it was too large; else raise an error."""
        await self._forget(row)
        problem = status.error.shown or "it doesn't say why"
        if status.error.code != _TOO_LARGE or row.requests == 1:
            what = f"batch {row.batch_id} was refused: {problem}"
            raise ModelError("refused", what, retry=False)
        self._most = max(1, min(self._most, row.requests // 2))
        self._one_by_one = self._one_by_one or asyncio.Lock()
        self.warn(
            f"batch {row.batch_id} of {row.requests} requests was too large ({problem});"
            f" continuing with at most {self._most} at a time"
        )
        for each in part:
            if not each.result.done():
                self._enqueue(each)

    async def _recover(self) -> None:
        """Read the batches that an earlier process left open, so that nothing is asked twice."""
        rows = self._log.open_rows(self._name)
        if not rows:
            return
        stored = await asyncio.to_thread(self._log.stored_names, rows)
        for row in rows:
            answered = stored[_tag(row)]
            if row.endpoint != self.endpoint:
                what = (
                    f"batch {row.batch_id or row.number} was submitted to {row.endpoint}, not to"
                    f" {self.endpoint}; resume the run with its first address; {_LOST}"
                )
                raise ModelError("refused", what, retry=False)
            found = row if row.state == "submitted" else await self._find(row)
            if found is None:
                await self._forget(row)
            elif len(answered) == row.requests:
                await self._log.write(found, "read")
            else:
                await self._recover_one(found, answered)

    async def _recover_one(self, row: BatchRow, answered: Container[str]) -> None:
        status = await self._wait(row)
        if status.state == "refused":
            await self._forget(row)
            return
        for name, line in (await self._results(row, status)).items():
            if name in answered:
                continue
            # A request that failed is sent again like any other.
            with suppress(ModelError):
                self._model.batch_answer(line)
                key = name.partition("-")[0]
                self._found.setdefault(key, []).append(_Result(line, name, row))
        self._close(row)

    async def _forget(self, row: BatchRow) -> None:
        await self._log.write(row, "gone")
        self._close(row)

    def _show(self, row: BatchRow, answered: int | None = None) -> None:
        self.open[row.number] = OpenBatch(row=row, answered=answered)
        self.on_change()

    def _close(self, row: BatchRow) -> None:
        self.open.pop(row.number, None)
        self.on_change()

    async def _retry(
        self, call: Callable[[], Awaitable[T]], row: BatchRow, patience: float = math.inf
    ) -> T:
        """Call the provider until it answers, because the batch is paid for."""
        started, attempts = _now(), 0
        shown = row.batch_id or f"{row.number}, which may or may not have been submitted"
        while True:
            try:
                return await call()
            except ModelError as error:
                attempts += 1
                if not error.retry or _now() - started >= patience:
                    hint = "" if error.retry else f"; the call was about batch {shown}; {_LOST}"
                    raise ModelError(error.kind, f"{error}{hint}", retry=False) from None
                if attempts == _WORTH_A_WARNING:
                    self.warn(f"batch {shown}: {error}; still trying")
                await _pause(error, attempts)

    def stop(self, reason: str, *, at_once: bool = False) -> None:
        """Stop waiting; a batch that is being submitted is stored first, unless ``at_once``."""
        self._stopped = self._stopped or reason
        for result in tuple(self._pending):
            if not result.done():
                ended = ModelError("unreachable", self._stopped, retry=False, fatal=True)
                result.set_exception(ended)
        for task in self._tasks:
            task.cancel()
        if at_once:
            for upload in self._uploads:
                upload.cancel()

    async def aclose(self) -> None:
        """Finish a submission in progress, and leave the rest to `jurybox resume`."""
        self.stop("the run ended")
        await asyncio.gather(*self._tasks, *self._uploads, return_exceptions=True)
        await self._model.client.aclose()


class _Named(msgspec.Struct):
    custom_id: str


def _name_in(line: bytes) -> str:
    """Return the name in a line of results; empty if the line can't be read."""
    try:
        return read_json(line, _Named).custom_id
    except (ValueError, RecursionError):
        return ""


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _pause(error: ModelError, attempts: int) -> None:
    wait = delay(attempts - 1, _BACKOFF, random.random)
    await asyncio.sleep(max(min(error.retry_after or 0.0, _LONGEST_RETRY_AFTER), wait))
