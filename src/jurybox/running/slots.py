"""Places at an endpoint, in the order of asking; how many there are may change at any time.

Who has been there before goes first, so that what is begun is finished before more is begun.
"""

import asyncio
from collections import deque
from collections.abc import Callable


class Slots:
    """A semaphore whose size is asked for each time."""

    def __init__(self, size: Callable[[], int]) -> None:
        self._size = size
        self._taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self._first: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        """How many places are in use."""
        return self._taken

    @property
    def waiting(self) -> bool:
        """Whether anybody waits for a place."""
        return bool(self._first or self._queue)

    def take_free(self) -> bool:
        """Take a place without waiting, if there is one that nobody waits for."""
        if self._first or self._queue or self._taken >= self._size():
            return False
        self._taken += 1
        return True

    async def take(self, *, first: bool = False) -> None:
        """Wait for a place, with those who go ``first`` or behind them."""
        if self.take_free():
            return
        turn = asyncio.get_running_loop().create_future()
        queue = self._first if first else self._queue
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The place was given in the very moment of the cancellation: it goes to the next.
                self.give_back()
            elif turn in queue:
                queue.remove(turn)
            raise

    def give_back(self) -> None:
        """Leave a place, and let in as many as there is room for now."""
        self._taken -= 1
        while (queue := self._first or self._queue) and self._taken < self._size():
            turn = queue.popleft()
            # Who was cancelled a moment ago still stands in the queue.
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
