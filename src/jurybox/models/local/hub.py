"""Pulling a model's file from the hub, from where the last attempt ended."""

import asyncio
import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from jurybox.errors import InputError
from jurybox.models.local.catalogue import Hub
from jurybox.models.local.partial import Partial
from jurybox.models.local.source import Progress, Report, SourceTrouble
from jurybox.models.proxies import Proxies
from jurybox.settings import HF_ENDPOINT

if TYPE_CHECKING:
    import aiohttp

URL: Final = "https://huggingface.co"
_CHUNK: Final = 1 << 20
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
    parts = _parts(options.url)
    asyncio.run(_Fetching(partial, source, options, report, parts).run())


class _Fetching:
    def __init__(
        self,
        partial: Partial,
        source: Hub,
        options: HubOptions,
        report: Report,
        parts: SplitResult,
    ) -> None:
        self._partial = partial
        self._options = options
        self._report = report
        self._host = parts.hostname or ""
        self._proxy = options.proxies.to(parts.scheme, self._host)
        path = quote(f"{source.repository}/resolve/main/{source.file}")
        self._url = f"{options.url.rstrip('/')}/{path}"
        self._has_begun = False

    async def run(self) -> None:
        import aiohttp

        options = self._options
        limits = aiohttp.ClientTimeout(
            total=None,
            connect=options.connect,
            sock_connect=options.connect,
            sock_read=options.read,
        )
        barren = 0
        async with aiohttp.ClientSession(
            timeout=limits,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        ) as session:
            for _ in range(_MOST_ATTEMPTS):
                before = self._partial.size
                try:
                    await self._attempt(session)
                except _Again as error:
                    barren = 0 if self._partial.size > before else barren + 1
                    if barren == _MOST_BARREN:
                        raise SourceTrouble(str(error)) from None
                    await asyncio.sleep(options.pause)
                    continue
                if self._partial.is_whole:
                    return
        raise SourceTrouble("the connection is cut again and again")

    async def _attempt(self, session: "aiohttp.ClientSession") -> None:
        import aiohttp

        try:
            headers = {"Accept-Encoding": "identity", "User-Agent": "jurybox"}
            if self._partial.size:
                headers["Range"] = f"bytes={self._partial.size}-"
            async with session.get(self._url, headers=headers, proxy=self._proxy) as response:
                await self._take(response)
        except aiohttp.ConnectionTimeoutError:
            raise self._unreachable(f"no connection within {self._options.connect:g} s") from None
        except (aiohttp.SocketTimeoutError, TimeoutError):
            raise _Again(f"nothing came for {self._options.read:g} s") from None
        except aiohttp.ClientHttpProxyError as error:
            raise self._unreachable(f"the proxy answers HTTP {error.status}") from None
        except aiohttp.ClientProxyConnectionError as error:
            raise self._unreachable(f"the proxy: {_reason(error.os_error)}") from None
        except aiohttp.ClientConnectorError as error:
            raise self._unreachable(_reason(error.os_error)) from None
        except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, OSError):
            raise _Again("the connection was cut") from None
        except aiohttp.ClientError as error:
            raise SourceTrouble(f"its answer can't be read ({type(error).__name__})") from None

    def _unreachable(self, why: str) -> Exception:
        """Give up at once where nothing was heard yet: there is another source to try."""
        text = f"unreachable ({why})"
        return _Again(text) if self._has_begun else SourceTrouble(text)

    async def _take(self, response: "aiohttp.ClientResponse") -> None:
        begin = self._begin(response)
        self._has_begun = True
        partial, total = self._partial, self._partial.entry.bytes
        # A server that knows nothing of ranges sends again what is there already.
        skipped = partial.size - begin
        async for piece in response.content.iter_chunked(_CHUNK):
            passed = min(skipped, len(piece))
            skipped -= passed
            if partial.size + len(piece) - passed > total:
                raise SourceTrouble("it sends more bytes than the model has")
            partial.append(piece[passed:])
            self._report(Progress(source=self._host, done=partial.size, total=total))
        if not partial.is_whole:
            raise _Again("the connection was cut")

    def _begin(self, response: "aiohttp.ClientResponse") -> int:
        """Return at which byte of the file an answer begins."""
        status = response.status
        if status == _TOO_MANY or status >= _SERVER:
            raise _Again(f"HTTP {status}")
        if status not in {_WHOLE, _PIECE}:
            raise SourceTrouble(f"HTTP {status}")
        begin, size = 0, response.headers.get("Content-Length", "*")
        if status == _PIECE:
            found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
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
    return _parts(options.url).hostname or ""


def _parts(url: str) -> SplitResult:
    mend = f"give one like `{URL}`"
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:
        raise InputError("the address can't be read", mend, HF_ENDPOINT) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        # Not quoted: somebody may have put a token here by mistake.
        raise InputError("that is no http address", mend, HF_ENDPOINT)
    return parts


def _reason(error: OSError) -> str:
    # Where a name has several addresses there are several errors, told in one text.
    number = error.errno or int((re.findall(r"\[Errno (\d+)\]", str(error)) or [0])[0])
    reason = os.strerror(number) if number > 0 else error.strerror or type(error).__name__
    return reason.lower()
