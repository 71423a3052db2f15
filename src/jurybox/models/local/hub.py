"""Pulling a model's file from the hub, from where the last attempt ended."""

import asyncio
import re
from typing import Final
from urllib.parse import quote

import msgspec

from jurybox.errors import InputError
from jurybox.models.local.catalogue import Hub
from jurybox.models.local.partial import Partial
from jurybox.models.local.source import Progress, Report, SourceTrouble
from jurybox.models.proxies import Proxies
from jurybox.models.wire.address import Address, read_address
from jurybox.models.wire.dialing import Limits
from jurybox.models.wire.faults import (
    Insecure,
    NoConnectionInTime,
    NotHttp,
    ProxyRefused,
    Silent,
    Unreachable,
    WireFault,
)
from jurybox.models.wire.streaming import Stream, streaming
from jurybox.settings import HF_ENDPOINT

URL: Final = "https://huggingface.co"
_WHOLE, _PIECE = 200, 206
_TOO_MANY: Final = 429
_SERVER: Final = 500
# A connection that is cut is taken up again, as long as every one of them brings something.
_MOST_BARREN: Final = 3
_MOST_ATTEMPTS: Final = 100
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class HubOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the hub is, how to get there, and how long to wait, in seconds."""

    url: str = URL
    proxies: Proxies = Proxies()
    connect: float = 10.0
    read: float = 60.0
    pause: float = 1.0


class _Again(Exception):  # noqa: N818 - it says what to do
    """Something that may go better the next time."""


def fetch(partial: Partial, source: Hub, options: HubOptions, report: Report) -> None:
    """Get what is missing of a file.

    Raises:
        SourceTrouble: the hub can't be reached, doesn't have the file, or has another one.
        InputError: its address can't be used.
        IncompleteError: there is no room for the file.

    """
    address = _address(options.url)
    asyncio.run(_Fetching(partial, source, options, report, address).run())


class _Fetching:
    def __init__(
        self,
        partial: Partial,
        source: Hub,
        options: HubOptions,
        report: Report,
        address: Address,
    ) -> None:
        self._partial = partial
        self._options = options
        self._report = report
        self._host = address.host
        path = quote(f"{source.repository}/resolve/main/{source.file}")
        self._url = f"{options.url.strip().rstrip('/')}/{path}"
        self._has_begun = False

    async def run(self) -> None:
        barren = 0
        for _ in range(_MOST_ATTEMPTS):
            before = self._partial.size
            try:
                await self._attempt()
            except _Again as error:
                barren = 0 if self._partial.size > before else barren + 1
                if barren == _MOST_BARREN:
                    raise SourceTrouble(str(error)) from None
                await asyncio.sleep(self._options.pause)
                continue
            if self._partial.is_whole:
                return
        raise SourceTrouble("the connection is cut again and again")

    async def _attempt(self) -> None:
        options = self._options
        headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "jurybox"}
        if self._partial.size:
            headers["Range"] = f"bytes={self._partial.size}-"
        limits = Limits(connect=options.connect, read=options.read, largest_body=None)
        try:
            async with streaming(
                self._url, headers, proxies=options.proxies, limits=limits
            ) as stream:
                await self._take(stream)
        except WireFault as fault:
            raise self._meaning(fault) from None

    def _meaning(self, fault: WireFault) -> Exception:  # noqa: PLR0911 - one for each kind
        match fault:
            case NoConnectionInTime():
                return self._unreachable(f"no connection within {self._options.connect:g} s")
            case ProxyRefused():
                return self._unreachable(f"the proxy answers HTTP {fault.status}")
            case Unreachable():
                return self._unreachable(f"{'the proxy: ' * fault.proxied}{fault.reason}")
            case Insecure():
                return self._unreachable(f"no secure connection: {fault.reason}")
            case Silent():
                return _Again(f"nothing came for {self._options.read:g} s")
            case NotHttp():
                return SourceTrouble(f"its answer can't be read ({fault.reason})")
            case _:
                return _Again("the connection was cut")

    def _unreachable(self, why: str) -> Exception:
        """Give up at once where nothing was heard yet: there is another source to try."""
        text = f"unreachable ({why})"
        return _Again(text) if self._has_begun else SourceTrouble(text)

    async def _take(self, stream: Stream) -> None:
        begin = self._begin(stream)
        self._has_begun = True
        partial, total = self._partial, self._partial.entry.bytes
        # A server that knows nothing of ranges sends again what is there already.
        skipped = partial.size - begin
        while piece := await stream.read():
            passed = min(skipped, len(piece))
            skipped -= passed
            if partial.size + len(piece) - passed > total:
                raise SourceTrouble("it sends more bytes than the model has")
            partial.append(piece[passed:])
            self._report(Progress(source=self._host, done=partial.size, total=total))
        if not partial.is_whole:
            raise _Again("the connection was cut")

    def _begin(self, stream: Stream) -> int:
        """Return at which byte of the file an answer begins."""
        status = stream.status
        if status == _TOO_MANY or status >= _SERVER:
            raise _Again(f"HTTP {status}")
        if status not in {_WHOLE, _PIECE}:
            raise SourceTrouble(f"HTTP {status}")
        begin, size = 0, stream.headers.get("content-length", "*")
        if status == _PIECE:
            found = _RANGE.fullmatch(stream.headers.get("content-range", ""))
            if found is None or int(found[1]) > self._partial.size:
                raise SourceTrouble("it sends another piece than it was asked for")
            begin, size = int(found[1]), found[2]
        if size.isdecimal() and int(size) != self._partial.entry.bytes:
            wanted = f"{self._partial.entry.bytes:,}"
            raise SourceTrouble(f"its file has {int(size):,} bytes instead of {wanted}")
        return begin


def host_of(options: HubOptions) -> str:
    """Return the name of the hub's machine; the rest of an address may hold a secret.

    Raises:
        InputError: the address can't be used.

    """
    return _address(options.url).host


def _address(url: str) -> Address:
    mend = f"give one like `{URL}`"
    try:
        return read_address(url)
    except ValueError as error:
        # Not quoted: somebody may have put a token here by mistake.
        raise InputError(f"the value {error}", mend, HF_ENDPOINT) from None
