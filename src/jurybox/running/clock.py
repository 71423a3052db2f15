"""The real clock; everything that waits takes a clock as an argument."""

import asyncio
import time


class SystemClock:
    """Time as it passes."""

    now = staticmethod(time.monotonic)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
