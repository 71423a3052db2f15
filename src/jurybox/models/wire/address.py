"""Where a request goes, as the parts of an address that are needed for it."""

from base64 import b64encode
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urlsplit

import msgspec

_PORTS: Final = {"http": 80, "https": 443}
# All that may stand in a path as it is (RFC 3986), and what is escaped already.
_SAFE: Final = "/%:@!$&'()*+,;=~"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """An http address, taken apart."""

    scheme: str
    host: str
    port: int
    path: str
    query: str
    user: str | None
    password: str | None

    @property
    def is_secure(self) -> bool:
        """Whether TLS is spoken there."""
        return self.scheme == "https"

    @property
    def netloc(self) -> str:
        """The host and its port as CONNECT names them."""
        return f"{self._bracketed}:{self.port}"

    @property
    def host_header(self) -> str:
        """The host and its port, if that isn't the usual one."""
        return self._bracketed if self.port == _PORTS[self.scheme] else self.netloc

    @property
    def target(self) -> str:
        """The path and the query."""
        return f"{self.path or '/'}{'?' if self.query else ''}{self.query}"

    @property
    def authorization(self) -> str | None:
        """What a name and a password in the address become as a header (RFC 7617)."""
        if self.user is None:
            return None
        pair = f"{self.user}:{self.password or ''}"
        return f"Basic {b64encode(pair.encode('utf-8', 'replace')).decode()}"

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be shown."""
        token = (self.authorization or "").removeprefix("Basic ")
        return (self.password or "", token)

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def __repr__(self) -> str:
        """Hide the rest, which may be secret."""
        return f"Address({self.scheme}, {self.host_header})"


def read_address(url: str) -> Address:
    """Take an address apart.

    Raises:
        ValueError: it isn't an http address; the message doesn't quote it.

    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
        host = _host(parts)
    except ValueError:
        raise ValueError("can't be read") from None
    if parts.scheme not in _PORTS or not host:
        raise ValueError("isn't an http address")
    return Address(
        scheme=parts.scheme,
        host=host,
        port=_PORTS[parts.scheme] if port is None else port,
        path=quote(parts.path, safe=_SAFE, errors="replace"),
        query=quote(parts.query, safe=f"{_SAFE}?", errors="replace"),
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
    )


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    # A name in other letters goes out as the ASCII that stands for it.
    host = host if host.isascii() else host.encode("idna").decode()
    if any(character.isspace() or not character.isprintable() for character in host):
        raise ValueError
    return host
