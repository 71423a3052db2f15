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


class _Shared(NamedTuple):
    """What requests begin and end with alike, and the state after the end and the beginning."""

    head: bytes
    tail: bytes
    state: Any  # hashlib gives its class no public name


class RequestHasher:
    """Hashes requests; what many of them share is learnt from them, and hashed once."""

    def __init__(self) -> None:
        # Threads may share a hasher: the first is replaced and never changed, and whatever the
        # second holds, it only says what is worth comparing.
        self._known: tuple[_Shared, ...] = ()
        self._seen: dict[bytes, bytes] = {}

    def __call__(self, text: str) -> str:
        """Return the hash of a request: of its end, the rest, and where the end began."""
        return self.of_bytes(encoded(text))

    def of_bytes(self, data: bytes) -> str:
        """Return the hash of a request that is encoded already."""
        for head, tail, state in self._known:
            # A tail begins with the only mark in it, so whoever ends with it has no later one.
            end = len(data) - len(tail)
            if end >= len(head) and data.startswith(head) and data.endswith(tail):
                digest = state.copy()
                digest.update(memoryview(data)[len(head) : end])
                break
        else:
            end = max(data.rfind(_MARK), 0)
            head, tail = data[:end], data[end:]
            digest = hashlib.sha256(tail)
            digest.update(head)
            self._learn(head, tail)
        # Without that, other texts could be turned into the same.
        digest.update(b"%d" % end)
        return digest.hexdigest()

    def _learn(self, head: bytes, tail: bytes) -> None:
        """Keep what a request shares with an earlier one of the same end."""
        if not head or len(head) + len(tail) < _SHORTEST or len(tail) > _LONGEST:
            return
        known = {each.tail: each for each in self._known}
        # Two requests may have had more in common than all of them have.
        other = known[tail].head if tail in known else self._seen.get(tail)
        if other is None:
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen[tail] = head[:_LONGEST]
        elif tail in known or len(known) < _MOST:
            shared = head[: shared_beginning(other, head)]
            state = hashlib.sha256(tail)
            state.update(shared)
            self._known = (*(known | {tail: _Shared(shared, tail, state)}).values(),)


request_hash: Final = RequestHasher()
"""Returns the hash of a request."""


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
