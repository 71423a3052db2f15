"""A connection that sends no whole request is closed, and keeps no other out."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from jurybox.storage.store import Store
from jurybox.web.app_state import ServeSettings
from jurybox.web.server import open_port, serve
from jurybox.web.site import application

ASKED = b"GET /rubrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Address = tuple[str, int]


def served(
    store: Store, talk: Callable[[Address], Awaitable[None]], token: str | None = None
) -> None:
    """Serve for as long as a client talks."""

    async def both() -> None:
        port, stopped = open_port("127.0.0.1", 0), asyncio.Event()
        address = port.getsockname()
        app = application(ServeSettings(store=store, token=token))
        task = asyncio.ensure_future(serve(app, port, lambda: None, stopped))
        try:
            async with asyncio.timeout(60):
                await talk(address)
        finally:
            stopped.set()
            await task

    asyncio.run(both())


async def answer(streams: Streams, asked: bytes = ASKED) -> bytes:
    reader, writer = streams
    writer.write(asked)
    head = await reader.readuntil(b"\r\n\r\n")
    size = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(int(size.partition(b":")[2]))


async def closed(streams: Streams) -> bool:
    try:
        return await asyncio.wait_for(streams[0].read(), 20) == b""
    except ConnectionError:
        return True


def test_many_connections_that_ask_nothing_keep_nobody_out_and_are_closed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurybox.web.server.IDLE_SECONDS", 1.0)

    async def talk(address: Address) -> None:
        held = [await asyncio.open_connection(*address) for _ in range(300)]
        for _, writer in held[::2]:
            writer.write(b"GET / HTTP/1.1\r\n")  # half a head
        asking = await asyncio.open_connection(*address)
        assert b" 200 " in await answer(asking)
        assert all(await asyncio.gather(*map(closed, held)))
        for _, writer in (*held, asking):
            writer.close()

    served(store, talk)


def test_who_has_the_token_is_served_during_a_flood_from_another_address(store: Store) -> None:
    async def talk(address: Address) -> None:
        elsewhere = ("127.0.0.2", 0)
        held = [await asyncio.open_connection(*address, local_addr=elsewhere) for _ in range(400)]
        for _, writer in held:
            writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        readers = [await asyncio.open_connection(*address) for _ in range(300)]
        asked = ASKED[:-2] + b"Authorization: Bearer token-of-sixteen\r\n\r\n"
        answers = await asyncio.gather(*(answer(each, asked) for each in readers))
        assert all(b" 200 " in each[:20] for each in answers)
        for _, writer in (*held, *readers):
            writer.close()

    served(store, talk, token="token-of-sixteen")  # noqa: S106 - of nobody


@pytest.mark.parametrize("before", [0, 1], ids=["at first", "after a request"])
def test_a_head_that_trickles_is_not_waited_for(
    store: Store, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr("jurybox.web.server.IDLE_SECONDS", 0.5)

    async def talk(address: Address) -> None:
        streams = await asyncio.open_connection(*address)
        for _ in range(before):
            assert b" 200 " in await answer(streams)
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


def test_a_head_that_never_ends_is_refused(store: Store) -> None:
    async def talk(address: Address) -> None:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000)
        assert b" 4" in (await reader.readline())[:12]
        writer.close()

    served(store, talk)


def test_who_asks_again_soon_keeps_the_connection(store: Store) -> None:
    async def talk(address: Address) -> None:
        streams = await asyncio.open_connection(*address)
        for _ in range(2):
            assert b" 200 " in await answer(streams)
        streams[1].close()

    served(store, talk)
