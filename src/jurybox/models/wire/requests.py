"""The bytes of requests to one address; most of them are the same each time."""

from collections.abc import Mapping
from typing import Final

from jurybox.errors import InputError
from jurybox.models.wire.address import Address, read_address
from jurybox.models.wire.unpacking import OFFERED

_MOST_HEADS: Final = 100


class Requests:
    """Writes requests; through a proxy they name the whole address, unless it is led through."""

    def __init__(self, to: Address, proxy: Address | None, headers: Mapping[str, str]) -> None:
        fields = {"Host": to.host_header, **headers}
        named = {name.lower() for name in fields}
        if to.authorization is not None and "authorization" not in named:
            fields["Authorization"] = to.authorization
        self._origin = ""
        if proxy is not None and not to.is_secure:
            self._origin = f"http://{to.host_header}"
            if proxy.authorization is not None:
                fields["Proxy-Authorization"] = proxy.authorization
        self._to = to
        self._fields = "".join(f"{name}: {_checked(value)}\r\n" for name, value in fields.items())
        self._heads: dict[tuple[str, str, str], bytes] = {}

    def write(self, method: str, path: str, body: bytes | None, kind: str) -> bytes:
        """Return a request to a path below the address; ``kind`` is what the body is made of."""
        head = self._heads.get((method, path, kind))
        if head is None:
            head = self._head(method, path, None if body is None else kind)
            # Paths with the names of things in them are many, and asked for once.
            if len(self._heads) < _MOST_HEADS:
                self._heads[method, path, kind] = head
        return head + b"\r\n" if body is None else b"%b%d\r\n\r\n%b" % (head, len(body), body)

    def get(self) -> bytes:
        """Return a request for what is at the address."""
        line = f"GET {self._origin}{self._to.target} HTTP/1.1\r\n"
        return f"{line}{self._fields}\r\n".encode("latin-1")

    def _head(self, method: str, path: str, kind: str | None) -> bytes:
        line = f"{method} {self._origin}{self._to.path}{path} HTTP/1.1\r\n"
        fields = f"{self._fields}Accept-Encoding: {OFFERED}\r\n"
        if kind is not None:
            fields += f"Content-Type: {_checked(kind)}\r\nContent-Length: "
        return f"{line}{fields}".encode("latin-1")


def read_proxy(url: str | None) -> Address | None:
    """Take the address of a proxy apart; without a scheme it is spoken to in plain HTTP.

    Raises:
        InputError: it isn't one; the message doesn't quote it.

    """
    if url is None:
        return None
    try:
        return read_address(url if "://" in url else f"http://{url}")
    except ValueError as error:
        mend = "give one like `http://host:3128`, or none"
        raise InputError(f"the proxy's address {error}", mend) from None


def _checked(value: str) -> str:
    """See that a value stays one header; `latin-1` is what goes over the wire."""
    if not value.isprintable():
        raise InputError("a header holds a control character", "check what it was read from")
    return value.encode("utf-8").decode("latin-1")
