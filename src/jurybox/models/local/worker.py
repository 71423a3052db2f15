"""The thread that owns a loaded file: it loads once, then answers requests one at a time."""

import atexit
import os
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Final

from jurybox.judging.exchange import ModelRequest
from jurybox.models.local.answer import Completion, Stopped
from jurybox.models.local.engine import Engine

_LONGEST_GOODBYE: Final = 30.0


class Ticket:
    """A request that waits for its turn; its answer, and how long that took without the wait."""

    def __init__(self, request: ModelRequest) -> None:
        self.request = request
        self.answer: Future[Completion] = Future()
        self.elapsed_ms = 0.0
        self._given_up = False

    def give_up(self) -> None:
        """Have the worker skip the request, or stop in the middle of its answer."""
        self._given_up = True

    def is_given_up(self) -> bool:
        """Return whether the caller has given up."""
        return self._given_up


class Worker:
    """One loaded file and its thread, which begins with the first request."""

    def __init__(self, load: Callable[[], Engine]) -> None:
        self._load = load
        self._waiting: SimpleQueue[Ticket | None] = SimpleQueue()
        self._closing = False
        self._starting = threading.Lock()
        # A program that ends doesn't wait for it; `unload` ends it in good order.
        self._thread = threading.Thread(target=self._work, name="jurybox", daemon=True)

    def submit(self, ticket: Ticket) -> None:
        """Put a request into the queue."""
        with self._starting:
            if self._thread.ident is None:
                self._thread.start()
        self._waiting.put(ticket)

    def close(self) -> None:
        """Stop what is in progress, and free the memory."""
        self._closing = True
        self._waiting.put(None)
        if self._thread.ident is not None:
            self._thread.join(_LONGEST_GOODBYE)

    def _work(self) -> None:
        engine: Engine | None = None
        while (ticket := self._waiting.get()) is not None:
            if not ticket.answer.set_running_or_notify_cancel():
                continue
            try:
                if self._stopped(ticket):
                    raise Stopped  # noqa: TRY301 - it takes the way of every other failure
                # A file that couldn't be loaded is tried again: it may have been replaced.
                engine = engine or self._load()
                ticket.answer.set_result(self._answer(engine, ticket))
            except BaseException as error:  # noqa: BLE001 - it is handed to the caller
                ticket.answer.set_exception(error)
        if engine is not None:
            engine.close()

    def _answer(self, engine: Engine, ticket: Ticket) -> Completion:
        started = time.perf_counter()
        answer = engine.complete(ticket.request, lambda: self._stopped(ticket))
        ticket.elapsed_ms = (time.perf_counter() - started) * 1000
        return answer

    def _stopped(self, ticket: Ticket) -> bool:
        return self._closing or ticket.is_given_up()


_workers: dict[Hashable, Worker] = {}


def worker_for(key: Hashable, load: Callable[[], Engine]) -> Worker:
    """Return the one worker of this process for a file."""
    return _workers.setdefault(key, Worker(load))


def unload() -> None:
    """Stop all workers of this process and free their memory; a later request loads again."""
    workers = list(_workers.values())
    _workers.clear()
    for worker in workers:
        worker.close()


atexit.register(unload)
if hasattr(os, "register_at_fork"):
    # Threads don't follow into a child process.
    os.register_at_fork(after_in_child=_workers.clear)
