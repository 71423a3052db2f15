"""The connections to one address that wait for their next request."""

import asyncio
from typing import Final

from jurybox.models.wire.connection import Connection, Reply
from jurybox.models.wire.dialing import Dialer

# Servers close theirs after 5 s to some minutes; whoever closes first never sends into the void.
LONGEST_IDLE: Final = 15.0


class Pool:
    """Connections of one loop. How many at once is the caller's to say, who knows more."""

    def __init__(self, dialer: Dialer, loop: asyncio.AbstractEventLoop) -> None:
        self._dialer = dialer
        self._loop = loop
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._is_closed = False

    async def exchange(self, request: bytes, total: float) -> Reply:
        """Send a request on a connection that is free, or else on a new one.

        A request that fails on an old connection isn't sent again from here. The server may have
        read it before it hung up, and a judge's reply is paid for each time: whether to repeat is
        for the caller, who counts attempts.

        Raises:
            WireFault: it came to nothing.

        """
        deadline = self._loop.time() + total
        connection = self._take()
        if connection is None:
            connection = await self._dialer.dial(deadline, self._open.discard)
            if connection.is_open:
                self._open.add(connection)
        connection.send(request, deadline)
        # Hundreds may wait for their answers, and nobody needs their requests any more.
        del request
        reply = await connection.answer()
        self._give_back(connection)
        return reply

    async def aclose(self) -> None:
        """Close all, and wait until that is done."""
        self._is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._idle.clear()
        closing = list(self._open)
        for connection in closing:
            connection.abort()
        for connection in closing:
            await connection.gone()

    def _take(self) -> Connection | None:
        """Return the one that was used last: the others may come to their rest."""
        now = self._loop.time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fit(now, LONGEST_IDLE):
                return connection
            connection.abort()
        return None

    def _give_back(self, connection: Connection) -> None:
        if self._is_closed:
            connection.abort()
        if not connection.is_open:
            return
        self._idle.append(connection)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(LONGEST_IDLE, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        now = self._loop.time()
        fit = [each for each in self._idle if each.is_fit(now, LONGEST_IDLE)]
        for connection in set(self._idle).difference(fit):
            connection.abort()
        self._idle = fit
        if fit:
            self._sweeping = self._loop.call_later(LONGEST_IDLE, self._sweep)
