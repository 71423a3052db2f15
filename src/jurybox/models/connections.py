"""Connection settings of endpoints: timeouts, proxies, certificates and passwords in addresses."""

import functools
import ipaddress
import re
import ssl
from base64 import b64encode
from collections.abc import Mapping
from datetime import timedelta
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
import wreq
from wreq import exceptions, redirect

from jurybox.errors import InputError
from jurybox.settings import REQUESTS_CA_BUNDLE, SSL_CERT_FILE

_MEGABYTE: Final = 1_000_000
_PORTS: Final = {"http": 80, "https": 443}
_PROXY_SCHEMES: Final = {"http", "https", "socks4", "socks4a", "socks5", "socks5h"}
# Characters that host names can't contain; `%` is allowed only in the zone of an IPv6 address.
_NO_HOST: Final = re.compile(r"[\s{}<>^|]|^[^:]*%")
# Servers close idle connections after 5 s to a few minutes; closing first loses no request.
_LONGEST_IDLE: Final = timedelta(seconds=15)
_CERTIFICATE: Final = b"-----BEGIN CERTIFICATE-----"


class Proxies(msgspec.Struct, frozen=True, kw_only=True):
    """Proxies by the scheme of the endpoint, and the hosts that are reached without a proxy."""

    http: str | None = None
    https: str | None = None
    direct: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Proxies":
        """Read the standard variables; lower case takes precedence."""

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
        """Hide addresses, which may contain a password."""
        return f"Proxies(http={bool(self.http)}, https={bool(self.https)})"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _covers(entry: str, host: str, port: int) -> bool:
    """Return whether a NO_PROXY entry matches a host: `name`, `.name`, `name:port`, an IP range."""
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
    """The certificates and keys of secure connections, as PEM."""

    authorities: bytes | None = None  # trusted authorities, instead of the system's
    certificate: bytes | None = None  # the client certificate, for endpoints that require one
    key: bytes | None = None  # the key of that certificate (PKCS #8)

    def __repr__(self) -> str:
        """Hide the key."""
        return "Tls(...)"


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One client's timeouts in seconds, its size limit, proxies and certificates."""

    connect: float = 10.0  # for connecting
    read: float = 180.0  # until the first piece of the answer, and between two pieces
    total: float = 600.0  # for the whole call
    largest_body: int = _MEGABYTE  # the maximum size of an answer in bytes, decompressed
    proxies: Proxies = Proxies()  # none by default
    tls: Tls = Tls()  # certificates; those of the system by default
    # The variable that the API key was read from; None if no key is sent.
    key_variable: str | None = None


class Endpoint:
    """An address with its connection settings.

    Attributes:
        url: the address with its user name and password, if any.
        address: the address without them, for display.
        secrets: all passwords, including a proxy's, in every form in which they are sent.

    """

    def __init__(self, base_url: str, headers: Mapping[str, str], options: HttpOptions) -> None:
        parts = _read_address(base_url)
        port = parts.port or _PORTS[parts.scheme]
        named = options.proxies.to(parts.scheme, parts.hostname or "", port)
        proxy = None if named is None else _read_proxy(named)
        self.url = parts.geturl()
        self.address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self.secrets = _passwords(parts) + (_passwords(proxy) if proxy is not None else ())
        self._settings = _settings(parts, proxy, headers, options)

    def connect(self) -> wreq.Client:
        """Return a client; its idle connections are closed when it is dropped."""
        # One I/O thread, because Python can't use the answers of two at once. With the default, one
        # per core, a judged sample takes 9% more CPU time.
        return wreq.Client(**{**self._settings, "runtime": wreq.Runtime(workers=1)})


def _settings(
    address: SplitResult,
    proxy: SplitResult | None,
    headers: Mapping[str, str],
    options: HttpOptions,
) -> "wreq.ClientConfig":
    settings: wreq.ClientConfig = {
        "user_agent": "jurybox",
        "headers": _checked(headers),
        "redirect": redirect.Policy.none(),
        "dns_options": wreq.DnsOptions(system_dns=True),
        # Many servers send deflated data without the zlib header that RFC 9110 requires.
        "deflate": False,
        "pool_idle_timeout": _LONGEST_IDLE,
        "connect_timeout": timedelta(seconds=options.connect),
        "timeout": timedelta(seconds=options.total),
        # Makes Linux close a connection whose endpoint doesn't read the request.
        "tcp_user_timeout": timedelta(seconds=options.read),
    }
    if proxy is None:
        # Otherwise wreq would use a proxy from the environment.
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
        hint = "check the variable or file that it was read from"
        raise InputError("a header contains a control character", hint) from None


def _trusted(tls: Tls) -> wreq.CertStore:
    if tls.authorities is None:
        return _system_authorities()
    try:
        # wreq would accept a file without certificates, and trust nothing.
        if _CERTIFICATE in tls.authorities:
            return wreq.CertStore.from_pem_stack(tls.authorities)
    except exceptions.TlsError:
        pass
    hint = f"name a file of PEM certificates in {SSL_CERT_FILE} or {REQUESTS_CA_BUNDLE}"
    raise InputError("the certificates to trust can't be read", hint)


@functools.cache
def _system_authorities() -> wreq.CertStore:
    """Return the authorities that Python trusts, and those in OpenSSL's folder."""
    trusted = ssl.create_default_context().get_ca_certs(binary_form=True)
    return wreq.CertStore(der_certs=trusted, default_paths=True)


def _identity(tls: Tls) -> wreq.Identity:
    try:
        return wreq.Identity.from_pkcs8_pem(tls.certificate or b"", tls.key or b"")
    except (exceptions.BuilderError, exceptions.TlsError):
        hint = "use PEM, and a PKCS #8 key without a password (`openssl pkcs8 -topk8 -nocrypt`)"
        raise InputError("the client's certificate or its key can't be read", hint) from None


def _read_address(url: str) -> SplitResult:
    """Read a base URL; messages don't quote it, because it may contain a key."""
    hint = "give an address like `https://host/v1`"
    parts = _split(url, "the base URL", hint)
    if parts.scheme not in _PORTS:
        raise InputError("the base URL isn't an http address", hint)
    if parts.query or parts.fragment:
        raise InputError("the base URL has a query or a fragment", hint)
    return parts


def _read_proxy(url: str) -> SplitResult:
    """Read the address of a proxy; http is the default scheme."""
    hint = "give an address like `http://host:3128` or `socks5h://host:1080`, or no proxy"
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
    # Some programs read a backslash as a slash, which would send the key to another host.
    if not host or not host.isprintable() or _NO_HOST.search(host) or "\\" in parts.netloc:
        raise InputError(f"{what} names no host", hint)
    return parts


def _passwords(parts: SplitResult) -> tuple[str, ...]:
    """Return the secret parts of an address: the password and the authorization token."""
    if parts.username is None:
        return ()
    password = unquote(parts.password or "")
    token = b64encode(f"{unquote(parts.username)}:{password}".encode()).decode()
    # Without a password, the user name is the key.
    name = () if parts.password else (unquote(parts.username),)
    return (parts.password or "", password, token, *name)
