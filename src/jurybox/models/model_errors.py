"""Classifies an endpoint's errors: whether and when to retry, and how to report them."""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

import msgspec
from ahocorasick_rs import BytesAhoCorasick

from jurybox.engine.ports import ModelError
from jurybox.judging.flow import FailureKind

LONGEST_QUOTE: Final = 300
# The maximum length of an error body to search; more would delay other requests.
LARGEST_REFUSAL: Final = 65_536
HIDDEN: Final = "[hidden]"

# Text that looks like a key is hidden even if it isn't ours, since an endpoint may echo another
# key.
_LOOKS_SECRET = re.compile(
    r"\b(?:sk|pk|key|xai|gsk)-[\w*.-]{6,}|(?<=Bearer )[^\s\"',;]+|(?<=://)[^/@\s]+@"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")
_SHORTEST_SECRET = 4
_PART: Final = 12

_RETRY: Final[Mapping[int, FailureKind]] = {
    408: "timeout",
    409: "unreachable",
    425: "unreachable",
    429: "rate-limit",
    504: "timeout",
    529: "rate-limit",  # Anthropic: overloaded
}
_HINTS: Final[Mapping[int, str]] = {
    401: "check the API key{origin}",
    403: "check what the API key{origin} may do",
    404: "check the address and the model's name",
}
# Statuses that refuse the key, the model or the account, not the content of the request.
_EVERYBODYS: Final = {401, 402, 403, 404}
_HTML: Final = "an HTML page"
# Some gateways refuse the content of a request with a 403, and firewalls with an HTML page.
_ABOUT_CONTENT = re.compile(rf"flagged|moderat|content|safety|{_HTML}", re.IGNORECASE)


# Matches all escapes in sequence, so that a `u` after an escaped backslash isn't read as an escape.
_ESCAPE = re.compile(rb"\\(?:u00([2-7][0-9a-fA-F])|.)", re.DOTALL)


def _plain(escape: re.Match[bytes]) -> bytes:
    """Decode a JSON escape, except escapes of quotes, backslashes and DEL."""
    char = bytes.fromhex(escape[1].decode()) if escape[1] else b""
    return escape[0] if char in b'"\\\x7f' else char


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The reason that an endpoint gave."""

    message: str = ""
    code: str = ""
    param: str = ""


class StatusError(ModelError):
    """An answer with a status that isn't a success."""

    status: int
    refusal: Refusal


class SecretMask:
    """Masks secrets, and their parts of at least 12 characters, in received data.

    Shorter keys aren't masked: replies may well contain `none` or `EMPTY`, the keys of many local
    servers.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        # JSON may also write a slash as `\/`.
        written = {form for each in secrets for form in (each, each.replace("/", "\\/"))}
        known = [each.encode() for each in written]
        parts = {each[at : at + _PART] for each in known for at in range(len(each) - _PART + 1)}
        self._finder = BytesAhoCorasick(parts) if parts else None

    def __call__(self, data: bytes) -> bytes:
        """Return the received text, with secrets replaced by `[hidden]`."""
        if self._finder is None:
            return data
        plain = _ESCAPE.sub(_plain, data) if b"\\u00" in data else data
        kept: list[bytes] = []
        end = 0
        for _, start, stop in self._finder.find_matches_as_indexes(plain, overlapping=True):
            if start >= end:
                kept += [plain[end:start], HIDDEN.encode()]
            end = max(end, stop)
        return b"".join([*kept, plain[end:]]) if kept else data

    def text(self, text: str) -> str:
        """Mask a text that was assembled or decoded from received data."""
        return self(text.encode()).decode("utf-8", "replace")


def redacted(text: str, secrets: Iterable[str]) -> str:
    """Return ``text`` without any secret."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, HIDDEN)
    return _LOOKS_SECRET.sub(HIDDEN, text)


def quoted(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the beginning of an endpoint's message: one line, printable, without secrets."""
    # Masked before it is shortened, because half a secret wouldn't be recognized.
    line = _CONTROL.sub(" ", redacted(text, secrets)).strip()
    return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}..."


def read_refusal(body: bytes, content_type: str, secrets: Iterable[str]) -> Refusal:
    """Find the reason in an error's body, in any of the usual formats."""
    text = body[:LARGEST_REFUSAL].decode("utf-8", "replace")
    found, secrets = _reason(text, content_type), tuple(secrets)
    # Masked at once, so that no secret gets into an exception.
    hidden = {name: redacted(getattr(found, name), secrets) for name in Refusal.__struct_fields__}
    if len(body) > LARGEST_REFUSAL and found.message == text:
        # Half a secret isn't recognized; if a secret was cut in two, its first half is at the end.
        half = max((LONGEST_QUOTE, *map(len, secrets)))
        hidden["message"] = hidden["message"][:-half]
    return Refusal(**hidden)


def _reason(text: str, content_type: str) -> Refusal:
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        html = "html" in content_type or text.lstrip().startswith("<")
        return Refusal(message=_HTML if html else text)
    match data:
        case {"error": {"message": str(message)} as error}:
            code = error.get("code") or error.get("type") or ""
            return Refusal(message=message, code=str(code), param=str(error.get("param") or ""))
        case {"error": str(message)} | {"message": str(message)} | {"detail": str(message)}:
            return Refusal(message=message)
        case _:
            return Refusal(message=text)


def status_error(
    status: int,
    refusal: Refusal,
    *,
    retry_after: float | None = None,
    key_variable: str | None = None,
) -> StatusError:
    """Classify an HTTP status that isn't a success."""
    words = quoted(refusal.message)
    message = f"HTTP {status}: {words}" if words else f"HTTP {status}"
    kind = _RETRY.get(status) or ("unreachable" if status >= 500 else "refused")  # noqa: PLR2004
    # An exhausted quota lasts until the bill is paid, although the status is 429.
    spent = refusal.code == "insufficient_quota"
    retry = kind != "refused" and not spent
    if not retry and kind == "rate-limit":
        kind, message = "refused", f"{message}; check the plan and its billing"
    if kind == "refused" and status in _HINTS:
        origin = "" if key_variable is None else f" in {key_variable}"
        message = f"{message}; {_HINTS[status].format(origin=origin)}"
    error = StatusError(
        kind,
        message,
        retry=retry,
        retry_after=retry_after if retry else None,
        fatal=spent or _is_fatal(status, refusal),
    )
    error.status, error.refusal = status, refusal
    return error


def _is_fatal(status: int, refusal: Refusal) -> bool:
    """Return whether the key or the model was refused, not the content of this request."""
    about_content = _ABOUT_CONTENT.search(f"{refusal.code} {refusal.message}")
    return status in _EVERYBODYS and not (status == HTTPStatus.FORBIDDEN and about_content)


def read_retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the wait that an endpoint asks for, in seconds, from a number or date (RFC 9110)."""
    milliseconds = measured(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = measured(text)
    if seconds is not None:
        return seconds
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - now).total_seconds())


def measured(text: str | None) -> float | None:
    """Return the number in a header; None if it isn't a finite number of at least 0."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
