"""The ways in which an exchange comes to nothing.

None of them holds an address, a header or a byte of a request: those may be secret.

    WireFault
    ├── NoConnectionInTime   nothing stood within the time for connecting
    ├── Unreachable          the system says why
    ├── Insecure             it stands, and can't be trusted
    ├── ProxyRefused         the proxy won't lead on
    ├── Silent               nothing came for too long
    ├── TookTooLong          the time for the whole exchange is over
    ├── Cut                  it ended before the head of an answer
    ├── BrokenOff            it ended within the body, or the body can't be unpacked
    ├── TooLarge             the body is larger than permitted
    └── NotHttp              what came is something else
"""


class WireFault(Exception):  # noqa: N818 - the tree is named for what went wrong
    """An exchange came to nothing."""


class NoConnectionInTime(WireFault):
    """Nothing stood within the time for connecting."""


class Unreachable(WireFault):
    """There is no connection, and the system says why; ``proxied`` where it was to the proxy."""

    def __init__(self, reason: str, *, proxied: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.proxied = proxied


class Insecure(WireFault):
    """TLS came to nothing; ``certificate`` where that is what is wrong."""

    def __init__(self, reason: str, *, certificate: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.certificate = certificate


class ProxyRefused(WireFault):
    """The proxy won't lead on."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class Silent(WireFault):
    """Nothing came for too long."""


class TookTooLong(WireFault):
    """The time for the whole exchange is over."""


class Cut(WireFault):
    """It ended before the head of an answer."""


class BrokenOff(WireFault):
    """It ended within the body, or the body can't be unpacked."""


class TooLarge(WireFault):
    """The body is larger than permitted."""


class NotHttp(WireFault):
    """What came is something else."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
