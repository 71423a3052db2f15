"""Connections that hold a place only as long as they ask for something."""

import asyncio
from typing import Any, Final, cast

import h11
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from jurybox.web.headers import with_headers

MOST: Final = 256
_HEAD: Final = 10.0
"""The seconds that a request may take to say what it wants; whoever trickles is let go."""
_BODY: Final = 15.0
"""The seconds for what follows; longer than pages wait for it, so that they can say so."""


class Connection(H11Protocol):
    """A connection that is closed when a request on it doesn't come to its end."""

    head_seconds = _HEAD
    most = MOST

    def __init__(self, *args: Any, **more: Any) -> None:  # noqa: ANN401 - whatever uvicorn gives
        super().__init__(*args, **more)
        self._pages: Any = cast("Any", self).app
        self._deadline: asyncio.TimerHandle | None = None
        self._waits_for: type[Any] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        # uvicorn's own answer to too many would come without our headers.
        busy = len(self.connections) > self.most or len(self.tasks) >= self.most
        self.app: Any = _too_many if busy else self._pages
        super().data_received(data)
        self._wait()

    def _wait(self) -> None:
        """Give the head, or else the body, its time, once; what is complete needs none."""
        state = self.conn.their_state
        if state is self._waits_for:
            return
        self._stop()
        allowed: dict[type[Any], float] = {h11.IDLE: self.head_seconds, h11.SEND_BODY: _BODY}
        seconds = allowed.get(state)
        if seconds is not None and not self.transport.is_closing():
            self._waits_for = state
            self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _stop(self) -> None:
        self._waits_for = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    answer = PlainTextResponse("too many connections", 503, {"Connection": "close"})
    await answer(scope, receive, with_headers(send, kept=False))
