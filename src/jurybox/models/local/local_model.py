"""``local/NAME``: a model that runs in this process."""

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Final, cast

import msgspec

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.models.function import in_a_thread
from jurybox.models.local import llama, prompt_cache
from jurybox.models.local.files import ModelFile, locate, runtime

# The highest 32-bit number is excluded, because llama.cpp then chooses a random seed.
_SEEDS: Final = 2**32 - 1
_SHOWN_DIGITS: Final = 12
_EXIT_TIMEOUT: Final = 30.0
_PAUSE: Final = 0.01


class _LoadedFile:
    """A model file, loaded by the first request; answers one request at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._closing = False
        self._engine: llama.Engine | None = None

    def answer(self, request: ModelRequest, cancelled: threading.Event) -> ModelReply:
        """Wait for a turn, and answer."""

        def stopped() -> bool:
            return self._closing or cancelled.is_set()

        with self._lock:
            if stopped():
                raise prompt_cache.UnanswerableError(llama.CLOSED)
            # Loading is retried, since the file may have been replaced.
            self._engine = self._engine or llama.Engine(str(self._path))
            started = time.perf_counter()
            answer = self._engine.complete(request, stopped)
            elapsed_ms = (time.perf_counter() - started) * 1000
            return msgspec.structs.replace(answer, latency_model_ms=elapsed_ms)

    def close(self) -> None:
        """Stop the current request, and free the memory."""
        self._closing = True
        if self._lock.acquire(timeout=_EXIT_TIMEOUT) and self._engine is not None:
            self._engine.close()


_files: dict[Hashable, _LoadedFile] = {}


def _unload() -> None:
    """Free the memory of all files."""
    while _files:
        _files.popitem()[1].close()


atexit.register(_unload)
if hasattr(os, "register_at_fork"):
    # The threads of the runtime don't exist in a forked child process.
    os.register_at_fork(after_in_child=_files.clear)


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
        self._requests: set[threading.Event] = set()

    @property
    def endpoint(self) -> str:
        """The model's name, because every embedded model has its own limits."""
        return f"local/{self._name}"

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Wait for a turn, and answer."""
        generation = msgspec.structs.replace(
            request.generation, seed=request.generation.seed % _SEEDS
        )
        answer = await self._answer(msgspec.structs.replace(request, generation=generation))
        return msgspec.structs.replace(
            answer,
            sent=generation,
            # Without the folders of the path, which are private.
            model=f"{Path(self._name).name} sha256:{self._file.sha256[:_SHOWN_DIGITS]}",
            fingerprint=self._runtime,
        )

    async def aclose(self) -> None:
        """Stop this model's requests; the file stays loaded."""
        for cancelled in tuple(self._requests):
            cancelled.set()
        while self._requests:  # noqa: ASYNC110 - other threads discard them
            await asyncio.sleep(_PAUSE)

    async def _answer(self, request: ModelRequest) -> ModelReply:
        key = (self._file.path, self._file.sha256)
        file, cancelled = _files.setdefault(key, _LoadedFile(self._file.path)), threading.Event()

        def work(_: object) -> ModelReply:
            try:
                return file.answer(request, cancelled)
            except Exception as error:
                raise self._error(error) from error
            finally:
                self._requests.discard(cancelled)

        self._requests.add(cancelled)
        try:
            answer = await in_a_thread(work, None)
        except ModelError:
            self._requests.discard(cancelled)  # no thread could be started
            raise
        finally:
            cancelled.set()
        if isinstance(answer, ModelReply):
            return answer
        raise cast("ModelError", answer)

    def _error(self, error: Exception) -> ModelError:
        if isinstance(error, ModelError):
            return error
        what = f"the runtime failed with {type(error).__name__}: {error}"
        if isinstance(error, llama.LoadError):
            what = f"can't be loaded by {self._runtime}: {error}"
        return ModelError("refused", what, retry=False, fatal=True)
