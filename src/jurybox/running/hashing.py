"""The hashes that a run is sealed by: SHA-256, of a text, of columns, and of a request.

All requests of a run begin with the same long rubric and end with the same long checklist; what is
a sample's own stands between marks. To hash the rest anew for each of them would cost more than
anything else that is done with a request. A state can be kept of beginnings only, so the end is
hashed first, and the state after both is kept.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, AnyStr, Final, NamedTuple

import msgspec

_MOST: Final = 16
_SHORTEST, _LONGEST = 1024, 65_536
# The last mark around material; where there is none, a request is hashed as it stands.
_MARK: Final = b">>>"

# Every value is packed with its kind and its length, so that no text can pass for two.
_PACK: Final = msgspec.msgpack.Encoder().encode


def text_hash(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(encoded(text)).hexdigest()


def columns_hash(tag: str, columns: Sequence[str | int | None]) -> str:
    """Return the hash of columns; ``tag`` tells what they are of."""
    try:
        packed = _PACK((tag, *columns))
    except (UnicodeEncodeError, OverflowError):
        # Half a character, or a number that no row of ours has: no kind may pass for another then.
        bare = (encoded(each) if isinstance(each, str) else (str(each),) for each in columns)
        packed = _PACK((tag, *bare))
    return hashlib.sha256(packed).hexdigest()


def encoded(text: str) -> bytes:
    """Return the bytes that a hash is of."""
    # A damaged store may hold what is no text at all; it has to be told, not to break us.
    return str(text).encode("utf-8", "surrogatepass")


class _Begun(NamedTuple):
    beginning: bytes
    state: Any  # hashlib gives its class no public name


class RequestHasher:
    """Hashes requests; what many of them share is learnt from them, and hashed once."""

    def __init__(self) -> None:
        # Replaced and never changed, so that threads may share a hasher.
        self._known: tuple[_Begun, ...] = ()
        self._last = b""

    def __call__(self, text: str) -> str:
        """Return the hash of a request: of its end, the rest, and where the end began."""
        data = encoded(text)
        end = max(data.rfind(_MARK), 0)
        if end:
            data = data[end:] + data[:end]
        digest = self._begun(data)
        # Without that, other texts could be turned into the same.
        digest.update(b"%d" % end)
        return digest.hexdigest()

    def _begun(self, data: bytes) -> Any:  # noqa: ANN401 - see `_Begun`
        for beginning, state in self._known:
            if data.startswith(beginning):
                digest = state.copy()
                digest.update(memoryview(data)[len(beginning) :])
                return digest
        self._learn(data)
        return hashlib.sha256(data)

    def _learn(self, data: bytes) -> None:
        """Keep what a request shares with one that is known, or else with the last one."""
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


request_hash: Final = RequestHasher()
"""Returns the hash of a request."""


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
