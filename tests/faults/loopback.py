"""A model endpoint on this machine that misbehaves as it is told, one fault a request.

By hand: ``python tests/faults/loopback.py [FAULT]`` serves one fault, or good replies.
"""

import asyncio
import gzip
import json
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Self


class Exchange:
    """One request as it came in, and the way to answer it."""

    def __init__(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        self.path = first.split(" ")[1]
        self.headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines if line)
        }
        self.body: Any = json.loads(body) if body else None
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(
        self,
        body: bytes,
        *,
        status: int = 200,
        content_type: str | None = "application/json",
        length: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {length or len(body)}"]
        if content_type is not None:
            lines.append(f"Content-Type: {content_type}")
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)


Fault = Callable[[Exchange], Awaitable[None]]


class Loopback:
    """Answers request n with fault n, and all later ones with the last."""

    def __init__(self, *script: Fault) -> None:
        self.script = script
        self.requests: list[Exchange] = []
        self.changed = asyncio.Condition()
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def until(self, wanted: Callable[["Loopback"], bool]) -> None:
        """Wait for something to happen, however busy the machine is."""
        async with self.changed, asyncio.timeout(20):
            await self.changed.wait_for(lambda: wanted(self))

    @property
    def open(self) -> int:
        return len(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._connections.add(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        closed = asyncio.ensure_future(self._converse(reader, writer))
        try:
            await closed
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            closed.cancel()
            writer.close()
            task = asyncio.current_task()
            assert task is not None
            self._connections.discard(task)
            async with self.changed:
                self.changed.notify_all()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.lower().split(b"\r\n"):
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            exchange = Exchange(head, await reader.readexactly(length), writer)
            fault = self.script[min(len(self.requests), len(self.script) - 1)]
            self.requests.append(exchange)
            async with self.changed:
                self.changed.notify_all()
            # A client that hangs up ends whatever was going to be said.
            gone = asyncio.ensure_future(reader.read(1))
            told = asyncio.ensure_future(fault(exchange))
            try:
                await asyncio.wait({gone, told}, return_when=asyncio.FIRST_COMPLETED)
                if not told.done():
                    return
                await told
            finally:
                told.cancel()
                pending = gone.cancel()
            if not pending or writer.is_closing():
                return
            await asyncio.gather(gone, return_exceptions=True)


def completion(text: object = "fine", **choice: object) -> bytes:
    """Return the body of a chat completion."""
    return json.dumps(
        {
            "id": "x",
            "object": "chat.completion",
            "model": "model-2025-01-01",
            "system_fingerprint": "fp_1",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text},
                    "finish_reason": "stop",
                    **choice,
                }
            ],
            "usage": {
                "prompt_tokens": 12,
                "completion_tokens": 3,
                "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        }
    ).encode()


def message(*blocks: dict[str, Any], **fields: object) -> bytes:
    """Return the body of a message of the other API."""
    return json.dumps(
        {
            "type": "message",
            "role": "assistant",
            "model": "model-2025-01-01",
            "content": list(blocks) or [{"type": "text", "text": "fine"}],
            "stop_reason": "end_turn",
            "usage": {
                "input_tokens": 8,
                "cache_read_input_tokens": 4,
                "cache_creation_input_tokens": 0,
                "output_tokens": 3,
            },
            **fields,
        }
    ).encode()


def good(body: bytes | None = None, content_type: str | None = "application/json") -> Fault:
    said = completion() if body is None else body
    return lambda exchange: exchange.answer(said, content_type=content_type)


def status(code: int, error: object = None, **headers: str) -> Fault:
    body = json.dumps({"error": error or {"message": f"status {code}"}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.answer(body, status=code, headers=named)


def html(code: int) -> Fault:
    page = b"<html><title>Bad gateway</title></html>"
    return lambda exchange: exchange.answer(page, status=code, content_type="text/html")


def echo_key(code: int) -> Fault:
    """Refuse, and quote the caller's key."""

    async def fault(exchange: Exchange) -> None:
        key = exchange.headers.get("authorization") or exchange.headers["x-api-key"]
        said = {"error": {"message": f"bad key {key}", "type": key, "param": key}}
        await exchange.answer(json.dumps(said).encode(), status=code)

    return fault


async def hang(_: Exchange) -> None:
    await asyncio.Event().wait()


async def hang_in_body(exchange: Exchange) -> None:
    await exchange.answer(b"{", length=100)
    await asyncio.Event().wait()


async def drip(exchange: Exchange) -> None:
    await exchange.answer(b"{", length=1_000_000)
    while True:
        await asyncio.sleep(0.01)
        await exchange.send(b" ")


async def cut_off(exchange: Exchange) -> None:
    exchange.writer.close()


async def reset(exchange: Exchange) -> None:
    await exchange.answer(b'{"choices"', length=1000)
    exchange.writer.transport.abort()


async def reset_at_once(exchange: Exchange) -> None:
    """Send a TCP reset instead of an answer."""
    sock = exchange.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    exchange.writer.transport.abort()


async def half_a_refusal(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 1000\r\n\r\n{")
    exchange.writer.close()


async def half_a_body(exchange: Exchange) -> None:
    body = completion()
    await exchange.answer(body[: len(body) // 2], length=len(body))
    exchange.writer.close()


async def half_a_chunk(exchange: Exchange) -> None:
    await exchange.send(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'5\r\n{"cho\r\n'
    )
    exchange.writer.close()


async def no_http(exchange: Exchange) -> None:
    await exchange.send(b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
    exchange.writer.close()


async def zipped(exchange: Exchange) -> None:
    assert "gzip" in exchange.headers["accept-encoding"]
    await exchange.answer(gzip.compress(completion()), headers={"Content-Encoding": "gzip"})


async def badly_zipped(exchange: Exchange) -> None:
    await exchange.answer(b"not gzip", headers={"Content-Encoding": "gzip"})


async def zip_bomb(exchange: Exchange) -> None:
    packed = gzip.compress(b" " * 70_000_000, compresslevel=1)
    await exchange.answer(packed, headers={"Content-Encoding": "gzip"})


async def endless(exchange: Exchange) -> None:
    """Announce 70 MB and send them."""
    piece = b" " * 1_000_000
    await exchange.answer(piece, length=70_000_000)
    for _ in range(69):
        await exchange.send(piece)


def unless(names: set[str], refusal: Fault, otherwise: Fault) -> Fault:
    """Refuse a request that holds any of ``names``."""
    return lambda exchange: (refusal if names & set(exchange.body) else otherwise)(exchange)


async def _serve_by_hand(fault: Fault) -> None:
    async with Loopback(fault) as server:
        print(server.url, flush=True)  # noqa: T201
        await asyncio.Event().wait()


if __name__ == "__main__":
    chosen = globals()[sys.argv[1]] if len(sys.argv) > 1 else good()
    asyncio.run(_serve_by_hand(chosen))
