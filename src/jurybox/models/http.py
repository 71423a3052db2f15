"""One HTTP client per endpoint, by wreq; every error of a call becomes a `ModelTrouble`."""

import functools
import ipaddress
import json
import re
import ssl
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import IO, Final, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
import wreq
from wreq import exceptions, redirect

from jurybox.errors import InputError
from jurybox.models.trouble import (
    LARGEST_REFUSAL,
    quoted,
    read_refusal,
    read_retry_after,
    status_trouble,
)
from jurybox.running.ports import ModelTrouble
from jurybox.settings import REQUESTS_CA_BUNDLE, SSL_CERT_FILE

T = TypeVar("T")
_Take = Callable[[memoryview], object]

_MEGABYTE: Final = 1_000_000
_JSON: Final = "application/json"
_PORTS: Final = {"http": 80, "https": 443}
_PROXY_SCHEMES: Final = {"http", "https", "socks4", "socks4a", "socks5", "socks5h"}
_FIRST_FINAL, _FIRST_REFUSAL, _FIRST_ERROR = 200, 300, 400
# Servers close idle connections after 5 s to some minutes; closing first loses no request.
_LONGEST_IDLE: Final = timedelta(seconds=15)
# Bytes per second. The read timeout begins with the request, so a large one gets more time.
_SLOWEST_UPLOAD: Final = 100_000
# More than a store can hold.
_TOO_MANY: Final = 2**63

_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"
_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
_ABOUT_TRUST: Final = (
    "the certificate is for another host, expired, or of an authority that isn't trusted; "
    f"{SSL_CERT_FILE} can name another"
)
# In the texts of wreq's errors; its exceptions have no fields.
_TLS_REASON: Final = re.compile(r'library: "SSL routines".*?reason: "(\w+)"')
_SYSTEM_REASON: Final = re.compile(r'(?:message|error): "(?:failed to lookup .*?: )?([^"]+)"')
_PARSE_REASON: Final = re.compile(r"Parse\((\w+)")
_ERRORS: Final = (
    exceptions.BodyError,
    exceptions.ConnectionError,
    exceptions.ConnectionResetError,
    exceptions.DecodingError,
    exceptions.ProxyConnectionError,
    exceptions.RequestError,
    exceptions.TimeoutError,
    exceptions.TlsError,
    exceptions.UpgradeError,
)


class Proxies(msgspec.Struct, frozen=True, kw_only=True):
    """Proxies by the scheme of the endpoint, and the hosts that are reached without one."""

    http: str | None = None
    https: str | None = None
    direct: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Proxies":
        """Read the usual variables; lower case wins over upper case."""

        def value(name: str) -> str | None:
            return environment.get(name) or environment.get(name.upper()) or None

        others = value("all_proxy")
        return cls(
            http=value("http_proxy") or others,
            https=value("https_proxy") or others,
            direct=tuple(part.strip() for part in (value("no_proxy") or "").split(",")),
        )

    def to(self, scheme: str, host: str, port: int) -> str | None:
        """Return the proxy for an endpoint; this machine is always reached directly."""
        if _is_loopback(host) or any(_covers(entry, host, port) for entry in self.direct):
            return None
        return self.https if scheme == "https" else self.http

    def __repr__(self) -> str:
        """Hide addresses, which may carry a password."""
        return f"Proxies(http={bool(self.http)}, https={bool(self.https)})"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _covers(entry: str, host: str, port: int) -> bool:
    """Tell whether an entry of NO_PROXY names a host: `name`, `.name`, `name:port`, an IP range."""
    if entry == "*":
        return True
    name, colon, digits = entry.lower().rpartition(":")
    if colon and digits.isdecimal() and (":" not in name or name.endswith("]")):
        if int(digits) != port:
            return False
    else:
        name = entry.lower()
    name = name.strip("[]").removeprefix("*").lstrip(".")
    if not name:
        return False
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(name, strict=False)
    except ValueError:
        return host == name or host.endswith(f".{name}")


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """What secure connections are made with, as PEM.

    Attributes:
        authorities: whose certificates are trusted, in place of the system's.
        certificate: of this client, for endpoints that ask for one.
        key: of that certificate (PKCS #8).

    """

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None

    def __repr__(self) -> str:
        """Hide the key."""
        return "Tls(...)"


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts in seconds, limits and connections of one client.

    Attributes:
        connect: until there is a connection.
        read: between two pieces of the answer, and until the first.
        total: for the whole call.
        largest_body: the most bytes of an answer, decompressed.
        largest_file: the same for one that goes into a file.
        proxies: none by default.
        tls: certificates; those of the system by default.

    """

    connect: float = 10.0
    read: float = 180.0
    total: float = 600.0
    largest_body: int = 32 * _MEGABYTE
    largest_file: int = 1000 * _MEGABYTE
    proxies: Proxies = Proxies()
    tls: Tls = Tls()


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A successful answer, and the time from sending to its last byte.

    The names of ``headers`` are in lower case.
    """

    body: bytes
    headers: dict[str, str]
    elapsed_ms: float

    @property
    def content_type(self) -> str:
        """The content type in lower case."""
        return self.headers.get("content-type", "").lower()


class HttpCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call; with ``into``, the body of the answer is written to that file."""

    method: str = "GET"
    path: str
    body: bytes | None = None
    content_type: str = _JSON
    into: IO[bytes] | None = None


class HttpClient:
    """Calls one address; the event loop may change between calls.

    The secrets among ``headers`` go out with every request and appear nowhere else.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        secrets: tuple[str, ...] = (),
        options: HttpOptions | None = None,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._options = options or HttpOptions()
        parts = _read_address(base_url)
        port = parts.port or _PORTS[parts.scheme]
        named = self._options.proxies.to(parts.scheme, parts.hostname or "", port)
        proxy = None if named is None else _read_proxy(named)
        self._url = parts.geturl()
        self._settings = _settings(parts, proxy, headers, self._options)
        self._secrets = (*secrets, *_passwords(parts), *(_passwords(proxy) if proxy else ()))
        self._today = today
        self._client: wreq.Client | None = None
        # Without the name and password that an address may carry.
        self.address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    async def post(self, path: str, payload: object) -> HttpAnswer:
        """Make one attempt to send JSON.

        Raises:
            StatusTrouble: the endpoint refuses.
            ModelTrouble: the attempt failed in another way.

        """
        return await self.send(HttpCall(method="POST", path=path, body=encoded(payload)))

    async def send(self, call: HttpCall) -> HttpAnswer:
        """Make one attempt; cancelling it closes its connection at once.

        Raises:
            StatusTrouble: the endpoint refuses.
            ModelTrouble: the attempt failed in another way.

        """
        started = time.monotonic()
        body: list[memoryview] = []
        try:
            async with self._request(call) as response:
                status = response.status.as_int()
                if status >= _FIRST_REFUSAL:
                    await _read(response, LARGEST_REFUSAL, body.append)
                elif call.into is None:
                    await self._read_all(response, self._options.largest_body, body.append)
                else:
                    await self._read_all(response, self._options.largest_file, call.into.write)
        except _ERRORS as error:
            raise self._trouble(error, time.monotonic() - started) from None
        answer = HttpAnswer(
            body=b"".join(body),
            headers={str(n, "latin-1"): str(v, "utf-8", "replace") for n, v in response.headers},
            elapsed_ms=(time.monotonic() - started) * 1000,
        )
        if not _FIRST_FINAL <= status < _FIRST_REFUSAL:
            raise self._refused(status, answer)
        return answer

    async def aclose(self) -> None:
        """Close idle connections; calls in flight end as usual, and the next one reconnects."""
        self._client = None

    def _request(self, call: HttpCall) -> AbstractAsyncContextManager[wreq.Response]:
        if self._client is None:
            # One thread moves the bytes; the default would be one per core.
            runtime = wreq.Runtime(workers=1)
            self._client = wreq.Client(**{**self._settings, "runtime": runtime})
        size = len(call.body or b"")
        request: wreq.Request = {
            "read_timeout": timedelta(seconds=self._options.read + size / _SLOWEST_UPLOAD)
        }
        if call.body is not None:
            request["body"] = call.body
            request["headers"] = {"Content-Type": call.content_type}
        method: wreq.Method = getattr(wreq.Method, call.method)
        return self._client.request(method, f"{self._url}{call.path}", **request)

    async def _read_all(self, response: wreq.Response, largest: int, take: _Take) -> None:
        if await _read(response, largest, take) > largest:
            what = f"the answer is larger than {largest / _MEGABYTE:.0f} MB"
            raise ModelTrouble("unreadable", what, retry=False)

    def _refused(self, status: int, answer: HttpAnswer) -> ModelTrouble:
        if status < _FIRST_FINAL:
            return ModelTrouble("unreadable", f"HTTP {status} isn't an answer", retry=True)
        if status < _FIRST_ERROR:
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

    def _trouble(self, error: Exception, elapsed: float) -> ModelTrouble:
        """Return what an error of wreq means; nothing in its text is secret."""
        # What precedes the source of an error is its address.
        text = str(error).partition("source: ")[2]
        if "TimedOut" in text:
            return self._timeout(text, elapsed)
        if found := _TLS_REASON.search(text):
            return _insecure(found[1])
        if found := _PARSE_REASON.search(text):
            what = f"the answer isn't HTTP ({found[1]})"
            return ModelTrouble("unreadable", what, retry=True)
        if "kind: ProxyConnect" in text or "kind: Connect" in text:
            return _unreachable(text)
        if isinstance(error, exceptions.BodyError | exceptions.DecodingError):
            what = "the answer is incomplete, or can't be decompressed"
            return ModelTrouble("unreadable", what, retry=True)
        # The endpoint may have read the request; the caller may repeat it, as after a timeout.
        return ModelTrouble("unreachable", "unreachable (the connection was lost)", retry=True)

    def _timeout(self, text: str, elapsed: float) -> ModelTrouble:
        options = self._options
        if elapsed >= options.total:
            return ModelTrouble("timeout", f"timed out after {options.total:g} s", retry=True)
        if "kind: ProxyConnect" in text or "kind: Connect" in text:
            what = f"no connection within {options.connect:g} s"
            return ModelTrouble("unreachable", what, retry=True, everybody=True)
        what = f"timed out: nothing came for {options.read:g} s"
        return ModelTrouble("timeout", what, retry=True)


async def _read(response: wreq.Response, largest: int, take: _Take) -> int:
    """Give the pieces of a body to ``take`` until there are too many; return their size."""
    size = 0
    async with response.stream() as stream:
        async for piece in stream:
            # A body may be followed by headers.
            if not isinstance(piece, wreq.HeaderMap):
                take(piece)
                size += len(piece)
                if size > largest:
                    break
    return size


def _insecure(reason: str) -> ModelTrouble:
    untrusted = reason == _UNTRUSTED
    words = _ABOUT_TRUST if untrusted else reason.lower().replace("_", " ")
    what = f"unreachable (no secure connection: {words})"
    return ModelTrouble("unreachable", what, retry=False, everybody=untrusted)


def _unreachable(text: str) -> ModelTrouble:
    proxied = "kind: ProxyConnect" in text
    if "ProxyAuthRequired" in text:
        return ModelTrouble("refused", "the proxy answers HTTP 407", retry=False)
    if "TunnelUnsuccessful" in text:
        return ModelTrouble("refused", "the proxy refuses to connect", retry=False)
    found = _SYSTEM_REASON.search(text)
    reason = found[1].lower() if found else "the connection was lost"
    what = f"unreachable ({'the proxy: ' if proxied else ''}{reason})"
    return ModelTrouble("unreachable", what, retry=True, everybody=True)


def _settings(
    address: SplitResult,
    proxy: SplitResult | None,
    headers: Mapping[str, str],
    options: HttpOptions,
) -> "wreq.ClientConfig":
    settings: wreq.ClientConfig = {
        "user_agent": "jurybox",
        "headers": _checked({"Accept": _JSON, **headers}),
        "redirect": redirect.Policy.none(),
        "dns_options": wreq.DnsOptions(system_dns=True),
        # Half of the world sends it without the head that the standard wants (RFC 9110).
        "deflate": False,
        "pool_idle_timeout": _LONGEST_IDLE,
        "connect_timeout": timedelta(seconds=options.connect),
        "timeout": timedelta(seconds=options.total),
        # An endpoint that takes nothing of a request; Linux closes the connection.
        "tcp_user_timeout": timedelta(seconds=options.read),
    }
    if proxy is None:
        # Otherwise wreq would look for one in the environment.
        settings["no_proxy"] = True
    else:
        settings["proxies"] = [wreq.Proxy.all(proxy.geturl())]
    if address.scheme == "https" or (proxy is not None and proxy.scheme == "https"):
        settings["tls_verify"] = _trusted(options.tls)
        if options.tls.certificate is not None:
            settings["tls_identity"] = _identity(options.tls)
    return settings


def _checked(headers: Mapping[str, str]) -> wreq.HeaderMap:
    try:
        return wreq.HeaderMap(headers)
    except (RuntimeError, UnicodeEncodeError):
        hint = "check what it was read from"
        raise InputError("a header holds a control character", hint) from None


def _trusted(tls: Tls) -> wreq.CertStore:
    if tls.authorities is None:
        return _system_authorities()
    try:
        # wreq would go on with a file that has none, and trust nothing.
        if _CERTIFICATE in tls.authorities:
            return wreq.CertStore.from_pem_stack(tls.authorities)
    except exceptions.TlsError:
        pass
    hint = f"name a file of PEM certificates in {SSL_CERT_FILE} or {REQUESTS_CA_BUNDLE}"
    raise InputError("the certificates to trust can't be read", hint)


@functools.cache
def _system_authorities() -> wreq.CertStore:
    """Return what Python trusts, and what is in OpenSSL's folder, which Python doesn't list."""
    trusted = ssl.create_default_context().get_ca_certs(binary_form=True)
    return wreq.CertStore(der_certs=trusted, default_paths=True)


def _identity(tls: Tls) -> wreq.Identity:
    try:
        return wreq.Identity.from_pkcs8_pem(tls.certificate or b"", tls.key or b"")
    except (exceptions.BuilderError, exceptions.TlsError):
        hint = "give PEM, the key as PKCS #8 without a password (`openssl pkcs8 -topk8 -nocrypt`)"
        raise InputError("the client's certificate or its key can't be read", hint) from None


def _read_address(url: str) -> SplitResult:
    """Read a base URL; no message quotes it, for it may hold a key."""
    hint = "give one like `https://host/v1`"
    parts = _split(url, "the base URL", hint)
    if parts.scheme not in _PORTS:
        raise InputError("the base URL isn't an http address", hint)
    if parts.query or parts.fragment:
        raise InputError("the base URL has a query or a fragment", hint)
    return parts


def _read_proxy(url: str) -> SplitResult:
    """Read the address of a proxy; without a scheme it is an http one."""
    hint = "give one like `http://host:3128` or `socks5h://host:1080`, or none"
    parts = _split(url if "://" in url else f"http://{url}", "the proxy's address", hint)
    if parts.scheme not in _PROXY_SCHEMES:
        raise InputError("the proxy's address isn't an http or socks address", hint)
    return parts


def _split(url: str, what: str, hint: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip().rstrip("/"))
        host = parts.hostname if parts.port != 0 else None
    except ValueError:
        raise InputError(f"{what} can't be read", hint) from None
    if not host or not host.isprintable() or " " in host:
        raise InputError(f"{what} names no host", hint)
    return parts


def _passwords(parts: SplitResult) -> tuple[str, ...]:
    """Return what must not be shown of an address: the password, and both as they are sent."""
    if parts.username is None:
        return ()
    password = unquote(parts.password or "")
    token = b64encode(f"{unquote(parts.username)}:{password}".encode()).decode()
    return (parts.password or "", password, token)


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


def secret_header(value: str, what: str) -> str:
    """Return a key that can stand in a header, without the newline that files end with.

    Raises:
        InputError: it can't; the message doesn't show it.

    """
    key = value.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"{what} has characters that no key has", "check what it was read from")
    return key
