"""Verify a run on all cores: worker processes check slices of its samples."""

import contextlib
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import connection, get_context, parent_process
from typing import Final

from jurybox.engine.audit import Audit, Vouched, Voucher, audit
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.errors import IncompleteError
from jurybox.models.local.files import cores
from jurybox.reporting.stored import plan_of
from jurybox.wiring import open_run_store

SLICE: Final = 500
_MIN_SAMPLES: Final = 5_000
"""With fewer samples, starting processes takes longer than they save."""
_MAX_PROCESSES: Final = 4
"""Each takes about 45 MB of memory."""


def verify_run(
    store: Store,
    store_url: str | None,
    run: RunRow,
    on_sample: Callable[[int], None] | None = None,
) -> Audit:
    """Audit a run; a long one in several processes, with the same result.

    Raises:
        IncompleteError: the store failed, or a process was killed.

    """
    processes = min(cores(), _MAX_PROCESSES)
    # A run that is still being written must be read in one pass.
    if run.status != "finished" or processes == 1:
        return audit(store, run, on_sample)
    with contextlib.closing(verified_slices(store_url, run, processes)) as slices:
        return audit(store, run, on_sample, slices)


def verified_slices(
    store_url: str | None,
    run: RunRow,
    processes: int,
    smallest: int = _MIN_SAMPLES,
    size: int = SLICE,
) -> Generator[Vouched]:
    """Yield slices of a run's samples in order, up to the first that a process can't verify.

    Raises:
        IncompleteError: a process was killed.

    """
    samples = plan_of(run).samples
    if samples < smallest:
        return
    pool = ProcessPoolExecutor(processes, get_context("spawn"), initializer=_end_with_parent)
    ahead: deque[Future[Vouched | None]] = deque()
    slices = (range(first, min(first + size, samples)) for first in range(0, samples, size))
    try:
        while True:
            # Some are requested ahead, so that no process waits for the sum.
            while len(ahead) < 2 * processes and (numbers := next(slices, None)) is not None:
                ahead.append(_submit(pool, store_url, run, numbers))
            found = ahead.popleft().result() if ahead else None
            if found is None:
                return
            yield found
    except BrokenProcessPool:
        what = "a process that verified samples has died, so they aren't checked"
        raise IncompleteError(f"{what}; verify the run again") from None
    except OSError as error:
        what = f"no process can be started ({error.strerror}); free some memory and verify again"
        raise IncompleteError(what) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _submit(
    pool: ProcessPoolExecutor, store_url: str | None, run: RunRow, numbers: range
) -> "Future[Vouched | None]":
    # The first call starts the processes. They inherit the mask: Ctrl-C reaches every process of a
    # terminal, and only the main one may react to it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_verify, store_url, run, numbers)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@cache
def _verifier(store_url: str | None, run: RunRow) -> Voucher:
    return Voucher(open_run_store(store_url), run)


def _verify(store_url: str | None, run: RunRow, numbers: range) -> Vouched | None:
    """Verify a slice in a worker process."""
    # The main process meets the same error in the same place, and reports it.
    with contextlib.suppress(Exception):
        return _verifier(store_url, run)(numbers)
    return None


def _end_with_parent() -> None:
    """End this worker when the main process ends, even if it is killed."""
    parent = parent_process()
    if parent is None:
        raise AssertionError("workers have a parent")
    sentinel = parent.sentinel

    def wait() -> None:
        connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
