"""One connection: a request goes out, an answer comes in, and then perhaps another.

The way of a request is kept short, because a judge makes thousands: one write, one future, and no
timer of its own.
"""

import asyncio
import select
from collections.abc import Callable
from typing import Final, cast

import msgspec

from jurybox.models.wire.faults import BrokenOff, Cut, Silent, TookTooLong, WireFault
from jurybox.models.wire.reading import AnswerReader

# As much of a stream as is held while its reader is busy.
_MOST_BUFFERED: Final = 1 << 20


class Reply(msgspec.Struct, frozen=True):
    """A whole answer, whatever its status."""

    status: int
    headers: dict[str, str]
    body: bytes


class Connection(asyncio.BufferedProtocol):
    """A connection that stands.

    Attributes:
        idle_since: when its last exchange ended, by the clock of the loop.

    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        room: memoryview,
        patience: float,
        largest: int | None,
        lost: Callable[["Connection"], None] | None = None,
    ) -> None:
        """Wait ``patience`` seconds for each piece; tell ``lost`` when the connection is gone.

        All connections of one loop may share the ``room`` into which they read: what is there is
        taken before the loop does anything else.
        """
        self._loop = loop
        self._room = room
        self._patience = patience
        self._reader = AnswerReader(largest)
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._beneath: tuple[asyncio.Transport, ...] = ()
        self._news = select.poll()
        self._waiter: asyncio.Future[None] | None = None
        self._gone: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fault: WireFault | None = None
        self._is_busy = self._wants_head = self._is_paused = False
        self._heard = self._deadline = 0.0
        self._unsent: int = 0
        self.idle_since = 0.0

    @property
    def is_open(self) -> bool:
        """Whether something can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def has_more(self) -> bool:
        """Whether some of the body is there already."""
        return bool(self._reader.buffered)

    # ---- what its users call

    def send(self, request: bytes, deadline: float) -> None:
        """Send a request that `answer` waits for; ``deadline`` is by the clock of the loop.

        Raises:
            WireFault: the connection is closed.

        """
        self._send(request, deadline, wants_head=False)

    async def answer(self) -> Reply:
        """Return the whole answer.

        Cancelling closes the connection at once, so that nobody pays for what nobody reads.

        Raises:
            WireFault: it came to nothing; the connection is closed.

        """
        await self._expect()
        reader = self._reader
        reply = Reply(reader.status, reader.headers, reader.take())
        self._rest()
        return reply

    async def begin(self, request: bytes, deadline: float) -> tuple[int, dict[str, str]]:
        """Send a request and return the status and the headers; `read` gives the body.

        Raises:
            WireFault: it came to nothing; the connection is closed.

        """
        self._send(request, deadline, wants_head=True)
        await self._expect()
        return self._reader.status, self._reader.headers

    async def read(self) -> bytes:
        """Return the next bytes of the body that `begin` has left; none at its end.

        Raises:
            WireFault: it broke off; the connection is closed.

        """
        reader = self._reader
        while not reader.buffered and not reader.is_whole:
            if self._fault is not None:
                raise self._fault
            if self._is_paused:
                self._is_paused = False
                self._standing().resume_reading()
            self._heard = self._loop.time()
            await self._expect()
        return reader.take()

    def is_fit(self, now: float, longest: float) -> bool:
        """Tell whether an idle connection can take a request."""
        transport, age = self._transport, now - self.idle_since
        if transport is None or transport.is_closing() or age > longest:
            return False
        # The loop may not have seen yet that the server hung up, or said more than it was asked
        # for; that would be taken for the next answer.
        return not self._news.poll(0)

    def abort(self) -> None:
        """Close at once; more than once is fine."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._transport is not None:
            # Not `close`: that would go on sending, and over TLS wait for a farewell.
            self._transport.abort()

    def release(self) -> tuple[asyncio.Transport, ...]:
        """Give away what it runs over, the topmost first, and hear no more of it."""
        layers = (self._standing(), *self._beneath)
        self._transport, self._lost = None, None
        self.abort()
        return layers

    def stand(self, *layers: asyncio.Transport) -> None:
        """Run over a transport that others carry, the topmost first."""
        self.connection_made(layers[0])
        self._beneath = layers[1:]

    async def gone(self) -> None:
        """Wait until its socket is closed."""
        if self._transport is not None:
            if self._gone is None:
                self._gone = self._loop.create_future()
            await asyncio.shield(self._gone)

    def _send(self, request: bytes, deadline: float, *, wants_head: bool) -> None:
        transport = self._standing()
        self._reader.begin()
        self._fault = None
        self._is_busy, self._wants_head = True, wants_head
        self._heard, self._deadline = self._loop.time(), deadline
        transport.write(request)
        self._unsent = self._left_to_send(transport)

    def _standing(self) -> asyncio.Transport:
        if self._transport is None or self._transport.is_closing():
            raise Cut
        return self._transport

    def _left_to_send(self, transport: asyncio.Transport) -> int:
        """Return how many bytes wait here; what TLS has locked up waits in the layer beneath."""
        size: int = transport.get_write_buffer_size()
        for layer in self._beneath:
            size += layer.get_write_buffer_size()
        return size

    async def _expect(self) -> None:
        """Wait for news; whoever gives up waiting closes the connection."""
        self._waiter = self._loop.create_future()
        if self._timer is None:
            # It outlives the exchange. Every later one ends later, so it never rings too late; and
            # what rings too early is set anew.
            self._timer = self._loop.call_at(self._due(), self._ring)
        try:
            await self._waiter
        except BaseException:
            self.abort()
            raise

    def _rest(self) -> None:
        """End an exchange; the connection is closed unless it can be used again."""
        self._is_busy = False
        self.idle_since = self._loop.time()
        # An answer may come before the request is out; the rest of that can't be taken back.
        transport = self._transport
        if not self._reader.keeps_alive or transport is None or self._left_to_send(transport):
            self.abort()

    # ---- what the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._news.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Say where bytes are to be put."""
        del sizehint
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes of the answer."""
        if not self._is_busy:
            # Nobody asked: whatever it is, the next answer could be mistaken for another's.
            self.abort()
            return
        self._heard = self._loop.time()
        reader = self._reader
        try:
            reader.feed(self._room[:nbytes])
        except WireFault as fault:
            self._fail(fault)
            return
        if reader.is_whole or (self._wants_head and reader.has_head):
            self._wake()
        if self._wants_head and reader.buffered > _MOST_BUFFERED and not self._is_paused:
            self._is_paused = True
            self._standing().pause_reading()

    def eof_received(self) -> None:
        """Take note that the server has said all; the loop then closes the connection."""
        if self._is_busy and self._fault is None:
            try:
                self._reader.finish()
            except WireFault as fault:
                self._fail(fault)
            else:
                self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, at whoever's wish."""
        del exc
        if self._is_busy and not self._reader.is_whole and self._fault is None:
            self._fail(BrokenOff() if self._reader.has_head else Cut())
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if self._lost is not None:
            self._lost(self)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, fault: WireFault) -> None:
        self._fault = fault
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(fault)
        self.abort()

    def _due(self) -> float:
        return min(self._heard + self._patience, self._deadline)

    def _ring(self) -> None:
        """See whether the time is over."""
        self._timer = None
        transport = self._transport
        if transport is None or self._waiter is None or self._waiter.done():
            return
        now = self._loop.time()
        unsent = self._left_to_send(transport)
        if unsent != self._unsent:
            # A large request on a slow line: nothing can be heard while it still goes out.
            self._unsent, self._heard = unsent, now
        due = self._due()
        if now < due:
            self._timer = self._loop.call_at(due, self._ring)
        else:
            self._fail(TookTooLong() if now >= self._deadline else Silent())
