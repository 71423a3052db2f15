"""From the name of a host to a socket that is connected."""

import asyncio
import itertools
import os
import socket
from typing import Final

from jurybox.models.wire.faults import Unreachable

# Long enough for a burst of connections, short enough to follow a host that moves.
KEPT: Final = 10.0
# How long an address is waited for before the next is tried beside it (RFC 8305).
_HEAD_START: Final = 0.25

Info = tuple[socket.AddressFamily, tuple[object, ...]]
_Attempt = asyncio.Task[socket.socket]


class Names:
    """What names stand for; many who ask at once are one question."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], tuple[float, asyncio.Future[list[Info]]]] = {}

    async def look_up(self, host: str, port: int) -> list[Info]:
        """Return the addresses of a host, the best first.

        Raises:
            OSError: it has none.

        """
        loop = asyncio.get_running_loop()
        asked, future = self._known.get((host, port), (0.0, None))
        if future is None or (future.done() and loop.time() - asked > KEPT):
            future = loop.run_in_executor(None, _look_up, host, port)
            future.add_done_callback(_retrieve)
            self._known[host, port] = (loop.time(), future)
        try:
            # Shielded: others may wait for the same, and a thread can't be stopped anyway.
            return await asyncio.shield(future)
        except OSError:
            self.forget(host, port)
            raise

    def forget(self, host: str, port: int) -> None:
        """Ask again the next time."""
        self._known.pop((host, port), None)


def _look_up(host: str, port: int) -> list[Info]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return _interleaved([(family, address) for family, _, _, _, address in found])


def _interleaved(infos: list[Info]) -> list[Info]:
    """Alternate between families, so that one that leads nowhere is not tried to its end."""
    first = [info for info in infos if info[0] == infos[0][0]]
    others = [info for info in infos if info[0] != infos[0][0]]
    pairs = itertools.zip_longest(first, others)
    return [info for pair in pairs for info in pair if info is not None]


def _retrieve(future: asyncio.Future[list[Info]]) -> None:
    """Keep the loop from complaining of an answer that nobody waits for any more."""
    if not future.cancelled():
        future.exception()


async def reach(names: Names, host: str, port: int) -> socket.socket:
    """Connect.

    Raises:
        Unreachable: none of its addresses answers.

    """
    try:
        infos = await _infos(names, host, port)
    except OSError as error:
        raise Unreachable(reason(error)) from None
    except UnicodeError:
        raise Unreachable("no host has such a name") from None
    try:
        return await (_connect(infos[0]) if len(infos) == 1 else _race(infos))
    except OSError as error:
        names.forget(host, port)
        raise Unreachable(reason(error)) from None


async def _infos(names: Names, host: str, port: int) -> list[Info]:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return [(family, (host, port))]
    return await names.look_up(host, port)


async def _connect(info: Info) -> socket.socket:
    family, address = info
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.settimeout(0)
        await asyncio.get_running_loop().sock_connect(made, address)
    except BaseException:
        made.close()
        raise
    return made


async def _race(infos: list[Info]) -> socket.socket:
    """Try one address after the other, each with a head start; the first that stands wins."""
    waiting, started = list(infos), set[_Attempt]()
    running = set[_Attempt]()
    won: _Attempt | None = None
    first_error: OSError | None = None
    try:
        while waiting or running:
            if waiting:
                attempt = asyncio.create_task(_connect(waiting.pop(0)))
                started.add(attempt)
                running.add(attempt)
            done, running = await asyncio.wait(
                running,
                timeout=_HEAD_START if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            for task in done:
                error = task.exception()
                if error is None:
                    won = task
                    return task.result()
                if not isinstance(error, OSError):
                    raise error
                first_error = first_error or error
    finally:
        await _withdraw(started, won)
    raise first_error or OSError("no address")


async def _withdraw(started: set[_Attempt], won: _Attempt | None) -> None:
    """End all attempts but one, and that one too if whoever wanted it gives up meanwhile."""
    others = [task for task in started if task is not won]
    for task in others:
        task.cancel()
        # Not left to whoever waits below, who may be cancelled.
        task.add_done_callback(_close)
    ending = [task for task in others if not task.done()]
    try:
        if ending:
            await asyncio.wait(ending)
    except BaseException:
        if won is not None:
            won.result().close()
        raise


def _close(task: _Attempt) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def reason(error: OSError) -> str:
    """Return the system's words for what went wrong, without any address in them."""
    number = error.errno or 0
    # Failed look-ups have numbers below zero and words of their own.
    words = os.strerror(number) if number > 0 else error.strerror
    return (words or type(error).__name__).lower()
