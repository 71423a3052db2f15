"""Something large from a real server: where it was moved to, and how fast it is taken."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from jurybox.models.proxies import Proxies
from jurybox.models.wire.dialing import Limits
from jurybox.models.wire.faults import BrokenOff, NotHttp, Silent, WireFault
from jurybox.models.wire.streaming import Stream, streaming
from loopback import Exchange, Fault, Loopback, cut_off, hang_in_body, status

LIMITS = Limits(connect=10, read=10, largest_body=None)


async def whole(stream: Stream) -> bytes:
    pieces: list[bytes] = []
    while piece := await stream.read():
        pieces.append(piece)
    return b"".join(pieces)


def get(
    *script: Fault,
    read: Callable[[Stream], Awaitable[bytes]] = whole,
    user: str = "",
    limits: Limits = LIMITS,
) -> tuple[bytes, Loopback]:
    async def main() -> tuple[bytes, Loopback]:
        async with Loopback(*script) as server:
            url = server.url.replace("//", f"//{user}")
            async with streaming(url, {}, proxies=Proxies(), limits=limits) as stream:
                body = await read(stream)
            await server.until(lambda server: server.open == 0)
            return body, server

    return asyncio.run(main())


def sends(body: bytes) -> Fault:
    return lambda exchange: exchange.answer(body)


def test_a_stream_is_what_was_sent() -> None:
    body = bytes(range(256)) * 20_000
    assert get(sends(body))[0] == body


def test_a_stream_is_not_taken_faster_than_it_is_read() -> None:
    sent = 0

    async def endless(exchange: Exchange) -> None:
        nonlocal sent
        await exchange.answer(b"", length=10**12)
        while True:
            await exchange.send(bytes(1_000_000))
            sent += 1_000_000

    async def read(stream: Stream) -> bytes:
        before = len(await stream.read())
        await asyncio.sleep(0.3)
        held = stream._connection._reader.buffered
        assert before + held < 3_000_000
        return b""

    get(endless, read=read)
    # The rest is in the buffers of the system.
    assert sent < 30_000_000


def test_a_stream_goes_on_after_its_reader_was_busy() -> None:
    body = bytes(5_000_000)

    async def read(stream: Stream) -> bytes:
        await asyncio.sleep(1.2)
        return await whole(stream)

    patience = Limits(connect=10, read=1, largest_body=None)
    assert get(sends(body), read=read, limits=patience)[0] == body


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_what_was_moved_is_followed(code: int) -> None:
    body, server = get(status(code, Location="/elsewhere?a=b"), sends(b"fine"))
    assert body == b"fine"
    assert [exchange.path for exchange in server.requests] == ["/v1", "/elsewhere?a=b"]


def test_a_password_goes_to_its_own_host_alone() -> None:
    async def main() -> list[list[bool]]:
        async with Loopback(sends(b"fine")) as store:
            moves = (status(302, Location="/here"), status(302, Location=store.url))
            async with Loopback(*moves) as server:
                url = server.url.replace("//", "//me:word@")
                async with streaming(url, {}, proxies=Proxies(), limits=LIMITS) as stream:
                    assert await whole(stream) == b"fine"
            return [
                ["authorization" in exchange.headers for exchange in each.requests]
                for each in (server, store)
            ]

    assert asyncio.run(main()) == [[True, True], [False]]


NOTHING: dict[str, tuple[Fault, type[WireFault]]] = {
    "in circles": (status(302, Location="/again"), NotHttp),
    "to another protocol": (status(302, Location="ftp://host/"), NotHttp),
    "to no address": (status(302, Location="http://[x"), NotHttp),
    "cut off": (cut_off, WireFault),
    "silent": (hang_in_body, Silent),
}


@pytest.mark.parametrize(("fault", "kind"), NOTHING.values(), ids=NOTHING.keys())
def test_what_comes_to_nothing_says_so(fault: Fault, kind: type[WireFault]) -> None:
    with pytest.raises(kind):
        get(fault, limits=Limits(connect=10, read=0.2, largest_body=None))


def test_what_came_before_a_stream_broke_off_is_kept() -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.answer(b"half", length=8)
        exchange.writer.close()

    async def read(stream: Stream) -> bytes:
        body = await stream.read()
        with pytest.raises(BrokenOff):
            await stream.read()
        return body

    assert get(half, read=read)[0] == b"half"


def test_a_stream_has_no_limit_of_time_as_long_as_it_comes() -> None:
    async def slowly(exchange: Exchange) -> None:
        await exchange.answer(b"", length=12)
        for byte in b"slow, slowly":
            await asyncio.sleep(0.1)
            await exchange.send(bytes([byte]))

    assert get(slowly, limits=Limits(connect=10, read=1, largest_body=None))[0] == b"slow, slowly"
