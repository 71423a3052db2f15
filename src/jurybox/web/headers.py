"""What every answer says to the browser, whether page, file or refusal."""

import time
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_TEXT_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; sandbox"
_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer` a browser hides even from us where a form comes from (its Origin is
    # `null` then), and that is what writes are checked by. To others it tells nothing either way.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "X-Frame-Options": "DENY",
}


def with_headers(send: Send, *, kept: bool) -> Send:
    """Return a `send` that adds the headers; ``kept`` answers may stay in the browser's cache."""
    began = time.perf_counter()

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            is_text = headers.get("content-type", "").startswith("text/plain")
            headers["Content-Security-Policy"] = _TEXT_POLICY if is_text else POLICY
            for name, value in _ALWAYS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-cache" if kept else "no-store")
            took = 1000 * (time.perf_counter() - began)
            headers["Server-Timing"] = f"app;dur={took:.1f}"
        await send(message)

    return sending
