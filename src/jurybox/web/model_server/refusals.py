"""What a client gets instead of an answer, in OpenAI's shape."""

from collections.abc import Mapping
from typing import Final

import msgspec
from aiohttp import web

_OURS: Final = 500
# What a header of a refusal may be kept from the library that raised it.
_KEPT: Final = ("Allow",)
_SAID: Final = {
    404: ("there is no such path here", "unknown_url"),
    405: ("this path doesn't take that method", "method_not_allowed"),
    413: ("the body is longer than 4 MiB", "request_too_large"),
}


class Refused(Exception):  # noqa: N818 - it reads as what it is: `except Refused`
    """A request isn't answered; ``param`` names the field that is to blame."""

    def __init__(
        self, status: int, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code

    def response(self, headers: Mapping[str, str] | None = None) -> web.Response:
        """Return it as it is sent."""
        kind = "server_error" if self.status >= _OURS else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return json_response({"error": error}, status=self.status, headers=headers)


def json_response(
    data: object, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return data as it is sent."""
    return web.Response(
        body=msgspec.json.encode(data),
        status=status,
        headers={**SECURE, **(headers or {})},
        content_type="application/json",
    )


SECURE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
"""What every answer carries: nobody keeps it, and nobody takes it for a page."""


def of_library(error: web.HTTPException) -> web.Response:
    """Return what the library refuses by itself, in the same shape."""
    message, code = _SAID.get(error.status, (error.reason.lower(), None))
    headers = {name: error.headers[name] for name in _KEPT if name in error.headers}
    return Refused(error.status, message, code=code).response(headers)
