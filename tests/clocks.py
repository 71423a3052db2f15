"""A clock for tests of those who wait."""

import asyncio


class Clock:
    """Waits take no time and are written down."""

    def __init__(self, time: float = 0.0) -> None:
        self.time = time
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)
