"""Certificates for this machine, proxies that lead to it, and a server that speaks HTTP/2."""

import asyncio
import shutil
import ssl
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Self

import pytest


def certificate(*names: str) -> Path:
    """Make a certificate that nobody else trusts; its key is in the same file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl isn't installed")
    path = Path("certificate.pem").absolute()
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
    whose = ("-subj", "/CN=test", "-addext", f"subjectAltName={','.join(names)}")
    files = ("-keyout", path, "-out", "public.pem")
    made = [openssl, "req", "-x509", *kind, *whose, *files]
    subprocess.run(made, check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path("public.pem").read_bytes())
    return path


def serving(path: Path) -> ssl.SSLContext:
    """Return what a server with that certificate needs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


async def serve_http2(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request with `{}`: as much of HTTP/2 as that takes (RFC 9113)."""
    settings, data, headers, ended = 4, 0, 1, 1
    try:
        await reader.readexactly(len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
        writer.write(b"\0\0\0\4\0\0\0\0\0")
        while True:
            head = await reader.readexactly(9)
            kind, flags, stream = head[3], head[4], head[5:]
            await reader.readexactly(int.from_bytes(head[:3], "big"))
            if kind == settings and not flags:
                writer.write(b"\0\0\0\4\1\0\0\0\0")
            if kind in {data, headers} and flags & ended:
                # `:status: 200` is the eighth of the names that both sides know.
                writer.write(b"\0\0\1\1\4" + stream + b"\x88" + b"\0\0\2\0\1" + stream + b"{}")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.transport.abort()


class Tunnel:
    """A proxy that leads every CONNECT to one port, or refuses with a status."""

    def __init__(
        self,
        port: int,
        *,
        wants: str | None = None,
        answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n",
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._to = port
        self._wants = wants
        self._answer = answer
        self._context = context
        self.scheme = "http" if context is None else "https"
        self.heads: list[str] = []
        self._running: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._context)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._lead(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _agree(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        wanted = "Basic " + b64encode((self._wants or "").encode()).decode()
        if self._wants is not None and f"Proxy-Authorization: {wanted}\r\n" not in head:
            writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno")
            return False
        writer.write(self._answer)
        return True

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not await self._agree(reader, writer):
                return
            inner, outer = await asyncio.open_connection("127.0.0.1", self._to)
            try:
                await asyncio.gather(_pipe(reader, outer), _pipe(inner, writer))
            finally:
                outer.transport.abort()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class Socks(Tunnel):
    """The same by SOCKS 5 (RFC 1928); ``heads`` holds the names it was asked for."""

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.scheme = "socks5h"
        return self

    async def _agree(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        _, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\5\2" if self._wants else b"\5\0")
        if self._wants:
            await reader.readexactly(1)
            given = [await self._text(reader), await self._text(reader)]
            writer.write(b"\1\0" if ":".join(given) == self._wants else b"\1\1")
        await reader.readexactly(4)
        self.heads.append(await self._text(reader))
        await reader.readexactly(2)
        writer.write(b"\5\0\0\1\0\0\0\0\0\0")
        return True

    async def _text(self, reader: asyncio.StreamReader) -> str:
        return (await reader.readexactly((await reader.readexactly(1))[0])).decode()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    writer.close()
