"""Connections to a real endpoint: when one is used again, when not, and how they end."""

import asyncio
import gc
import gzip
import itertools
import socket
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import loopback
from jurybox.engine.ports import ModelError
from jurybox.models import connections
from jurybox.models.http import HttpAnswer, HttpClient, HttpOptions
from loopback import Exchange, Fault, Loopback

FINE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def says(data: bytes, *, closes: bool = False) -> Fault:
    """Answer with these very bytes."""

    async def fault(exchange: Exchange) -> None:
        await exchange.send(data)
        if closes:
            exchange.writer.close()

    return fault


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def ask(
    *script: Fault, scenario: Callable[[HttpClient, Loopback], Awaitable[None]], **options: float
) -> Loopback:
    """Let a client and an endpoint loose on each other; nothing may be left of either."""

    async def main() -> Loopback:
        async with Loopback(*script) as server:
            client = HttpClient(server.url, {}, options=msgspec.convert(options, HttpOptions))
            await scenario(client, server)
            await client.aclose()
            await server.until(lambda server: server.open == 0)
        return server

    before = open_files()
    server = asyncio.run(main())
    deadline = time.monotonic() + 20
    # The client's thread ends a little later.
    for tries in itertools.count(1):
        if open_files() <= before:
            break
        assert time.monotonic() < deadline
        if tries % 20 == 0:
            gc.collect()
        time.sleep(0.005)
    return server


def connections_of(server: Loopback) -> int:
    return len({exchange.writer for exchange in server.requests})


async def post(client: HttpClient, *_: object) -> None:
    assert (await client.post("/x", {})).body == b"{}"


async def twice(client: HttpClient, _: Loopback) -> None:
    await post(client)
    await post(client)


async def trouble(client: HttpClient) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await client.post("/x", {})
    return caught.value


# ---- while nobody uses it


def test_an_idle_connection_is_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_LONGEST_IDLE", timedelta(seconds=0.05))

    async def scenario(client: HttpClient, server: Loopback) -> None:
        await asyncio.gather(*(post(client) for _ in range(3)))
        await server.until(lambda server: server.open == 0)
        await post(client)

    ask(says(FINE), scenario=scenario)


def test_a_request_is_not_sent_twice_where_it_may_have_been_read() -> None:
    """The server takes it on an old connection and hangs up; each reply costs money."""

    async def scenario(client: HttpClient, _: Loopback) -> None:
        await post(client)
        found = await trouble(client)
        assert (str(found), found.retry) == ("unreachable (the connection was lost)", True)

    assert len(ask(says(FINE), loopback.cut_off, scenario=scenario).requests) == 2


# ---- answers


@pytest.mark.parametrize(
    ("packed", "scenario"),
    [
        (b"{}", twice),
        # It ends before its last chunk is there, so that whether the connection can be used again
        # is a matter of time.
        (gzip.compress(b"{}"), post),
    ],
    ids=["plain", "gzip"],
)
def test_chunks_may_come_in_odd_pieces(
    packed: bytes, scenario: Callable[[HttpClient, Loopback], Awaitable[None]]
) -> None:
    async def fault(exchange: Exchange) -> None:
        coding = b"" if scenario is twice else b"Content-Encoding: gzip\r\n"
        head = b"HTTP/1.1 200 OK\r\n" + coding + b"Transfer-Encoding: chunked\r\n\r\n"
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in packed)
        for byte in head + chunks + b"0\r\n\r\n":
            await exchange.send(bytes([byte]))
            await asyncio.sleep(0)

    assert connections_of(ask(fault, scenario=scenario)) == 1


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"\x15\x03\x01\x00\x02\x02\x46", "the answer isn't HTTP ("),
        (b"hello\n", "the answer isn't HTTP ("),
        (
            b"HTTP/1.1 200 OK\r\nX: " + b"y" * 2_000_000,
            "the answer isn't HTTP (TooLarge)",
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"y" * 2_000_000,
            "the answer is incomplete, or can't be decompressed",
        ),
        (b"HTTP/1.1 101 X\r\n\r\n", "HTTP 101 isn't an answer"),
        (b"HTTP/1.1 200 OK\r\nX: y", "unreachable (the connection was lost)"),
    ],
)
def test_what_is_no_answer_is_named_and_asked_for_again(said: bytes, message: str) -> None:
    async def scenario(client: HttpClient, _: Loopback) -> None:
        found = await trouble(client)
        assert found.retry
        assert str(found).startswith(message)
        await post(client)

    ask(says(said, closes=True), says(FINE), scenario=scenario)


VALID = (
    b"HTTP/1.1 200 OK\r\nContent-Type: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
)


@st.composite
def noise(draw: st.DrawFn) -> bytes:
    """Draw what a server may say: anything, or an answer with a piece of it replaced."""
    data = draw(st.binary(max_size=200))
    if draw(st.booleans()):
        return data
    begin = draw(st.integers(0, len(VALID)))
    return VALID[:begin] + data + VALID[begin + draw(st.integers(0, 20)) :]


@given(said=st.lists(noise(), min_size=1, max_size=3))
def test_nothing_that_a_server_says_is_more_than_trouble(said: list[bytes]) -> None:
    async def scenario(client: HttpClient, _: Loopback) -> None:
        for _ in said:
            try:
                answer = await client.post("/x", {})
            except ModelError:
                continue
            assert isinstance(answer, HttpAnswer)

    ask(*(says(data, closes=True) for data in said), scenario=scenario)


# ---- large requests


async def raw_server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
) -> tuple[asyncio.Server, str]:
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_a_request_that_goes_out_slowly_is_not_silence() -> None:
    size = 9_000_000

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken = 0
        while taken < size:
            taken += len(await reader.read(1 << 20))
            await asyncio.sleep(0.05)
        writer.write(FINE)
        writer.close()

    async def main() -> float:
        # The system may hold little, so that most of it waits in the client.
        narrow = socket.create_server(("127.0.0.1", 0))
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        server = await asyncio.start_server(handle, sock=narrow)
        url = f"http://127.0.0.1:{narrow.getsockname()[1]}"
        client = HttpClient(url, {}, options=HttpOptions(read=1.5))
        answer = await client.post("/x", "x" * size)
        await client.aclose()
        server.close()
        return answer.elapsed_ms

    # It took longer than anybody waits for a sign of life.
    assert asyncio.run(main()) > 1600


def test_a_request_that_nobody_takes_is_silence() -> None:
    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await left.wait()
        writer.close()

    async def main() -> None:
        server, url = await raw_server(handle)
        client = HttpClient(url, {}, options=HttpOptions(read=0.2))
        with pytest.raises(ModelError, match=r"no data for 0\.2 s"):
            await client.post("/x", "x" * 50_000_000)
        await client.aclose()
        left.set()
        await asyncio.sleep(0.05)
        server.close()

    left = asyncio.Event()
    asyncio.run(main())


# ---- giving up, and ends


def test_a_call_that_is_cancelled_closes_its_connection_and_no_other() -> None:
    async def scenario(client: HttpClient, server: Loopback) -> None:
        await post(client)
        stuck = asyncio.create_task(client.post("/x", {}))
        await server.until(lambda server: len(server.requests) == 2)
        other = asyncio.create_task(client.post("/x", {}))
        await server.until(lambda server: len(server.requests) == 3)
        stuck.cancel()
        await server.until(lambda server: server.open == 1)
        assert not other.done()
        other.cancel()
        await asyncio.wait({stuck, other})
        assert stuck.cancelled()

    ask(says(FINE), loopback.hang, scenario=scenario)


def test_a_client_that_is_closed_lets_calls_in_flight_end() -> None:
    async def slowly(exchange: Exchange) -> None:
        await asyncio.sleep(0.1)
        await exchange.send(FINE)

    async def scenario(client: HttpClient, server: Loopback) -> None:
        call = asyncio.create_task(post(client))
        await server.until(lambda server: len(server.requests) == 1)
        await client.aclose()
        await call

    ask(slowly, scenario=scenario)


def test_a_client_goes_on_in_a_second_loop() -> None:
    ready: Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event, str]] = Queue()

    async def serve() -> None:
        left = asyncio.Event()
        async with Loopback(says(FINE)) as server:
            ready.put((asyncio.get_running_loop(), left, server.url))
            await left.wait()

    async def close() -> None:
        await post(client)
        await client.aclose()

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    loop, left, url = ready.get()
    client = HttpClient(url, {})
    with warnings.catch_warnings():
        # Python says of the first loop's connection that nobody closed it, which is so.
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(post(client))
        asyncio.run(close())
        gc.collect()
    loop.call_soon_threadsafe(left.set)
    thread.join()


# ---- time


def test_an_answer_that_keeps_coming_is_not_silence() -> None:
    async def slowly(exchange: Exchange) -> None:
        await exchange.answer(b"", length=14)
        for byte in b"{            }":
            await asyncio.sleep(0.1)
            await exchange.send(bytes([byte]))

    async def scenario(client: HttpClient, _: Loopback) -> None:
        assert (await client.post("/x", {})).elapsed_ms > 1200

    # Each piece is in time by far, and all of them together are not.
    ask(slowly, scenario=scenario, read=1.2)
