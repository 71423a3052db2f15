"""Keeping Ctrl-C ours: llama.cpp's server takes the signals that end a program for itself."""

import contextlib
import ctypes
import signal
from collections.abc import Generator

# Larger than the structure is on any system.
_ROOM = 1024


@contextlib.contextmanager
def signals_left_alone() -> Generator[None]:
    """Put the handlers of signals back as they were before, in whichever thread.

    Python's own functions for that work in the main thread only, and know nothing of handlers that
    were set behind their back.
    """
    sigaction = ctypes.CDLL(None).sigaction
    before: dict[int, ctypes.Array[ctypes.c_char]] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = ctypes.create_string_buffer(_ROOM)
        sigaction(int(number), None, before[number])
    try:
        yield
    finally:
        for number, action in before.items():
            sigaction(int(number), action, None)
