"""Handles exit codes, failures to write output, and signals."""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    import asyncio
    import signal

    from jurybox.app.job import Job
    from jurybox.engine.runner import Stop

FINE: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
INCOMPLETE: Final = 3

_REASONS: Final = {
    "SIGINT": "interrupted",
    "SIGTERM": "terminated",
    "SIGHUP": "the terminal was closed",
}


def was_interrupted(reason: str) -> bool:
    """Return whether a run was stopped by the user, and not by an error."""
    return reason.startswith(tuple(_REASONS.values()))


def fail(message: str, code: int) -> int:
    """Print one line on standard error, and return the code."""
    # `sys.stderr` is None if standard error was closed.
    if sys.stderr is not None:
        # The exit code still reports the error if the line can't be written.
        with contextlib.suppress(OSError):
            print(message, file=sys.stderr, flush=True)  # noqa: T201 - the one place that prints it
    return code


def guarded(work: Callable[[], int]) -> int:
    """Run work that prints, and report output that could not be written."""
    if sys.stdout is None:
        return fail("jurybox: standard output is closed; open it or send it to a file", INCOMPLETE)
    try:
        code = work()
        sys.stdout.flush()
    except OSError as error:
        _discard(sys.stdout)
        if isinstance(error, BrokenPipeError):
            # The reader has exited, as `| head` does; no message is needed.
            return INCOMPLETE
        reason = (error.strerror or str(error)).lower()
        hint = "free disk space or check the device"
        return fail(f"jurybox: can't write ({reason}); {hint}", INCOMPLETE)
    finally:
        if sys.stderr is not None:
            try:
                sys.stderr.flush()
            except OSError:
                _discard(sys.stderr)
    return code


def _discard(stream: TextIO) -> None:
    """Discard the rest of a stream; otherwise Python would fail at exit with code 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def close_on_signals(stopped: "asyncio.Event") -> None:
    """Set the event on the first signal; the second one has its usual effect."""
    import asyncio

    loop = asyncio.get_running_loop()
    handled = _active_signals()

    def stop() -> None:
        stopped.set()
        for each in handled:
            loop.remove_signal_handler(each)

    for each in handled:
        loop.add_signal_handler(each, stop)


def stop_on_signals(job: "Job") -> None:
    """Stop a job on signals; the job's event loop, which must be running, removes the handlers."""
    import asyncio

    loop = asyncio.get_running_loop()
    for each, reason in _active_signals().items():
        loop.add_signal_handler(each, _stop, job.stop, reason, job.batched)


def _active_signals() -> "dict[signal.Signals, str]":
    """Return the signals to handle, except ignored ones, such as Ctrl-C in a background job."""
    import signal

    known = {signal.Signals[name]: reason for name, reason in _REASONS.items()}
    return {
        each: reason
        for each, reason in known.items()
        if signal.getsignal(each) is not signal.SIG_IGN
    }


def _stop(stop: "Stop", reason: str, batched: bool) -> None:
    from jurybox.cli.output import say

    if stop.requested:
        stop.at_once(reason)
        return
    stop.soon(reason)
    if batched:
        say("no longer waiting for batches; Ctrl-C again stops at once")
        return
    count = stop.in_flight
    samples = "the sample" if count <= 1 else f"{count} samples"
    say(f"finishing {samples} in progress; Ctrl-C again stops at once")
