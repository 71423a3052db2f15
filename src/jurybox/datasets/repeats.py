"""Finding ids that are given twice among millions, without keeping them.

Of each id eight bytes are kept: a hash. Equal hashes are only a suspicion, so whoever asks looks at
the few suspected ids again.
"""

from array import array

_BUCKETS = 256
_MASK = (1 << 64) - 1


def hash_of(text: str) -> int:
    """Return 64 bits of a text, the same for as long as the process lives."""
    return hash(text) & _MASK


class Repeats:
    """The hashes seen so far, in buckets small enough to be sorted out one by one."""

    def __init__(self) -> None:
        self._buckets = [array("Q") for _ in range(_BUCKETS)]

    def add(self, text: str) -> None:
        """Take one more id."""
        hashed = hash(text) & _MASK
        self._buckets[hashed % _BUCKETS].append(hashed)

    def suspects(self, most: int) -> frozenset[int]:
        """Return at most ``most`` of the hashes that were seen more than once."""
        found: set[int] = set()
        for bucket in self._buckets:
            if len(set(bucket)) == len(bucket):
                continue
            seen: set[int] = set()
            for hashed in bucket:
                if hashed in seen:
                    found.add(hashed)
                    if len(found) == most:
                        return frozenset(found)
                seen.add(hashed)
        return frozenset(found)
