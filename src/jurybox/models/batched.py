"""A model that answers late: its requests are collected and submitted in its provider's batches.

The engine asks it like any other model. A batch is written to the store before the provider hears
of it, so that a run that was killed finds it again instead of paying twice.
"""

import asyncio
import hashlib
import math
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Coroutine, Mapping, Sequence
from contextlib import nullcontext, suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from jurybox.engine.caller import Limits, delay
from jurybox.engine.ports import ModelError
from jurybox.engine.records import ENCODER, BatchRow
from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.models.batch_log import KEY_LENGTH, BatchLog, mark_of, name_of, tag_in, tag_of
from jurybox.models.batch_providers import BatchProvider, BatchStatus
from jurybox.models.http import HttpAnswer, HttpCall, HttpClient, read_json
from jurybox.models.model_errors import StatusError
from jurybox.models.negotiation import Negotiation
from jurybox.models.parameter_fallback import Accepted

T = TypeVar("T")

_ABSENT: Final = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}
_ACCEPTED: Final = msgspec.json.Decoder(Accepted)
_FORGET: Final = "`jurybox resume --forget-batches` asks anew, and pays again"
_BACKOFF: Final = Limits(longest_delay=60.0)
# A provider that failed this many times in a row is worth a warning.
_WORTH_A_WARNING: Final = 5


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """When batches are submitted and how they are polled; times in seconds.

    Attributes:
        idle: a batch is submitted when no request has come for this long.
        requests: or when it holds this many; providers take at least 50,000.
        bytes: or this many bytes; providers take at least 200 MB, but here they are in memory.
        first: before the first poll; a local server may answer at once.
        growth: each wait is this many times as long as the one before.
        longest: no wait is longer. Providers take minutes to hours, up to a day.
        patience: how long a provider may be out of reach before submitting is given up.

    """

    idle: float = 2.0
    requests: int = 10_000
    bytes: int = 25_000_000
    first: float = 0.2
    growth: float = 1.6
    longest: float = 60.0
    patience: float = 900.0


class ChatModel(Protocol):
    """A model that takes one request at a time, and whose provider has batches."""

    negotiation: Negotiation
    client: HttpClient

    def payload(self, request: ModelRequest, accepted: Accepted) -> dict[str, object]:
        """Return what is sent, as far as it is accepted."""
        ...

    def reply(self, answer: HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        """Return the reply in an answer to a payload."""
        ...


class OpenBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch whose results are waited for; ``answered`` as far as the provider says."""

    row: BatchRow
    answered: int | None = None


class _Answer(NamedTuple):
    """A line of results, the name of its request, and the batch it was in."""

    line: bytes
    name: str
    row: BatchRow


class _Asked(NamedTuple):
    """A request that waits for its answer."""

    request: ModelRequest
    key: str
    size: int
    answer: asyncio.Future[_Answer]


class BatchedModel:
    """Collects requests, submits them in batches, and answers each when its batch has ended."""

    def __init__(
        self,
        name: str,
        model: ChatModel,
        provider: BatchProvider,
        log: BatchLog,
        pace: Pace | None = None,
    ) -> None:
        self._name = name
        self._model = model
        self._provider = provider
        self._log = log
        self._pace = pace or Pace()
        self._most = self._pace.requests
        self._queue: list[_Asked] = []
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: set[asyncio.Future[_Answer]] = set()
        self._found: dict[str, list[_Answer]] = {}
        self._recovery: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._uploads: set[asyncio.Task[BatchRow]] = set()
        # What is submitted is in memory meanwhile.
        self._upload_lock = asyncio.Lock()
        # Set once a provider has said that fewer requests at once would be taken.
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
        """Answer from a batch; a parameter that isn't taken is left out of the next one."""
        while True:
            answer = await self._answer(request)
            try:
                return self._reply(request, answer)
            except StatusError as trouble:
                if not self._concede(trouble, request, answer.row.terms):
                    raise

    async def _answer(self, request: ModelRequest) -> _Answer:
        if self._recovery is None:
            self._recovery = self._start(self._tasks, self._guarded(self._recover()))
        await asyncio.wait({self._recovery})
        key = hashlib.sha256(ENCODER.encode(request)).hexdigest()[:KEY_LENGTH]
        if found := self._found.get(key):
            return found.pop()
        if self._stopped is not None:
            raise _ends_the_run(self._stopped)
        size = len(self._line("", request, self._terms()))
        asked = _Asked(request, key, size, asyncio.get_running_loop().create_future())
        self._waiting.add(asked.answer)
        asked.answer.add_done_callback(self._waiting.discard)
        self._collect(asked)
        return await asked.answer

    def _reply(self, request: ModelRequest, answer: _Answer) -> ModelReply:
        body = self._provider.answer(answer.line)
        payload = self._payload(request, answer.row.terms)
        reply = self._model.reply(HttpAnswer(body=body, headers={}, elapsed_ms=0.0), payload)
        reference = f"{answer.row.batch_id}/{answer.name}"
        return msgspec.structs.replace(reply, latency_ms=None, reference=reference)

    def _concede(self, trouble: StatusError, request: ModelRequest, terms: str) -> bool:
        """Learn from a refusal; say whether the request may be taken in another form."""
        sent = self._payload(request, terms).keys()
        return self._model.negotiation.learn(trouble, _ACCEPTED.decode(terms), sent)

    def _terms(self) -> str:
        """Return what the endpoint is known to accept; a batch is read as it was sent."""
        return ENCODER.encode(self._model.negotiation.accepted).decode()

    def _payload(self, request: ModelRequest, terms: str) -> dict[str, object]:
        return self._model.payload(request, _ACCEPTED.decode(terms))

    def _line(self, name: str, request: ModelRequest, terms: str) -> bytes:
        return self._provider.line(name, self._payload(request, terms))

    def _collect(self, asked: _Asked) -> None:
        """Queue a request; submit the queue when it is full, or after an idle time."""
        if len(self._queue) >= self._most or self._size + asked.size > self._pace.bytes:
            self._send()
        self._queue.append(asked)
        self._size += asked.size
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self._pace.idle, self._send)

    def _send(self) -> None:
        part = [each for each in self._queue if not each.answer.done()]
        self._queue, self._size = [], 0
        if part:
            self._start(self._tasks, self._guarded(self._carry(part)))

    def _start(self, tasks: set[asyncio.Task[T]], work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - it is raised to all who wait
            self.stop(str(error) or type(error).__name__)

    async def _carry(self, part: Sequence[_Asked]) -> None:
        """Submit one batch, wait until it has ended, and hand out its answers."""
        async with self._one_by_one or nullcontext():
            async with self._upload_lock:
                row, sent = await self._submit(part)
            status = await self._wait(row)
            if status.state == "refused":
                await self._refused(row, status, part)
                return
            results = await self._results(row, status, sent)
            self._close(row)
        for name, asked in sent.items():
            self._hand_out(asked, name, results.get(name), row)

    def _hand_out(self, asked: _Asked, name: str, line: bytes | None, row: BatchRow) -> None:
        if asked.answer.done():
            return
        if line is None:
            missing = ModelError("unreadable", "the batch has no answer to it", retry=True)
            asked.answer.set_exception(missing)
        else:
            asked.answer.set_result(_Answer(line, name, row))

    async def _submit(self, part: Sequence[_Asked]) -> tuple[BatchRow, dict[str, _Asked]]:
        """Submit requests; where the provider's answer is lost, look for the batch first.

        A batch that is submitted twice is paid for twice.
        """
        terms = self._terms()
        row = self._log.draft(self._name, self.endpoint, terms, len(part))
        sent = {name_of(row, each.key, index): each for index, each in enumerate(part)}
        lines = [self._line(name, each.request, terms) for name, each in sent.items()]
        began, attempts = _now(), 0
        while True:
            attempts += 1
            try:
                # Whoever stops waiting lets this one be written down.
                upload = self._start(self._uploads, self._upload(row, lines))
                return await asyncio.shield(upload), sent
            except ModelError as trouble:
                if trouble.kind == "refused":
                    await self._forget(row)
                    raise
                if not trouble.retry or _now() - began >= self._pace.patience:
                    raise
                await _pause(trouble, attempts)
                if trouble.kind != "rate-limit" and (found := await self._find(row)):
                    return found, sent

    async def _upload(self, row: BatchRow, lines: Sequence[bytes]) -> BatchRow:
        self._show(await self._log.write(row, "submitting"))
        try:
            batch_id = await self._provider.submit(self._model.client, lines, mark_of(row))
        except StatusError as trouble:
            if trouble.status not in _ABSENT:
                raise
            said = f"it takes no batches (HTTP {trouble.status}); ask directly with --no-batch"
            raise ModelError("refused", said, retry=False) from None
        named = await self._log.write(row, "submitted", batch_id)
        self._show(named)
        return named

    async def _find(self, row: BatchRow) -> BatchRow | None:
        """Look for a batch whose id never arrived, and store its id.

        A provider may list nothing that identifies it, so a batch that may be the one is waited
        for: the names in its results tell.
        """

        async def find() -> Sequence[str]:
            return await self._provider.find(
                self._model.client, mark_of(row), row.submitted_at, row.requests
            )

        for batch_id in await self._patiently(find, row, self._pace.patience):
            if self._log.knows(batch_id):
                continue
            candidate = msgspec.structs.replace(row, batch_id=batch_id)
            status = await self._wait(candidate)
            if status.state == "ended":
                lines = await self._fetch(candidate, status)
                if any(tag_in(_name_in(line)) == tag_of(row) for line in lines):
                    return await self._log.write(row, "submitted", batch_id)
        return None

    async def _wait(self, row: BatchRow) -> BatchStatus:
        """Poll a batch until it has ended."""
        self._show(row)
        pause = self._pace.first
        while True:
            await asyncio.sleep(pause)
            pause = min(pause * self._pace.growth, self._pace.longest)
            status = await self._patiently(
                lambda: self._provider.status(self._model.client, row.batch_id), row
            )
            if status.state != "open":
                return status
            self._show(row, status.answered)

    async def _results(
        self, row: BatchRow, status: BatchStatus, sent: Container[str] | None = None
    ) -> dict[str, bytes]:
        """Return the lines of results by name; warn of those that can't be used."""
        tag = tag_of(row)
        results: dict[str, bytes] = {}
        odd: Counter[str] = Counter()
        twice: set[str] = set()
        for line in await self._fetch(row, status):
            name = _name_in(line)
            if not name:
                odd["lines that can't be read"] += 1
            elif tag_in(name) != tag or (sent is not None and name not in sent):
                odd["answers to requests that weren't in it"] += 1
            elif results.setdefault(name, line) != line:
                twice.add(name)
        odd["requests with different answers, none of which is used"] = len(twice)
        results = {name: line for name, line in results.items() if name not in twice}
        if sent is not None:
            odd["requests without an answer"] = row.requests - len(results)
        for what, count in odd.items():
            if count:
                self.warn(f"batch {row.batch_id}: {what}: {count}")
        return results

    async def _fetch(self, row: BatchRow, status: BatchStatus) -> list[bytes]:
        """Return the lines of the results."""
        lines: list[bytes] = []
        for path in status.places:
            lines += await self._patiently(lambda path=path: self._download(path), row)
        return lines

    async def _download(self, path: str) -> list[bytes]:
        # Into a file, because results may be larger than any other answer.
        with tempfile.TemporaryFile(prefix="jurybox-") as file:
            await self._model.client.send(HttpCall(path=path, into=file))
            file.seek(0)
            return [line for line in file if line.strip()]

    async def _refused(self, row: BatchRow, status: BatchStatus, part: Sequence[_Asked]) -> None:
        await self._forget(row)
        if not status.too_much or row.requests == 1:
            said = f"batch {row.batch_id} was refused: {status.problem}"
            raise ModelError("refused", said, retry=False)
        self._most = max(1, min(self._most, row.requests // 2))
        self._one_by_one = self._one_by_one or asyncio.Lock()
        self.warn(
            f"batch {row.batch_id} of {row.requests} requests was too much ({status.problem});"
            f" continuing with at most {self._most} at a time"
        )
        for each in part:
            if not each.answer.done():
                self._collect(each)

    async def _recover(self) -> None:
        """Read the batches that an earlier process left open: what they answer isn't asked."""
        rows = self._log.open_rows(self._name)
        if not rows:
            return
        stored = await self._log.stored(rows)
        for row in rows:
            answered = stored[tag_of(row)]
            if row.endpoint != self.endpoint:
                raise ModelError("refused", _elsewhere(row, self.endpoint), retry=False)
            named = row if row.state == "submitted" else await self._find(row)
            if named is None:
                await self._forget(row)
            elif len(answered) == row.requests:
                await self._log.write(named, "read")
            else:
                await self._recover_one(named, answered)

    async def _recover_one(self, row: BatchRow, answered: Container[str]) -> None:
        status = await self._wait(row)
        if status.state == "refused":
            await self._forget(row)
            return
        for name, line in (await self._results(row, status)).items():
            if name in answered:
                continue
            # What failed that time is asked again like any other.
            with suppress(ModelError):
                self._provider.answer(line)
                key = name.partition("-")[0]
                self._found.setdefault(key, []).append(_Answer(line, name, row))
        self._close(row)

    async def _forget(self, row: BatchRow) -> None:
        """Note that nothing will come of a batch."""
        await self._log.write(row, "gone")
        self._close(row)

    def _show(self, row: BatchRow, answered: int | None = None) -> None:
        self.open[row.number] = OpenBatch(row=row, answered=answered)
        self.on_change()

    def _close(self, row: BatchRow) -> None:
        self.open.pop(row.number, None)
        self.on_change()

    async def _patiently(
        self, call: Callable[[], Awaitable[T]], row: BatchRow, patience: float = math.inf
    ) -> T:
        """Ask the provider until it answers: a batch that is paid for is worth the wait."""
        began, attempts = _now(), 0
        while True:
            try:
                return await call()
            except ModelError as trouble:
                attempts += 1
                if not trouble.retry or _now() - began >= patience:
                    raise _about(trouble, row) from None
                if attempts == _WORTH_A_WARNING:
                    self.warn(f"batch {_shown(row)}: {trouble}; still trying")
                await _pause(trouble, attempts)

    def stop(self, reason: str, *, at_once: bool = False) -> None:
        """Stop waiting; a batch that is being submitted is noted first, unless ``at_once``."""
        self._stopped = self._stopped or reason
        for answer in tuple(self._waiting):
            if not answer.done():
                answer.set_exception(_ends_the_run(self._stopped))
        for task in self._tasks:
            task.cancel()
        if at_once:
            for upload in self._uploads:
                upload.cancel()

    async def aclose(self) -> None:
        """Finish the submission that is under way, and leave the rest to `jurybox resume`."""
        self.stop("the run ended")
        await asyncio.gather(*self._tasks, *self._uploads, return_exceptions=True)
        await self._model.client.aclose()


class _Named(msgspec.Struct):
    custom_id: str


def _name_in(line: bytes) -> str:
    """Return the name in a line of results; nothing where the line can't be read."""
    try:
        return read_json(line, _Named).custom_id
    except (ValueError, RecursionError):
        return ""


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _pause(trouble: ModelError, attempts: int) -> None:
    wait = delay(attempts - 1, _BACKOFF, random.random)
    await asyncio.sleep(max(min(trouble.retry_after or 0.0, _BACKOFF.longest_retry_after), wait))


def _ends_the_run(reason: str) -> ModelError:
    return ModelError("unreachable", reason, retry=False, fatal=True)


def _shown(row: BatchRow) -> str:
    return row.batch_id or f"{row.number}, which may have been submitted or not"


def _about(trouble: ModelError, row: BatchRow) -> ModelError:
    hint = "" if trouble.retry else f"; it was asked about batch {_shown(row)}; {_FORGET}"
    return ModelError(trouble.kind, f"{trouble}{hint}", retry=False)


def _elsewhere(row: BatchRow, endpoint: str) -> str:
    return (
        f"batch {row.batch_id or row.number} was submitted to {row.endpoint}, not to {endpoint};"
        f" continue with that address, or {_FORGET}"
    )
