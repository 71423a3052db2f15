"""Exit codes, and what they say when standard output can't be written."""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Final, TextIO

FINE: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
INCOMPLETE: Final = 3


def fail(message: str, code: int) -> int:
    """Print one line for people, and return the code."""
    # Python has no standard error at all where it was closed.
    if sys.stderr is not None:
        # Where nothing can be said, the code still says it.
        with contextlib.suppress(OSError):
            print(message, file=sys.stderr, flush=True)  # noqa: T201 - the one place that prints it
    return code


def guarded(work: Callable[[], int]) -> int:
    """Do work that prints, and see to it that what it printed has really gone out."""
    if sys.stdout is None:
        return fail("jurybox: standard output is closed; open it or send it to a file", INCOMPLETE)
    try:
        code = work()
        sys.stdout.flush()
    except OSError as error:
        _give_up(sys.stdout)
        if isinstance(error, BrokenPipeError):
            # The reader has gone, as `| head` does; it knows.
            return INCOMPLETE
        reason = (error.strerror or str(error)).lower()
        return fail(f"jurybox: can't go on ({reason}); make room or check the device", INCOMPLETE)
    finally:
        _settle_stderr()
    return code


def _settle_stderr() -> None:
    """See that nothing unwritten is left on standard error: Python would end with code 120."""
    if sys.stderr is not None:
        try:
            sys.stderr.flush()
        except OSError:
            _give_up(sys.stderr)


def _give_up(stream: TextIO) -> None:
    """Send what is left of a stream nowhere: Python would try again at the end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
