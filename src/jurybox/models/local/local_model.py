"""``local/NAME``: a model that runs in this process, in a thread that owns its loaded file."""

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Final

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.local import llama, prompt_cache
from jurybox.models.local.files import ModelFile, locate, runtime
from jurybox.sample import Usage

# The highest 32-bit number is excluded, because llama.cpp then chooses a random seed.
_SEEDS: Final = 2**32 - 1
_SHOWN_DIGITS: Final = 12


_EXIT_TIMEOUT: Final = 30.0


class QueuedRequest(msgspec.Struct, eq=False):
    """A queued request and its answer; once cancelled, the worker skips or interrupts it."""

    request: ModelRequest
    answer: Future[llama.Completion] = msgspec.field(default_factory=Future[llama.Completion])
    cancelled: threading.Event = msgspec.field(default_factory=threading.Event)


class Worker:
    """The thread of a model file: loads the file once, then answers requests one at a time."""

    def __init__(self, load: Callable[[], llama.Engine]) -> None:
        self._load = load
        self._waiting: SimpleQueue[QueuedRequest | None] = SimpleQueue()
        self._closing = False
        self._starting = threading.Lock()
        # A daemon thread doesn't block exit; `unload` ends it cleanly.
        self._thread = threading.Thread(target=self._work, name="jurybox", daemon=True)

    def submit(self, queued: QueuedRequest) -> None:
        """Put a request into the queue."""
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()
        self._waiting.put(queued)

    def close(self) -> None:
        """Stop the current request, and free the memory."""
        self._closing = True
        self._waiting.put(None)
        if self._thread.ident is not None:
            self._thread.join(_EXIT_TIMEOUT)

    def _work(self) -> None:
        engine: llama.Engine | None = None
        while (queued := self._waiting.get()) is not None:
            if not queued.answer.set_running_or_notify_cancel():
                continue
            try:
                if self._stopped(queued):
                    raise llama.RequestCancelledError  # noqa: TRY301 - handled like every other failure
                # Loading is retried, since the file may have been replaced.
                engine = engine or self._load()
                queued.answer.set_result(self._answer(engine, queued))
            except BaseException as error:  # noqa: BLE001 - it is handed to the caller
                queued.answer.set_exception(error)
        if engine is not None:
            engine.close()

    def _answer(self, engine: llama.Engine, queued: QueuedRequest) -> llama.Completion:
        started = time.perf_counter()
        answer = engine.complete(queued.request, lambda: self._stopped(queued))
        elapsed_ms = (time.perf_counter() - started) * 1000
        return msgspec.structs.replace(answer, elapsed_ms=elapsed_ms)

    def _stopped(self, queued: QueuedRequest) -> bool:
        return self._closing or queued.cancelled.is_set()


_workers: dict[Hashable, Worker] = {}


def worker_for(key: Hashable, load: Callable[[], llama.Engine]) -> Worker:
    """Return this process's only worker for a file."""
    return _workers.setdefault(key, Worker(load))


def unload() -> None:
    """Stop all workers of this process and free their memory; a later request loads again."""
    workers = list(_workers.values())
    _workers.clear()
    for worker in workers:
        worker.close()


atexit.register(unload)
if hasattr(os, "register_at_fork"):
    # Threads don't exist in a forked child process.
    os.register_at_fork(after_in_child=_workers.clear)


def open_local_model(name: str, folder: str, models: Path) -> "LocalModel":
    """Return the model in a file; relative paths start at ``folder``."""
    return LocalModel(name, locate(name, models, Path(folder)))


class LocalModel:
    """A model file on this machine; all models of this process share one loaded copy of it."""

    def __init__(self, name: str, file: ModelFile) -> None:
        """Set the file, which is loaded with the first request."""
        self._name = name
        self._file = file
        self._runtime = runtime()
        self._requests: set[QueuedRequest] = set()

    @property
    def endpoint(self) -> str:
        """The model's name, because every embedded model has its own limits."""
        return f"local/{self._name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Wait for a turn, and answer."""
        generation = msgspec.structs.replace(
            request.generation, seed=request.generation.seed % _SEEDS
        )
        queued = QueuedRequest(msgspec.structs.replace(request, generation=generation))
        try:
            answer = await self._answer(queued)
        except Exception as error:
            raise self._error(error) from error
        return ModelReply(
            text=answer.text,
            usage=Usage(
                input_tokens=answer.prompt_tokens,
                output_tokens=answer.completion_tokens,
                cached_tokens=answer.cached_tokens,
            ),
            sent=generation,
            # Without the folders of the path, which are private.
            model=f"{Path(self._name).name} sha256:{self._file.sha256[:_SHOWN_DIGITS]}",
            fingerprint=self._runtime,
            finish_reason=answer.finish_reason,
            latency_model_ms=answer.elapsed_ms,
            logprobs=answer.logprobs,
        )

    async def aclose(self) -> None:
        """Stop this model's requests; the file stays loaded."""
        requests = list(self._requests)
        for queued in requests:
            queued.cancelled.set()
        await asyncio.to_thread(wait, [queued.answer for queued in requests])

    async def _answer(self, queued: QueuedRequest) -> llama.Completion:
        self._requests.add(queued)
        queued.answer.add_done_callback(lambda _: self._requests.discard(queued))
        worker_for((self._file.path, self._file.sha256), self._load).submit(queued)
        try:
            return await asyncio.wrap_future(queued.answer)
        finally:
            queued.cancelled.set()

    def _load(self) -> llama.Engine:
        return llama.Engine(str(self._file.path))

    def _error(self, error: Exception) -> ModelError:
        match error:
            case prompt_cache.UnanswerableError():
                return ModelError("refused", str(error), retry=False)
            case llama.RequestCancelledError():
                return ModelError("refused", "the model was closed meanwhile", retry=False)
            case llama.LoadError():
                what = f"can't be loaded by {self._runtime}: {error}"
            case _:
                what = f"the runtime failed with {type(error).__name__}: {error}"
        return ModelError("refused", what, retry=False, fatal=True)
