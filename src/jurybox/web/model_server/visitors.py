"""Who may ask: programs on this machine, and no web page.

A page that somebody visits can send requests to this machine, and with a name of its own that leads
here (DNS rebinding) it could read the answers too.
"""

import re
from typing import Final

from aiohttp import web

from jurybox.web.model_server.refusals import Refused

_LOOPBACK: Final = re.compile(r"(?:127\.0\.0\.1|localhost)(?::\d{1,5})?", re.IGNORECASE)
_FORBIDDEN: Final = 403


def check_visitor(request: web.Request) -> None:
    """Let nobody in but who asks for this machine by its own name, and comes from no other site.

    Raises:
        Refused: it is somebody else.

    """
    hosts = request.headers.getall("Host", [])
    # A request line may name a host too, and that one would count.
    if len(hosts) != 1 or not all(map(_LOOPBACK.fullmatch, (hosts[0], request.url.authority))):
        what = "the Host header names another machine; ask for 127.0.0.1 or localhost"
        raise Refused(_FORBIDDEN, what, code="host_not_allowed")
    if any(origin != f"http://{hosts[0]}" for origin in request.headers.getall("Origin", [])):
        raise Refused(_FORBIDDEN, "web pages may not ask here", code="origin_not_allowed")
