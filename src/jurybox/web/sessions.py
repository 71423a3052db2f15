"""Who may come in, and which forms are ours: the token, sessions and the mark on forms."""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

SESSION: Final = "jurybox_session"
MARK: Final = "jurybox_csrf"
FIELD: Final = "csrf"
HEADER: Final = b"x-jurybox-csrf"

_LONGEST: Final = 12 * 3600.0
_MOST: Final = 1000


def own_name(name: str, scope: Mapping[str, Any]) -> str:
    """Return what a cookie is called at this port: browsers keep one for all ports of a host."""
    server = scope.get("server")
    return name if server is None else f"{name}_{server[1]}"


class Sessions:
    """The sessions of one process; a restart ends them all."""

    def __init__(self, token: str | None) -> None:
        self._token = None if token is None else _digest(token)
        self._secret = secrets.token_bytes(32)
        self._open: OrderedDict[str, float] = OrderedDict()

    @property
    def needed(self) -> bool:
        """Whether anybody has to show a token."""
        return self._token is not None

    def knows(self, token: str) -> bool:
        """Compare a token in a time that tells nothing about it."""
        # Of hashes, so that not even the length can be told from how long it takes.
        return self._token is not None and hmac.compare_digest(_digest(token), self._token)

    def begin(self) -> str:
        """Return the name of a new session; the token itself never leaves the server."""
        name = secrets.token_urlsafe(32)
        self._open[_digest(name).hex()] = time.monotonic()
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
        return name

    def holds(self, name: str) -> bool:
        """Say whether a session was begun here and isn't over."""
        begun = self._open.get(_digest(name).hex())
        return begun is not None and time.monotonic() - begun < _LONGEST

    def end(self, name: str) -> None:
        """Forget a session."""
        self._open.pop(_digest(name).hex(), None)

    def mark(self) -> str:
        """Return a mark for a browser: its forms have to carry the same one."""
        nonce = secrets.token_urlsafe(16)
        return f"{nonce}.{self._sign(nonce)}"

    def made(self, mark: str) -> bool:
        """Say whether a mark was made by this process."""
        nonce, _, signature = mark.partition(".")
        return _same(signature, self._sign(nonce))

    def agree(self, cookie: str, sent: str) -> bool:
        """Say whether a form was made for the browser that sends it."""
        return self.made(cookie) and _same(cookie, sent)

    def _sign(self, nonce: str) -> str:
        return hmac.new(self._secret, nonce.encode(errors="replace"), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))
