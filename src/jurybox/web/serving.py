"""From a store to pages on an address, and to their end."""

import asyncio
import errno
import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable, Iterable
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from jurybox.errors import InputError
from jurybox.settings import TOKEN
from jurybox.web.connections import Connection

_BACKLOG: Final = 128
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_SHORTEST: Final = 16
# Enough for any browser; who wants more is none.
_LARGEST_HEAD: Final = 32_768
_IDLE: Final = 20
_GOODBYE: Final = 1


def is_loopback(host: str) -> bool:
    """Say whether an address can be reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def known_names(host: str, more: Iterable[str]) -> tuple[frozenset[str], bool]:
    """Return the names under which the server may be asked, and whether any address is one too."""
    plain = host.strip("[]").lower()
    name = f"[{plain}]" if ":" in plain else plain
    try:
        every = ipaddress.ip_address(plain).is_unspecified
    except ValueError:
        every = False
    return _LOOPBACK | {name, *(each.lower() for each in more)}, every


def choose_token(given: str | None) -> str:
    """Return the token that is set, or a new one.

    Raises:
        InputError: the one that is set is easily guessed.

    """
    if given is None:
        return secrets.token_urlsafe(32)
    if len(given) < _SHORTEST:
        raise InputError(f"it has less than {_SHORTEST} characters", "choose a longer one", TOKEN)
    return given


def open_port(host: str, port: int) -> socket.socket:
    """Take a port of an address.

    Raises:
        InputError: another program has it, or it can't be had.

    """
    where = f"{host}:{port}"
    mend = "choose another, or port 0 for a free one"
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        problem = f"no such address ({(error.strerror or str(error)).lower()})"
        raise InputError(problem, "check --host", host) from None
    family, kind, protocol, _, address = found[0]
    taken = socket.socket(family, kind, protocol)
    try:
        # Connections of a server that has just ended don't keep the next one from starting.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(_BACKLOG)
        taken.setblocking(False)  # noqa: FBT003 - Python names it so
    except OSError as error:
        taken.close()
        if error.errno == errno.EADDRINUSE:
            raise InputError("another program uses it", mend, where) from None
        problem = f"can't be used ({(error.strerror or str(error)).lower()})"
        raise InputError(problem, mend, where) from None
    return taken


def address_of(port: socket.socket) -> str:
    """Return the address that is typed into a browser."""
    host, number = port.getsockname()[:2]
    return f"http://[{host}]:{number}/" if ":" in host else f"http://{host}:{number}/"


async def serve(
    app: ASGIApp, port: socket.socket, ready: Callable[[], object], stopped: asyncio.Event
) -> None:
    """Say that it is ready, and answer until it is to stop."""
    server = uvicorn.Server(_config(app))
    # Not `serve`, which takes the signals for itself.
    serving = asyncio.ensure_future(server._serve([port]))  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    ending = asyncio.ensure_future(stopped.wait())
    try:
        while not server.started and not serving.done():  # noqa: ASYNC110 - it has no event for it
            await asyncio.sleep(0.01)
        if server.started:
            ready()
        await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        await serving
    finally:
        ending.cancel()
        port.close()


def _config(app: ASGIApp) -> uvicorn.Config:
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logging.getLogger(name).disabled = True  # what it notes may hold parts of a request
    return uvicorn.Config(
        app,
        http=Connection,  # with a limit on what comes before the body, and on how long it takes
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_LARGEST_HEAD,
        timeout_keep_alive=_IDLE,
        timeout_graceful_shutdown=_GOODBYE,
    )
