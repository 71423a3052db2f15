"""Undoing what ``Content-Encoding`` names, piece by piece and never more than is permitted."""

import zlib
from typing import Any, Final

from jurybox.models.wire.faults import BrokenOff, TooLarge

OFFERED: Final = "gzip, deflate"
_PLAIN: Final = {"", "identity"}
_GZIP: Final = {"gzip", "x-gzip"}
_DEFLATE: Final = "deflate"
_WITH_GZIP_HEAD: Final = 16 + zlib.MAX_WBITS
_LOW_BITS, _IS_ZLIB = 0x0F, 8


def unpacking(encoding: str, largest: int) -> "Unpacking | None":
    """Return what unpacks a body, or None where it isn't packed.

    Raises:
        BrokenOff: it is packed in a way that nobody offered.

    """
    name = encoding.strip().lower()
    if name in _PLAIN:
        return None
    if name in _GZIP or name == _DEFLATE:
        return Unpacking(largest, is_gzip=name in _GZIP)
    raise BrokenOff


class Unpacking:
    """One packed body."""

    __slots__ = ("_is_gzip", "_left", "_packed", "_stream")

    def __init__(self, largest: int, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._packed = self._left = largest
        self._stream: Any = None  # zlib gives its class no public name

    @property
    def is_whole(self) -> bool:
        """Whether the end has come; nothing at all is whole too."""
        return self._stream is None or self._stream.eof

    def unpack(self, piece: bytes) -> bytes:
        """Return what a piece holds.

        Raises:
            BrokenOff: it can't be unpacked.
            TooLarge: all that came, or what it unpacks to, is larger than permitted.

        """
        if not piece:
            return b""
        if self._stream is None:
            self._stream = zlib.decompressobj(self._window(piece[0]))
        # What is packed counts too: empty blocks without end unpack to nothing.
        self._packed -= len(piece)
        if self._packed < 0:
            raise TooLarge
        # A second stream behind the first is legal and unheard of; to follow each of a million
        # tiny ones would cost more than it is worth.
        if self._stream.eof:
            raise BrokenOff
        try:
            plain: bytes = self._stream.decompress(piece, self._left + 1)
        except zlib.error:
            raise BrokenOff from None
        self._left -= len(plain)
        if self._left < 0:
            raise TooLarge
        if self._stream.unused_data:
            raise BrokenOff
        return plain

    def _window(self, first: int) -> int:
        if self._is_gzip:
            return _WITH_GZIP_HEAD
        # Half of the world sends `deflate` without the head that the standard wants (RFC 9110).
        return zlib.MAX_WBITS if first & _LOW_BITS == _IS_ZLIB else -zlib.MAX_WBITS
