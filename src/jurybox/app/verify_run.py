"""Auditing a run with all the machine's cores: processes that look through slices of its samples.

What is asked of a process and what it answers are lines of JSON over its pipes. So an address with
a password in it is on no command line, and a process whose pipe ends has nobody left to work for.
"""

import contextlib
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Final

import msgspec

from jurybox.engine.audit import Audit, Vouched, Voucher, audit
from jurybox.engine.plan import read_plan
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.errors import IncompleteError
from jurybox.models.local.runtime import cores
from jurybox.wiring import open_run_store

SLICE: Final = 500
"""How many samples are looked through at a time."""
_WORTH_IT: Final = 5_000
"""With fewer samples, the processes would cost more time than they save."""
_MOST_PROCESSES: Final = 4
"""Each takes some 45 MB of memory."""
_BEGIN: Final = (
    "import sys; sys.path[:] = sys.argv[1:]; from jurybox.app.verify_run import serve; serve()"
)


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """The run whose samples a process is going to look through, and the store it is in."""

    store_url: str | None
    run: RunRow


_ASSIGNMENT: Final = msgspec.json.Decoder(Assignment)
_SLICE: Final = msgspec.json.Decoder(tuple[int, int])
_ANSWER: Final = msgspec.json.Decoder(Vouched | None)


def verify_run(
    store: Store,
    store_url: str | None,
    run: RunRow,
    on_sample: Callable[[int], None] | None = None,
) -> Audit:
    """Audit a run; a long one in several processes, with the same result.

    Raises:
        IncompleteError: the store is in trouble, or a process was killed.

    """
    processes = min(cores(), _MOST_PROCESSES)
    # A run that goes on meanwhile must be read in one go.
    if run.status != "finished" or processes < 2 or not sys.executable:  # noqa: PLR2004 - else alone
        return audit(store, run, on_sample)
    with contextlib.closing(verified_slices(store_url, run, processes)) as slices:
        return audit(store, run, on_sample, slices)


def verified_slices(
    store_url: str | None, run: RunRow, processes: int, smallest: int = _WORTH_IT, size: int = SLICE
) -> Generator[Vouched]:
    """Yield slices of a run's samples in order, as far as everything is as it should be.

    Raises:
        IncompleteError: a process was killed.

    """
    samples = read_plan(run.plan).samples
    if samples < smallest:
        return
    slices = (range(first, min(first + size, samples)) for first in range(0, samples, size))
    with _colleagues(Assignment(store_url=store_url, run=run), processes) as ask:
        # Some are asked for ahead, so that nobody waits for the one who adds up.
        ahead: deque[Future[Vouched | None]] = deque()
        while True:
            while len(ahead) < 2 * processes and (numbers := next(slices, None)) is not None:
                ahead.append(ask(numbers))
            answer = _waited(ahead.popleft()) if ahead else None
            if answer is None:
                return
            yield answer


def _waited(future: "Future[Vouched | None]") -> Vouched | None:
    """Return what comes of it.

    Ctrl-C in the moment between letting go of a lock and taking it again makes Python complain of
    the lock instead of telling that somebody wants to leave.
    """
    try:
        return future.result()
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


@contextlib.contextmanager
def _colleagues(
    assignment: Assignment, count: int
) -> Generator[Callable[[range], "Future[Vouched | None]"]]:
    """Start processes and give what asks whoever of them is free; none outlives the block."""
    everybody = [_Colleague(assignment) for _ in range(count)]
    free: SimpleQueue[_Colleague] = SimpleQueue()
    for each in everybody:
        free.put(each)

    def ask(numbers: range) -> Vouched | None:
        colleague = free.get()
        try:
            return colleague.ask(numbers)
        finally:
            free.put(colleague)

    pool = ThreadPoolExecutor(count)
    try:
        yield lambda numbers: pool.submit(ask, numbers)
    finally:
        # Whoever waits for one of them is told by the end of its pipe.
        for each in everybody:
            each.end()
        pool.shutdown(cancel_futures=True)


class _Colleague:
    """A process that looks through slices."""

    def __init__(self, assignment: Assignment) -> None:
        # Ctrl-C reaches every process of a terminal. This one leaves it to us, from its first
        # moment: what is held back here stays so in a process that is begun meanwhile.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process = subprocess.Popen(  # noqa: S603 - it is we ourselves
                [sys.executable, "-c", _BEGIN, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise IncompleteError(
                f"no process can be started ({error.strerror}); make room and verify again"
            ) from None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self._assignment: Assignment | None = assignment

    def ask(self, numbers: range) -> Vouched | None:
        """Have a slice looked through, and wait for it."""
        to, back = self._process.stdin, self._process.stdout
        if to is None or back is None:
            raise AssertionError("both are pipes")
        line = b""
        with contextlib.suppress(OSError, ValueError):
            if self._assignment is not None:
                to.write(msgspec.json.encode(self._assignment) + b"\n")
                self._assignment = None
            to.write(msgspec.json.encode((numbers.start, numbers.stop)) + b"\n")
            to.flush()
            line = back.readline()
        if not line.endswith(b"\n"):
            code = self._process.wait()
            raise IncompleteError(
                f"a process that looked through samples {numbers.start} to {numbers.stop - 1} has"
                f" died (exit status {code}), so they aren't checked; verify the run again"
            )
        return _ANSWER.decode(line)

    def end(self) -> None:
        """End it, whatever it does; it only reads."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def serve() -> None:
    """Be such a process: look through slices until nobody asks any more."""
    to, back = sys.stdin.buffer, sys.stdout.buffer
    assignment = _ASSIGNMENT.decode(to.readline())
    vouch: Callable[[range], Vouched | None] | None = None
    for line in to:
        answer = None
        # Whoever asked meets the same trouble in the same place, and tells it.
        with contextlib.suppress(Exception):
            vouch = vouch or Voucher(open_run_store(assignment.store_url), assignment.run)
            answer = vouch(range(*_SLICE.decode(line)))
        back.write(msgspec.json.encode(answer) + b"\n")
        back.flush()
