"""Which proxy to go through; none unless told."""

import ipaddress
from collections.abc import Mapping

import msgspec


class Proxies(msgspec.Struct, frozen=True, kw_only=True):
    """Proxies by the scheme of the endpoint, and the hosts that need none."""

    http: str | None = None
    https: str | None = None
    direct: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Proxies":
        """Read the variables that most programs go by; small letters win over capitals."""

        def value(name: str) -> str | None:
            return environment.get(name) or environment.get(name.upper()) or None

        others = value("all_proxy")
        return cls(
            http=value("http_proxy") or others,
            https=value("https_proxy") or others,
            direct=tuple(part.strip() for part in (value("no_proxy") or "").split(",")),
        )

    def to(self, scheme: str, host: str) -> str | None:
        """Return the proxy for a host; this machine is always reached directly."""
        if _is_here(host) or any(_covers(entry, host) for entry in self.direct):
            return None
        return self.https if scheme == "https" else self.http

    def __repr__(self) -> str:
        """Hide addresses, which may carry a password."""
        return f"Proxies(http={bool(self.http)}, https={bool(self.https)})"


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _covers(entry: str, host: str) -> bool:
    if entry == "*":
        return True
    entry = entry.lower().removeprefix("*").lstrip(".")
    if not entry:
        return False
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return host == entry or host.endswith(f".{entry}")
