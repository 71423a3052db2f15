"""SHA-256 of many texts that begin alike.

All requests of a run begin with the same long rubric. To hash that anew for each of them would cost
more than anything else that is done with a request, so the state after it is kept.
"""

import hashlib
from typing import Any, AnyStr, Final, NamedTuple

_MOST: Final = 16
_SHORTEST, _LONGEST = 1024, 65_536


class _Begun(NamedTuple):
    beginning: bytes
    state: Any  # hashlib gives its class no public name


class Hasher:
    """Hashes texts; what many of them begin with is learnt from them, and hashed once."""

    def __init__(self) -> None:
        # Replaced and never changed, so that threads may share a hasher.
        self._known: tuple[_Begun, ...] = ()
        self._last = b""

    def __call__(self, text: str) -> str:
        """Return the SHA-256 of a text."""
        data = encoded(text)
        for beginning, state in self._known:
            if data.startswith(beginning):
                digest = state.copy()
                digest.update(memoryview(data)[len(beginning) :])
                return digest.hexdigest()
        self._learn(data)
        return hashlib.sha256(data).hexdigest()

    def _learn(self, data: bytes) -> None:
        """Keep what a text shares with one that is known, or else with the last one."""
        if len(data) < _SHORTEST:
            return
        for index, (beginning, _) in enumerate(self._known):
            shared = shared_beginning(beginning, data)
            if shared >= _SHORTEST:
                # Two samples may have had more in common than all of them have.
                begun = _begun(data[:shared])
                self._known = (*self._known[:index], begun, *self._known[index + 1 :])
                return
        shared = shared_beginning(self._last, data)
        if shared >= _SHORTEST and len(self._known) < _MOST:
            self._known = (*self._known, _begun(data[:shared]))
        self._last = data[:_LONGEST]


def encoded(text: str) -> bytes:
    """Return the bytes that a hash is of."""
    # A damaged store may hold what is no text at all; it has to be told, not to break us.
    return str(text).encode("utf-8", "surrogatepass")


def _begun(beginning: bytes) -> _Begun:
    return _Begun(beginning, hashlib.sha256(beginning))


def shared_beginning(one: AnyStr, other: AnyStr) -> int:
    """Return how many bytes or characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
