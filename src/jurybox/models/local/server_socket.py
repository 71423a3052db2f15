"""The few questions that the runtime's server answers over its socket only."""

import http.client
import socket
from typing import Any

import msgspec

_LONGEST_WAIT = 60.0


class ServerSocket:
    """A server of our own process, behind a socket that is a file in a folder of ours."""

    def __init__(self, path: str, key: str) -> None:
        self._path = path
        self._headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {key}",
            "Connection": "close",
        }

    def post(self, path: str, body: object) -> tuple[int, Any]:
        """Return the status and the answer."""
        connection = _Connection(self._path)
        try:
            connection.request("POST", path, msgspec.json.encode(body), self._headers)
            response = connection.getresponse()
            return response.status, msgspec.json.decode(response.read())
        finally:
            connection.close()


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_LONGEST_WAIT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_LONGEST_WAIT)
        self.sock.connect(self._path)
