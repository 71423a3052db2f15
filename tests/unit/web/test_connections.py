"""Whoever connects and doesn't ask is let go, and keeps nobody out."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from jurybox.running.storing import Store
from jurybox.web.app import application
from jurybox.web.connections import Connection
from jurybox.web.place import ServeSettings
from jurybox.web.serving import open_port, serve

ASKED = b"GET /rubrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def served(store: Store, talk: Callable[[socket.socket], Awaitable[None]]) -> None:
    """Serve for as long as somebody talks."""

    async def both() -> None:
        port, ready, stopped = open_port("127.0.0.1", 0), asyncio.Event(), asyncio.Event()
        app = application(ServeSettings(store=store))
        serving = asyncio.ensure_future(serve(app, port, ready.set, stopped))
        await ready.wait()
        try:
            async with asyncio.timeout(30):
                await talk(port)
        finally:
            stopped.set()
            await serving

    asyncio.run(both())


async def connected(port: socket.socket) -> Streams:
    return await asyncio.open_connection(*port.getsockname())


async def answer(streams: Streams) -> bytes:
    reader, writer = streams
    writer.write(ASKED)
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(int(size.partition(b":")[2]))


async def closed(streams: Streams) -> bool:
    try:
        return await asyncio.wait_for(streams[0].read(), 5) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("before", [0, 1], ids=["at first", "after a request"])
def test_a_head_that_trickles_is_not_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.4)

    async def talk(port: socket.socket) -> None:
        streams = await connected(port)
        for _ in range(before):
            assert b" 200 OK" in await answer(streams)
        ended = asyncio.ensure_future(closed(streams))
        for letter in ASKED[:-4]:
            if ended.done():
                break
            streams[1].write(bytes([letter]))
            await asyncio.sleep(0.05)
        assert ended.done()
        assert ended.result()
        streams[1].close()

    served(store, talk)


def test_who_says_nothing_is_let_go_and_who_asks_is_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 0.4)

    async def talk(port: socket.socket) -> None:
        silent, asking = await connected(port), await connected(port)
        assert b" 200 OK" in await answer(asking)
        assert await closed(silent)
        # Between two requests a browser may think for longer.
        await asyncio.sleep(0.3)
        assert b" 200 OK" in await answer(asking)
        for _, writer in (silent, asking):
            writer.close()

    served(store, talk)


def test_one_too_many_is_told_so_under_our_headers_until_others_are_let_go(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "head_seconds", 1.0)
    monkeypatch.setattr(Connection, "most", 3)

    async def talk(port: socket.socket) -> None:
        held = [await connected(port) for _ in range(3)]
        for _, writer in held:
            writer.write(b"GET / HTTP/1.1\r\n")
        last = await connected(port)
        refused = await answer(last)
        assert b" 503 Service Unavailable" in refused
        assert b"content-security-policy: default-src 'none'" in refused.lower()
        assert all([await closed(each) for each in held])
        again = await connected(port)
        assert b" 200 OK" in await answer(again)
        for _, writer in (*held, last, again):
            writer.close()

    served(store, talk)
