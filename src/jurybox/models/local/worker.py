"""The thread that owns an engine: it loads once, then answers whoever waits, one at a time."""

import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from jurybox.models.local.engine import Completion, Engine, Job, Stopped
from jurybox.models.local.waiting import choose

_T = TypeVar("_T")
Loading = Callable[[], Engine]
_LONGEST_GOODBYE: Final = 30.0


class Done:
    """What came of a job: the answer and how many milliseconds it took, or what went wrong."""

    def __init__(
        self, result: Completion | BaseException, version: str = "", elapsed_ms: float = 0.0
    ) -> None:
        self.result = result
        self.version = version
        self.elapsed_ms = elapsed_ms


class Ticket:
    """A job that waits for its turn; ``settle`` is called once, from whatever thread ends it."""

    def __init__(self, job: Job, settle: Callable[[Done], object]) -> None:
        self.job = job
        self.settle = settle
        self.over = threading.Event()
        self._given_up = False

    def give_up(self) -> None:
        """Say that nobody waits for the answer any more."""
        self._given_up = True

    def is_given_up(self) -> bool:
        """Tell whether nobody waits any more."""
        return self._given_up


class Worker:
    """One engine and its thread, which begins with the first job."""

    def __init__(self, load: Loading) -> None:
        self._load = load
        self._changed = threading.Condition()
        self._waiting: list[Ticket] = []
        self._passed = 0
        self._closing = False
        self._thread: threading.Thread | None = None

    def submit(self, ticket: Ticket) -> None:
        """Put a job into the queue."""
        with self._changed:
            if self._thread is None:
                # A program that ends doesn't wait for it; `unload` ends it in good order.
                self._thread = threading.Thread(target=self._work, name="jurybox", daemon=True)
                self._thread.start()
            self._waiting.append(ticket)
            self._changed.notify()

    def give_up(self, ticket: Ticket) -> None:
        """Take a job out of the queue, or stop in the middle of it; ``over`` is set when it is."""
        ticket.give_up()
        with self._changed:
            if ticket in self._waiting:
                self._passed = 0 if self._waiting[0] is ticket else self._passed
                self._waiting.remove(ticket)
                self._settle(ticket, Done(Stopped()))

    def close(self) -> None:
        """Stop in the middle of whatever is going on, and free the memory."""
        with self._changed:
            self._closing = True
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(_LONGEST_GOODBYE)

    def _work(self) -> None:
        engine: Engine | BaseException | None = None
        last: Job | None = None
        while (ticket := self._next(last)) is not None:
            if engine is None or isinstance(engine, BaseException):
                engine = _attempt(self._load)
            if isinstance(engine, BaseException):
                self._settle(ticket, Done(engine))
            else:
                self._settle(ticket, self._answer(engine, ticket))
                last = ticket.job
        if engine is not None and not isinstance(engine, BaseException):
            engine.close()

    def _next(self, last: Job | None) -> Ticket | None:
        with self._changed:
            while True:
                for ticket in [each for each in self._waiting if self._stopped(each)]:
                    self._waiting.remove(ticket)
                    self._settle(ticket, Done(Stopped()))
                if self._closing:
                    return None
                if self._waiting:
                    break
                self._changed.wait()
            index = choose([ticket.job for ticket in self._waiting], last, self._passed)
            self._passed = self._passed + 1 if index else 0
            return self._waiting.pop(index)

    def _stopped(self, ticket: Ticket) -> bool:
        return self._closing or ticket.is_given_up()

    def _answer(self, engine: Engine, ticket: Ticket) -> Done:
        started = time.perf_counter()
        result = _attempt(lambda: engine.complete(ticket.job, lambda: self._stopped(ticket)))
        return Done(result, engine.version, (time.perf_counter() - started) * 1000)

    def _settle(self, ticket: Ticket, done: Done) -> None:
        # The loop of whoever waited may be closed by now.
        with contextlib.suppress(RuntimeError):
            ticket.settle(done)
        ticket.over.set()


def _attempt(action: Callable[[], _T]) -> _T | BaseException:
    try:
        return action()
    except BaseException as error:  # noqa: BLE001 - it is handed to whoever waits
        return error


_workers: dict[Hashable, Worker] = {}
_registry = threading.Lock()


def worker_for(key: Hashable, load: Loading) -> Worker:
    """Return the one worker of this process for a file."""
    with _registry:
        if key not in _workers:
            _workers[key] = Worker(load)
        return _workers[key]


def unload() -> None:
    """Stop all workers of this process and free their memory; who asks again loads again."""
    with _registry:
        workers = list(_workers.values())
        _workers.clear()
    for worker in workers:
        worker.close()


def _forget() -> None:
    """Forget the workers of the process that this one was split off from: threads don't follow."""
    _workers.clear()
    globals()["_registry"] = threading.Lock()


atexit.register(unload)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
