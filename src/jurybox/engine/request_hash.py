"""The hashes that a run is sealed by: SHA-256, of a text, of a request, and of columns."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

_MOST_FRAMES: Final = 64

# Every value is packed with its kind and its length, so that no text can pass for two.
_PACK: Final = msgspec.msgpack.Encoder().encode


def text_hash(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(encoded(text)).hexdigest()


frame_hash: Final = lru_cache(_MOST_FRAMES)(text_hash)
"""Returns the hash of a frame; the same few come again and again."""


def request_hash(frame: str, material: str) -> str:
    """Return the hash of a request's whole text: the material between the lines of its frame."""
    begun, end = _opened(frame)
    digest = begun.copy()
    digest.update(encoded(material) + end)
    return digest.hexdigest()


@lru_cache(_MOST_FRAMES)
def _opened(frame: str) -> tuple[Any, bytes]:
    """Return the state of a hash after a frame's first line, and its second line.

    The first line has some 15 KB. To hash it again for each request would take 11 us, and 59 us
    on a processor without instructions for SHA-256, where a whole sample takes about 500.
    """
    begin, _, end = encoded(frame).partition(b"\n")
    return hashlib.sha256(begin), end


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
