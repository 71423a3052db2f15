"""Does work grow with its size alone? Told by the processor's time, again where it looks wrong."""

import time
from collections.abc import Callable

_TRIES = 3
_TIMES = 10
# Ten times the size: what is linear takes ten times as long, what is a square a hundred times.
_MOST = 40
# Less is a clock's tick and a cold cache.
_LEAST = 0.01
_LARGEST = 4


def grows_with_size_alone(work: Callable[[int], object], size: int) -> bool:
    """Tell whether ``work(size)`` takes about ten times as long as a tenth of it.

    The size is doubled until a tenth of it takes long enough to tell. One of a few tries is enough:
    another program can make the longer one take longer still, but nothing makes a square of it look
    like a line.
    """
    largest = _LARGEST * size
    while size < largest and _spent(work, size // _TIMES) < _LEAST:
        size *= 2
    return any(
        _spent(work, size) < _MOST * max(_spent(work, size // _TIMES), _LEAST)
        for _ in range(_TRIES)
    )


def _spent(work: Callable[[int], object], size: int) -> float:
    before = time.process_time()
    work(size)
    return time.process_time() - before
