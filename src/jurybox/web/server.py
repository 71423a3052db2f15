"""Starts and stops the server of the pages."""

import asyncio
import contextlib
import errno
import ipaddress
import secrets
import socket
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from fastapi import FastAPI
from hypercorn.asyncio import serve as _answer  # pyright: ignore[reportUnknownVariableType]
from hypercorn.config import Config

from jurybox.errors import InputError
from jurybox.settings import TOKEN

_BACKLOG: Final = 128
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
_SHORTEST: Final = 16
_MAX_HEAD: Final = 32_768
IDLE_SECONDS: Final = 10.0
"""How long a connection may take to send the headers of its next request."""
_GOODBYE_SECONDS: Final = 1.0


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def known_names(host: str, more: Iterable[str]) -> tuple[frozenset[str], bool]:
    """Return the allowed host names, and whether any IP address is allowed too."""
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
        InputError: the token is too short.

    """
    if given is None:
        return secrets.token_urlsafe(32)
    if len(given) < _SHORTEST:
        raise InputError(f"it has fewer than {_SHORTEST} characters", "choose a longer one", TOKEN)
    return given


def open_port(host: str, port: int) -> socket.socket:
    """Open a port at an address.

    Raises:
        InputError: another program uses it, or it isn't available.

    """
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        problem = f"no such address ({(error.strerror or str(error)).lower()})"
        raise InputError(problem, "check --host", host) from None
    try:
        return socket.create_server(found[4], family=found[0], backlog=_BACKLOG)
    except OSError as error:
        problem = f"can't be used ({(error.strerror or str(error)).lower()})"
        if error.errno == errno.EADDRINUSE:
            problem = "another program uses it"
        hint = "choose another, or port 0 for a free one"
        raise InputError(problem, hint, f"{host}:{port}") from None


def address_of(port: socket.socket) -> str:
    """Return the address to open in a browser."""
    host, number = port.getsockname()[:2]
    return f"http://[{host}]:{number}/" if ":" in host else f"http://{host}:{number}/"


def _allow_connections() -> None:
    """Raise the limit of open connections to the system's maximum."""
    if sys.platform == "win32":
        return
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # If it is unlimited, or the system refuses, the limit stays unchanged.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def serve(
    app: FastAPI, port: socket.socket, ready: Callable[[], object], stopped: asyncio.Event
) -> None:
    """Report that the server is ready, and serve until it is stopped."""
    _allow_connections()
    ready()
    config = Config()
    config.bind = [f"fd://{port.detach()}"]
    # The log messages of hypercorn may contain parts of a request.
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = _MAX_HEAD
    config.keep_alive_timeout = IDLE_SECONDS
    config.graceful_timeout = _GOODBYE_SECONDS
    serving = asyncio.ensure_future(
        _answer(cast("Any", app), config, shutdown_trigger=stopped.wait, mode="asgi")
    )
    ending = asyncio.ensure_future(stopped.wait())
    await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
    # Pages that take longer are cancelled.
    await asyncio.wait([serving], timeout=2 * _GOODBYE_SECONDS)
    ending.cancel()
    if serving.done():
        serving.result()
