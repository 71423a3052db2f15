"""One HTTP client per endpoint, using wreq; every error becomes a `ModelError`."""

import contextlib
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import msgspec
import wreq
from wreq import exceptions

from jurybox.engine.ports import ModelError
from jurybox.errors import InputError
from jurybox.models import model_errors
from jurybox.models.connections import Endpoint, HttpOptions
from jurybox.settings import SSL_CERT_FILE

T = TypeVar("T")

_MEGABYTE: Final = 1_000_000
_JSON: Final = "application/json"
# The headers that are read; providers send thirty.
_HEADERS: Final = (
    *("content-type", "location", "openai-processing-ms", "retry-after", "retry-after-ms"),
)
_FIRST_FINAL, _FIRST_REFUSAL, _FIRST_ERROR = 200, 300, 400
# Bytes per second. The read timeout starts with the request, so large requests get more time.
_SLOWEST_UPLOAD: Final = 100_000
# More than a store can keep.
_TOO_MANY: Final = 2**63

_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
_ABOUT_TRUST: Final = (
    "the certificate is for another host, has expired, or is from an untrusted authority; "
    f"{SSL_CERT_FILE} can name a file of other authorities"
)
# Patterns for the texts of wreq's errors, since its exceptions have no fields.
_TLS_REASON: Final = re.compile(r'library: "SSL routines".*?reason: "(\w+)"')
_SYSTEM_REASON: Final = re.compile(r'(?:message|error): "(?:failed to lookup .*?: )?([^"]+)"')
_PARSE_REASON: Final = re.compile(r"Parse\((\w+)")
# Not "kind: ConnectionReset", which means that the connection was established.
_CONNECT_ERROR: Final = re.compile(r"kind: (?:Proxy)?Connect\b")
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


class HttpAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, and the time from sending the request to the answer's last byte.

    ``headers`` has only those in `_HEADERS`.
    """

    body: bytes
    headers: dict[str, str]
    elapsed_ms: float

    @property
    def content_type(self) -> str:
        """The content type in lower case."""
        return self.headers.get("content-type", "").lower()


class HttpCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call; ``largest`` replaces the client's maximum size of an answer."""

    method: str = "GET"
    path: str
    body: bytes | None = None
    content_type: str = _JSON
    largest: int | None = None


class HttpClient:
    """Calls one address; the event loop may change between calls.

    Secrets in ``headers`` are sent with every request and appear nowhere else.
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
        self._endpoint = Endpoint(base_url, {"Accept": _JSON, **headers}, self._options)
        self._secrets = (*secrets, *self._endpoint.secrets)
        self.mask = model_errors.SecretMask(self._secrets)
        self._today = today
        self._client: wreq.Client | None = None

    @property
    def address(self) -> str:
        """The base URL without the user name and password that it may contain."""
        return self._endpoint.address

    def post(self, path: str, payload: object) -> Awaitable[HttpAnswer]:
        """Make one attempt to send JSON."""
        return self.send(HttpCall(method="POST", path=path, body=encoded(payload)))

    async def send(self, call: HttpCall) -> HttpAnswer:
        """Make one attempt; cancelling it closes its connection at once."""
        started = time.monotonic()
        body: list[memoryview] = []
        try:
            async with self._request(call) as response:
                status = response.status.as_int()
                if status >= _FIRST_REFUSAL:
                    # The status is sufficient, even if the body is incomplete.
                    with contextlib.suppress(*_ERRORS):
                        await _read(response, model_errors.LARGEST_REFUSAL, body)
                else:
                    largest = call.largest or self._options.largest_body
                    if await _read(response, largest, body) > largest:
                        # Much larger than expected, so it is treated as unreadable.
                        what = f"the answer is larger than {largest / _MEGABYTE:.0f} MB"
                        retry = call.largest is None  # a file of results won't shrink
                        raise ModelError("unreadable", what, retry=retry, fatal=True)
        except _ERRORS as error:
            raise self._model_error(error, time.monotonic() - started) from None
        headers = response.headers
        answer = HttpAnswer(
            body=self.mask(b"".join(body)),
            headers={
                name: str(self.mask(bytes(value)), "utf-8", "replace")
                for name in _HEADERS
                if (value := headers[name]) is not None
            },
            elapsed_ms=(time.monotonic() - started) * 1000,
        )
        if not _FIRST_FINAL <= status < _FIRST_REFUSAL:
            raise self._refused(status, answer)
        return answer

    async def aclose(self) -> None:
        """Close idle connections; calls in flight end as usual, and the next call reconnects."""
        self._client = None

    def _request(self, call: HttpCall) -> AbstractAsyncContextManager[wreq.Response]:
        if self._client is None:
            self._client = self._endpoint.connect()
        size = len(call.body or b"")
        request: wreq.Request = {
            "read_timeout": timedelta(seconds=self._options.read + size / _SLOWEST_UPLOAD)
        }
        if call.body is not None:
            request["body"] = call.body
            request["headers"] = {"Content-Type": call.content_type}
        method: wreq.Method = getattr(wreq.Method, call.method)
        return self._client.request(method, f"{self._endpoint.url}{call.path}", **request)

    def _refused(self, status: int, answer: HttpAnswer) -> ModelError:
        if status < _FIRST_FINAL:
            what = f"HTTP {status} isn't an answer"
            return ModelError("unreadable", what, retry=True, fatal=True)
        if status < _FIRST_ERROR:
            to = model_errors.quoted(
                answer.headers.get("location", "somewhere else"), self._secrets
            )
            return ModelError(
                "refused",
                f"HTTP {status}: it redirects to {to}; give that address as the base URL",
                retry=True,
                fatal=True,
            )
        return model_errors.status_error(
            status,
            model_errors.read_refusal(answer.body, answer.content_type, self._secrets),
            retry_after=model_errors.read_retry_after(answer.headers, self._today()),
            key_variable=self._options.key_variable,
        )

    def _model_error(self, error: Exception, elapsed: float) -> ModelError:
        """Translate an error of wreq to a `ModelError` without secrets."""
        # Drops the address, which may contain a password and comes before the source.
        text = str(error).partition("source: ")[2]
        if "TimedOut" in text:
            return self._timeout(text, elapsed)
        if found := _TLS_REASON.search(text):
            return _insecure(found[1])
        if found := _PARSE_REASON.search(text):
            what = f"the answer isn't HTTP ({found[1]})"
            return ModelError("unreadable", what, retry=True, fatal=True)
        if _CONNECT_ERROR.search(text):
            return _unreachable(text)
        if isinstance(error, exceptions.BodyError | exceptions.DecodingError):
            what = "the answer is incomplete, or can't be decompressed"
            return ModelError("unreadable", what, retry=True)
        # The endpoint may have read the request; the caller may repeat it as after a timeout.
        return ModelError("unreachable", "unreachable (the connection was lost)", retry=True)

    def _timeout(self, text: str, elapsed: float) -> ModelError:
        options = self._options
        if elapsed >= options.total:
            return ModelError("timeout", f"timed out after {options.total:g} s", retry=True)
        if _CONNECT_ERROR.search(text):
            what = f"no connection within {options.connect:g} s"
            return ModelError("unreachable", what, retry=True, fatal=True)
        what = f"timed out: no data for {options.read:g} s"
        return ModelError("timeout", what, retry=True)


async def _read(response: wreq.Response, largest: int, body: list[memoryview]) -> int:
    """Add the pieces of a body, up to a maximum; return their size."""
    size = response.content_length
    if size is not None and size <= largest:
        body.append(await response.bytes())
        return size
    size = 0
    async with response.stream() as stream:
        async for piece in stream:
            # A body may be followed by headers.
            if not isinstance(piece, wreq.HeaderMap):
                body.append(piece)
                size += len(piece)
                if size > largest:
                    break
    return size


def _insecure(reason: str) -> ModelError:
    untrusted = reason == _UNTRUSTED
    words = _ABOUT_TRUST if untrusted else reason.lower().replace("_", " ")
    what = f"unreachable (no secure connection: {words})"
    return ModelError("unreachable", what, retry=not untrusted, fatal=True)


def _unreachable(text: str) -> ModelError:
    proxied = "kind: ProxyConnect" in text
    if "ProxyAuthRequired" in text:
        return ModelError("refused", "the proxy answers HTTP 407", retry=False, fatal=True)
    if "TunnelUnsuccessful" in text:
        what = "unreachable (the proxy refuses to connect)"
        return ModelError("unreachable", what, retry=True, fatal=True)
    found = _SYSTEM_REASON.search(text)
    reason = found[1].lower() if found else "the connection was lost"
    what = f"unreachable ({'the proxy: ' if proxied else ''}{reason})"
    return ModelError("unreachable", what, retry=True, fatal=True)


def encoded(payload: object) -> bytes:
    """Return a payload as JSON."""
    try:
        return msgspec.json.encode(payload)
    except UnicodeEncodeError:
        # A lone surrogate, from a file that was read with `surrogateescape`.
        what = "the request contains half a character (a lone surrogate), which can't be sent"
        raise ModelError("refused", what, retry=False) from None


def decode(answer: HttpAnswer, kind: type[T]) -> T:
    """Read the JSON of an answer."""
    if not answer.body.strip():
        raise ModelError("unreadable", "the answer is empty", retry=True)
    if "html" in answer.content_type:
        what = f"the answer is {answer.content_type} instead of JSON"
        raise ModelError("unreadable", model_errors.quoted(what), retry=True, fatal=True)
    return decode_body(answer.body, kind)


def decode_body(body: bytes, kind: type[T]) -> T:
    """Read the JSON of a body."""
    try:
        return read_json(body, kind)
    except (ValueError, RecursionError) as error:
        what = f"the answer can't be read: {model_errors.quoted(str(error))}"
        raise ModelError("unreadable", what, retry=True, fatal=True) from None


def count_of(value: object) -> int | None:
    """Return a token count from an answer; None for anything else, such as `true`."""
    return value if type(value) is int and 0 <= value < _TOO_MANY else None


def read_json(body: bytes, kind: type[T]) -> T:
    r"""Read JSON, even with lone surrogates such as ``\ud83d``, which msgspec refuses.

    Models that are cut off within an emoji send them; the text before them is worth keeping.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if b"\\u" not in body:
            raise
    # Decoded as UTF-8: `json` would also accept UTF-16, but secrets are masked only in UTF-8.
    data = json.loads(body.decode("utf-8", "surrogatepass"))
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return msgspec.json.decode(whole, type=kind)


def secret_header(value: str, what: str) -> str:
    """Return a key for use in a header, without a final newline."""
    key = value.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"{what} has invalid characters", "check the variable it was read from")
    return key
