"""Making a connection stand: directly or through a proxy, plain or secure."""

import asyncio
import functools
import math
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import cast

import msgspec

from jurybox.models.wire.address import Address
from jurybox.models.wire.connection import Connection
from jurybox.models.wire.faults import (
    Cut,
    Insecure,
    NoConnectionInTime,
    NotHttp,
    ProxyRefused,
    TookTooLong,
    Unreachable,
)
from jurybox.models.wire.reaching import Names, reach, reason

_SUCCESS = range(200, 300)
# Asyncio's own 256 KiB for every read cost more than all the rest of a call.
_ROOM = 1 << 16

Lost = Callable[[Connection], None]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Patience in seconds, and the most bytes of a body; without, it isn't unpacked either."""

    connect: float
    read: float
    largest_body: int | None


class Dialer:
    """Connects to one address, in one loop."""

    def __init__(self, address: Address, proxy: Address | None, limits: Limits) -> None:
        self._address = address
        self._proxy = proxy
        self._limits = limits
        self._names = Names()
        self._room = memoryview(bytearray(_ROOM))

    async def dial(self, deadline: float, lost: Lost | None = None) -> Connection:
        """Return a connection on which requests can be sent.

        Raises:
            WireFault: there is none.

        """
        loop = asyncio.get_running_loop()
        until = loop.time() + self._limits.connect
        try:
            async with asyncio.timeout_at(min(until, deadline)):
                return await self._stand(lost)
        except TimeoutError:
            raise (TookTooLong if deadline < until else NoConnectionInTime) from None

    async def _stand(self, lost: Lost | None) -> Connection:
        proxy, address = self._proxy, self._address
        if proxy is None:
            made = await reach(self._names, address.host, address.port)
            return await self._over(made, address, lost)
        try:
            made = await reach(self._names, proxy.host, proxy.port)
            tunnelled = None if address.is_secure else lost
            connection = await self._over(made, proxy, tunnelled)
        except Unreachable as fault:
            raise Unreachable(fault.reason, proxied=True) from None
        if address.is_secure:
            return await self._through(connection, proxy, lost)
        return connection

    async def _over(self, made: socket.socket, to: Address, lost: Lost | None) -> Connection:
        """Speak over a socket: TLS if that is what the other side speaks."""
        connection = self._connection(lost)
        first = _Waiting() if to.is_secure else connection
        try:
            with _named():
                transport, _ = await asyncio.get_running_loop().create_connection(
                    lambda: first, sock=made
                )
        except BaseException:
            made.close()
            raise
        if to.is_secure:
            # In two steps, because only who holds what is beneath TLS can see how much is sent.
            await self._secure(connection, to, transport)
        return connection

    async def _through(self, plain: Connection, proxy: Address, lost: Lost | None) -> Connection:
        """Have the proxy lead on to the address, and speak TLS with that."""
        # Its time is that of connecting, which somebody else looks at.
        status, _ = await plain.begin(self._introduction(proxy), math.inf)
        if status not in _SUCCESS or plain.has_more:
            plain.abort()
            raise ProxyRefused(status) if status not in _SUCCESS else NotHttp("the proxy talks on")
        connection = self._connection(lost)
        await self._secure(connection, self._address, *plain.release())
        return connection

    async def _secure(
        self, connection: Connection, to: Address, *layers: asyncio.Transport
    ) -> None:
        """Speak TLS over what stands, the topmost first."""
        with _named():
            transport = await asyncio.get_running_loop().start_tls(
                layers[0], connection, trusting(), server_hostname=to.host
            )
        if transport is None:
            raise Cut
        connection.stand(transport, *layers)

    def _introduction(self, proxy: Address) -> bytes:
        to = self._address.netloc
        lines = [f"CONNECT {to} HTTP/1.1", f"Host: {to}", "User-Agent: jurybox"]
        if proxy.authorization is not None:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        return "\r\n".join([*lines, "", ""]).encode()

    def _connection(self, lost: Lost | None) -> Connection:
        loop, limits = asyncio.get_running_loop(), self._limits
        return Connection(loop, self._room, limits.read, limits.largest_body, lost)


class _Waiting(asyncio.Protocol):
    """Leaves all that comes to TLS, even from a server that speaks first."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Read nothing."""
        cast("asyncio.Transport", transport).pause_reading()


@functools.cache
def trusting() -> ssl.SSLContext:
    """Return what checks certificates against those that this machine trusts."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


@contextmanager
def _named() -> Generator[None]:
    """Give what the system says its name."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise Insecure(error.verify_message, certificate=True) from None
    except ssl.SSLError as error:
        words = (error.reason or "handshake failed").lower().replace("_", " ")
        raise Insecure(words, certificate=False) from None
    except OSError as error:
        raise Unreachable(reason(error)) from None
