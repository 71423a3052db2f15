"""Getting something large, piece by piece, from wherever it was moved to."""

import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urljoin

import msgspec

from jurybox.models.proxies import Proxies
from jurybox.models.wire.address import Address, read_address
from jurybox.models.wire.connection import Connection
from jurybox.models.wire.dialing import Dialer, Limits
from jurybox.models.wire.faults import NotHttp
from jurybox.models.wire.requests import Requests, read_proxy

_MOVED: Final = {301, 302, 303, 307, 308}
_MOST_MOVES: Final = 10


class Stream:
    """An answer whose body is still to come; the names of ``headers`` are in lower case."""

    def __init__(self, status: int, headers: Mapping[str, str], connection: Connection) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection

    async def read(self) -> bytes:
        """Return the next bytes; none at the end.

        Raises:
            WireFault: it broke off.

        """
        return await self._connection.read()


@asynccontextmanager
async def streaming(
    url: str, headers: Mapping[str, str], *, proxies: Proxies, limits: Limits
) -> AsyncGenerator[Stream]:
    """Ask for what is at an address, on a connection of its own that ends with the block.

    A name and a password in the address go to its host alone, not to where that sends on.

    Raises:
        WireFault: it came to nothing.
        InputError: the proxy's address can't be used.

    """
    address = read_address(url)
    for _ in range(_MOST_MOVES):
        proxy = read_proxy(proxies.to(address.scheme, address.host))
        connection = await Dialer(address, proxy, limits).dial(math.inf)
        try:
            request = Requests(address, proxy, headers).get()
            status, found = await connection.begin(request, math.inf)
            if status not in _MOVED or "location" not in found:
                yield Stream(status, found, connection)
                return
        finally:
            connection.abort()
        url, address = _moved(url, address, found["location"])
    raise NotHttp("it sends on without end")


def _moved(url: str, before: Address, location: str) -> tuple[str, Address]:
    try:
        url = urljoin(url, location)
        address = read_address(url)
    except ValueError:
        raise NotHttp("it sends on to no http address") from None
    here = (before.scheme, before.host, before.port)
    if address.user is None and (address.scheme, address.host, address.port) == here:
        address = msgspec.structs.replace(address, user=before.user, password=before.password)
    return url, address
