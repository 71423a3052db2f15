"""One HTTP client per endpoint, and every way in which a call can go wrong as one kind of trouble.

aiohttp stands behind this module and nowhere else. It is imported on the first call, because that
takes a third of a second.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from jurybox.errors import InputError
from jurybox.models.proxies import Proxies
from jurybox.models.trouble import (
    quoted,
    read_refusal,
    read_retry_after,
    redacted,
    status_trouble,
)
from jurybox.running.ports import ModelTrouble

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

_MEGABYTE: Final = 1_000_000
# More than a store can hold.
_TOO_MANY: Final = 2**63


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Patience and limits of one client; times in seconds.

    Attributes:
        connect: until a connection stands.
        read: between two pieces of the answer, and until the first.
        total: for the whole exchange.
        largest_body: the most bytes of an answer, unpacked.
        proxies: what to go through; none unless told.

    """

    connect: float = 10.0
    read: float = 180.0
    total: float = 600.0
    largest_body: int = 32 * _MEGABYTE
    proxies: Proxies = Proxies()


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A successful answer, and how long it took from sending to its last byte.

    The names of ``headers`` are in lower case.
    """

    body: bytes
    headers: dict[str, str]
    elapsed_ms: float

    @property
    def content_type(self) -> str:
        """What the endpoint says that it sent, in lower case."""
        return self.headers.get("content-type", "").lower()


class HttpClient:
    """Posts JSON to one address.

    The secrets among ``headers`` go out with every request and appear nowhere else.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        secrets: tuple[str, ...] = (),
        options: HttpOptions | None = None,
        now: Callable[[], float] = time.monotonic,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._options = options or HttpOptions()
        parts = _parts(base_url)
        self._url = parts.geturl().rstrip("/")
        self._proxy = self._options.proxies.to(parts.scheme, parts.hostname or "")
        self._headers = {"Accept": "application/json", "User-Agent": "jurybox", **headers}
        self._secrets = (*secrets, parts.password or "")
        self._now = now
        self._today = today
        self._session: tuple[asyncio.AbstractEventLoop, aiohttp.ClientSession] | None = None
        # Without the name and password that an address may carry.
        self.address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")

    async def post(self, path: str, payload: object) -> HttpAnswer:
        """Make one attempt.

        Raises:
            StatusTrouble: the endpoint says no.
            ModelTrouble: the attempt came to nothing in another way.

        """
        try:
            body = msgspec.json.encode(payload)
        except UnicodeEncodeError:
            # A lone surrogate, from a file that was read with `surrogateescape`.
            what = "the request holds half a character, which can't be sent"
            raise ModelTrouble("refused", what, retry=False) from None
        headers = {**self._headers, "Content-Type": "application/json"}
        # Nothing of the original error is kept: it may hold the address with a password in it.
        async with self._translated():
            session = await self._open()
            started = self._now()
            async with session.post(
                self._url + path,
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                content = await self._read(response)
                elapsed = (self._now() - started) * 1000
        headers = {name.lower(): value for name, value in response.headers.items()}
        answer = HttpAnswer(body=content, headers=headers, elapsed_ms=elapsed)
        if response.status >= 300:  # noqa: PLR2004 - the first status that isn't a success
            raise self._refused(response.status, answer)
        return answer

    async def aclose(self) -> None:
        """Let go of the connections; more than once is fine."""
        if self._session is not None:
            loop, session = self._session
            self._session = None
            # Those of a loop that is gone went with it.
            if loop is asyncio.get_running_loop():
                await session.close()

    async def _open(self) -> "aiohttp.ClientSession":
        loop = asyncio.get_running_loop()
        if self._session is None or self._session[0] is not loop:
            import aiohttp

            options = self._options
            self._session = (
                loop,
                aiohttp.ClientSession(
                    # How many at once is the caller's to say, who knows more.
                    connector=aiohttp.TCPConnector(limit=0),
                    cookie_jar=aiohttp.DummyCookieJar(),
                    timeout=aiohttp.ClientTimeout(
                        total=options.total, sock_connect=options.connect, sock_read=options.read
                    ),
                    trust_env=False,
                ),
            )
        return self._session[1]

    async def _read(self, response: "aiohttp.ClientResponse") -> bytes:
        largest = self._options.largest_body
        pieces: list[bytes] = []
        size = 0
        # Counted as it comes: what an answer announces may be untrue, and a packed one grows.
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > largest:
                response.close()
                raise ModelTrouble(
                    "unreadable",
                    f"the answer is larger than {largest / _MEGABYTE:.0f} MB",
                    retry=False,
                )
            pieces.append(piece)
        return b"".join(pieces)

    def _refused(self, status: int, answer: HttpAnswer) -> ModelTrouble:
        if status < 400:  # noqa: PLR2004 - a redirection
            to = quoted(answer.headers.get("location", "somewhere else"), self._secrets)
            return ModelTrouble(
                "refused",
                f"HTTP {status}: it redirects to {to}; give that address as the base URL",
                retry=False,
                everybody=True,
            )
        return status_trouble(
            status,
            read_refusal(answer.body, answer.content_type, self._secrets),
            retry_after=read_retry_after(answer.headers, self._today()),
        )

    @asynccontextmanager
    async def _translated(self) -> AsyncGenerator[None]:
        import aiohttp

        options = self._options
        try:
            yield
        except aiohttp.ConnectionTimeoutError:
            what = f"no connection within {options.connect:g} s"
            raise ModelTrouble("unreachable", what, retry=True, everybody=True) from None
        except aiohttp.SocketTimeoutError:
            what = f"timed out: nothing came for {options.read:g} s"
            raise ModelTrouble("timeout", what, retry=True) from None
        except TimeoutError:
            what = f"timed out after {options.total:g} s"
            raise ModelTrouble("timeout", what, retry=True) from None
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            what = f"unreachable (no secure connection: {quoted(str(error), self._secrets)})"
            certificate = isinstance(error, aiohttp.ClientConnectorCertificateError)
            raise ModelTrouble("unreachable", what, retry=False, everybody=certificate) from None
        except aiohttp.ClientHttpProxyError as error:
            what = f"the proxy answers HTTP {error.status}"
            raise ModelTrouble("refused", what, retry=False) from None
        except aiohttp.ClientConnectorError as error:
            proxied = isinstance(error, aiohttp.ClientProxyConnectionError)
            where = "the proxy: " if proxied else ""
            what = f"unreachable ({where}{self._reason(error.os_error)})"
            raise ModelTrouble("unreachable", what, retry=True, everybody=True) from None
        except aiohttp.ClientPayloadError:
            what = "the answer broke off, or can't be unpacked"
            raise ModelTrouble("unreadable", what, retry=True) from None
        except (aiohttp.ServerDisconnectedError, OSError):
            what = "unreachable (the connection was cut)"
            raise ModelTrouble("unreachable", what, retry=True) from None
        except aiohttp.ClientError as error:
            what = f"the answer isn't HTTP ({type(error).__name__})"
            raise ModelTrouble("unreadable", what, retry=True) from None

    def _reason(self, error: OSError) -> str:
        # Where a name has several addresses there are several errors, told in one text.
        number = error.errno or int((re.findall(r"\[Errno (\d+)\]", str(error)) or [0])[0])
        reason = os.strerror(number) if number > 0 else error.strerror or type(error).__name__
        return redacted(reason, self._secrets).lower()


def decode(answer: HttpAnswer, kind: type[T]) -> T:
    """Read the JSON of an answer.

    Raises:
        ModelTrouble: it isn't JSON, or not of this kind.

    """
    if not answer.body.strip():
        raise ModelTrouble("unreadable", "the answer is empty", retry=True)
    if "html" in answer.content_type:
        what = f"the answer is {answer.content_type} instead of JSON"
        raise ModelTrouble("unreadable", quoted(what), retry=True)
    try:
        return _read_json(answer.body, kind)
    except (ValueError, RecursionError) as error:
        what = f"the answer can't be read: {quoted(str(error))}"
        raise ModelTrouble("unreadable", what, retry=True) from None


def count_of(value: object) -> int | None:
    """Return the number of tokens that an answer gives; None for anything else, such as `true`."""
    return value if type(value) is int and 0 <= value < _TOO_MANY else None


def _read_json(body: bytes, kind: type[T]) -> T:
    r"""Read JSON, even where msgspec refuses half a character, such as ``\ud83d`` alone.

    Models that are cut off in the middle of an emoji send it; the text before it is worth keeping.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\u" not in body:
            raise
    text = json.dumps(json.loads(body), ensure_ascii=False, allow_nan=False)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return msgspec.json.decode(whole, type=kind)


def _parts(base_url: str) -> SplitResult:
    mend = "give one like `https://host/v1`"
    try:
        parts = urlsplit(base_url.strip())
        _ = parts.port
    except ValueError:
        raise InputError("the base URL can't be read", mend) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        # Not quoted: somebody may have put a key here by mistake.
        raise InputError("the base URL isn't an http address", mend)
    if parts.query or parts.fragment:
        raise InputError("the base URL has a query or a fragment", mend)
    return parts


def secret_header(value: str, what: str) -> str:
    """Return a key that can stand in a header, without the newline that files end with.

    Raises:
        InputError: it can't; the message doesn't show it.

    """
    key = value.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"{what} has characters that no key has", "check what it was read from")
    return key
