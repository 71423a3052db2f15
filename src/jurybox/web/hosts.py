"""Under which names the server may be asked: another site's name may be made to lead here."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?")
_OURS: Final = frozenset({"same-origin", "none"})


def host_name(host: str) -> str | None:
    """Return the name in a Host header, in small letters; None where it can't be one."""
    found = _HOST.fullmatch(host)
    return None if found is None else found[1].lower().rstrip(".")


def is_known(host: str, names: frozenset[str], *, addresses: bool) -> bool:
    """Say whether a Host header names this server.

    An address can't be led elsewhere by whoever owns a name, so where the server listens on all of
    them, any will do.
    """
    name = host_name(host)
    if name is None:
        return False
    return name in names or (addresses and _is_address(name))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def may_look(headers: Mapping[str, str]) -> bool:
    """Say whether a page may be shown: to our own pages, and to who follows a link from elsewhere.

    Another site has no business with pictures, scripts or frames of ours.
    """
    if headers.get("sec-fetch-site", "none") in _OURS:
        return True
    asked = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return asked == ("navigate", "document")


def is_ours(headers: Mapping[str, str], scheme: str) -> bool:
    """Say whether a write comes from a page of this server, as far as the browser tells."""
    if headers.get("sec-fetch-site", "same-origin") not in _OURS:
        return False
    origin = headers.get("origin")
    return origin is None or origin == f"{scheme}://{headers.get('host', '')}"
