"""One HTTP client per endpoint; every way in which a call goes wrong becomes a kind of trouble."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import IO, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from jurybox.errors import InputError
from jurybox.models.proxies import Proxies
from jurybox.models.trouble import (
    LARGEST_REFUSAL,
    quoted,
    read_refusal,
    read_retry_after,
    status_trouble,
)
from jurybox.models.wire.address import Address, read_address
from jurybox.models.wire.connection import Reply
from jurybox.models.wire.dialing import Dialer, Limits
from jurybox.models.wire.faults import (
    BrokenOff,
    Insecure,
    NoConnectionInTime,
    NotHttp,
    ProxyRefused,
    Silent,
    TookTooLong,
    TooLarge,
    Unreachable,
    WireFault,
)
from jurybox.models.wire.pool import Pool
from jurybox.models.wire.requests import Requests, read_proxy
from jurybox.running.ports import ModelTrouble

T = TypeVar("T")

_MEGABYTE: Final = 1_000_000
_JSON: Final = "application/json"
_ALWAYS: Final = {"Accept": _JSON, "User-Agent": "jurybox"}
# The first status that isn't a success.
_FIRST_REFUSAL: Final = 300
# More than a store can hold.
_TOO_MANY: Final = 2**63


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Patience and limits of one client; times in seconds.

    Attributes:
        connect: until a connection stands.
        read: between two pieces of the answer, and until the first.
        total: for the whole exchange.
        largest_body: the most bytes of an answer, unpacked.
        largest_file: the same for one that goes into a file.
        proxies: what to go through; none unless told.

    """

    connect: float = 10.0
    read: float = 180.0
    total: float = 600.0
    largest_body: int = 32 * _MEGABYTE
    largest_file: int = 1000 * _MEGABYTE
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


class HttpCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call; the body of the answer goes into a file where there is one."""

    method: str = "GET"
    path: str
    body: bytes | None = None
    content_type: str = _JSON
    into: IO[bytes] | None = None


class HttpClient:
    """Talks to one address.

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
        parts, to = _read(base_url)
        proxy = read_proxy(self._options.proxies.to(to.scheme, to.host))
        self._way = (to, proxy)
        self._requests = Requests(to, proxy, {**_ALWAYS, **headers})
        self._secrets = (*secrets, parts.password or "", *to.secrets)
        if proxy is not None:
            self._secrets += proxy.secrets
        self._now = now
        self._today = today
        self._pool: tuple[asyncio.AbstractEventLoop, Pool] | None = None
        # Without the name and password that an address may carry.
        self.address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")

    async def post(self, path: str, payload: object) -> HttpAnswer:
        """Make one attempt to send JSON.

        Raises:
            StatusTrouble: the endpoint says no.
            ModelTrouble: the attempt came to nothing in another way.

        """
        started = self._now()
        try:
            # The request in no name of ours, so that nothing keeps it while its answer is awaited.
            reply = await self._open().exchange(
                self._requests.write("POST", path, encoded(payload), _JSON), self._options.total
            )
        except WireFault as fault:
            raise self._trouble(fault, self._options.largest_body) from None
        return self._answer(reply, started)

    async def send(self, call: HttpCall) -> HttpAnswer:
        """Make one attempt.

        Raises:
            StatusTrouble: the endpoint says no.
            ModelTrouble: the attempt came to nothing in another way.

        """
        started = self._now()
        request = self._requests.write(call.method, call.path, call.body, call.content_type)
        try:
            if call.into is None:
                reply = await self._open().exchange(request, self._options.total)
            else:
                reply = await self._fetch(request, call.into)
        except WireFault as fault:
            options = self._options
            largest = options.largest_body if call.into is None else options.largest_file
            raise self._trouble(fault, largest) from None
        return self._answer(reply, started)

    def _answer(self, reply: Reply, started: float) -> HttpAnswer:
        elapsed = (self._now() - started) * 1000
        answer = HttpAnswer(body=reply.body, headers=reply.headers, elapsed_ms=elapsed)
        if reply.status >= _FIRST_REFUSAL:
            raise self._refused(reply.status, answer)
        return answer

    async def aclose(self) -> None:
        """Let go of the connections; more than once is fine."""
        if self._pool is not None:
            loop, pool = self._pool
            self._pool = None
            # Those of a loop that is gone went with it.
            if loop is asyncio.get_running_loop():
                await pool.aclose()

    def _open(self) -> Pool:
        loop = asyncio.get_running_loop()
        if self._pool is None or self._pool[0] is not loop:
            options = self._options
            limits = Limits(
                connect=options.connect, read=options.read, largest_body=options.largest_body
            )
            self._pool = (loop, Pool(Dialer(*self._way, limits), loop))
        return self._pool[1]

    async def _fetch(self, request: bytes, into: IO[bytes]) -> Reply:
        options = self._options
        limits = Limits(
            connect=options.connect, read=options.read, largest_body=options.largest_file
        )
        # A connection of its own, which ends with the file.
        deadline = asyncio.get_running_loop().time() + options.total
        connection = await Dialer(*self._way, limits).dial(deadline)
        try:
            status, headers = await connection.begin(request, deadline)
            refusal = bytearray()
            while len(refusal) <= LARGEST_REFUSAL and (piece := await connection.read()):
                if status < _FIRST_REFUSAL:
                    into.write(piece)
                else:
                    # Short, and wanted in words.
                    refusal += piece
        finally:
            connection.abort()
        return Reply(status, headers, bytes(refusal))

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

    def _trouble(self, fault: WireFault, largest: int) -> ModelTrouble:  # noqa: PLR0911 - one for each kind
        options = self._options
        match fault:
            case NoConnectionInTime():
                what = f"no connection within {options.connect:g} s"
                return ModelTrouble("unreachable", what, retry=True, everybody=True)
            case Silent():
                what = f"timed out: nothing came for {options.read:g} s"
                return ModelTrouble("timeout", what, retry=True)
            case TookTooLong():
                what = f"timed out after {options.total:g} s"
                return ModelTrouble("timeout", what, retry=True)
            case Insecure():
                what = f"unreachable (no secure connection: {quoted(fault.reason, self._secrets)})"
                return ModelTrouble("unreachable", what, retry=False, everybody=fault.certificate)
            case ProxyRefused():
                what = f"the proxy answers HTTP {fault.status}"
                return ModelTrouble("refused", what, retry=False)
            case Unreachable():
                where = "the proxy: " if fault.proxied else ""
                what = f"unreachable ({where}{quoted(fault.reason, self._secrets)})"
                return ModelTrouble("unreachable", what, retry=True, everybody=True)
            case BrokenOff():
                what = "the answer broke off, or can't be unpacked"
                return ModelTrouble("unreadable", what, retry=True)
            case TooLarge():
                what = f"the answer is larger than {largest / _MEGABYTE:.0f} MB"
                return ModelTrouble("unreadable", what, retry=False)
            case NotHttp():
                what = f"the answer isn't HTTP ({quoted(fault.reason, self._secrets)})"
                return ModelTrouble("unreadable", what, retry=True)
            case _:
                # Cut. Whether the endpoint has read the request isn't known; the caller may ask
                # again, as it may after a time-out.
                what = "unreachable (the connection was cut)"
                return ModelTrouble("unreachable", what, retry=True)


def encoded(payload: object) -> bytes:
    """Return a payload as JSON.

    Raises:
        ModelTrouble: it can't be sent.

    """
    try:
        return msgspec.json.encode(payload)
    except UnicodeEncodeError:
        # A lone surrogate, from a file that was read with `surrogateescape`.
        what = "the request holds half a character, which can't be sent"
        raise ModelTrouble("refused", what, retry=False) from None


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
        return read_json(answer.body, kind)
    except (ValueError, RecursionError) as error:
        what = f"the answer can't be read: {quoted(str(error))}"
        raise ModelTrouble("unreadable", what, retry=True) from None


def count_of(value: object) -> int | None:
    """Return the number of tokens that an answer gives; None for anything else, such as `true`."""
    return value if type(value) is int and 0 <= value < _TOO_MANY else None


def read_json(body: bytes, kind: type[T]) -> T:
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


def _read(base_url: str) -> tuple[SplitResult, Address]:
    mend = "give one like `https://host/v1`"
    try:
        parts = urlsplit(base_url.strip())
        address = read_address(parts.geturl().rstrip("/"))
    except ValueError as error:
        # Not quoted: somebody may have put a key here by mistake.
        raise InputError(f"the base URL {error}", mend) from None
    if parts.query or parts.fragment:
        raise InputError("the base URL has a query or a fragment", mend)
    return parts, address


def secret_header(value: str, what: str) -> str:
    """Return a key that can stand in a header, without the newline that files end with.

    Raises:
        InputError: it can't; the message doesn't show it.

    """
    key = value.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"{what} has characters that no key has", "check what it was read from")
    return key
