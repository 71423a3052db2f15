"""Reading an answer from the bytes of a connection, however they are cut; no I/O.

The grammar is that of llhttp, which Node is built on, through `httptools`.
"""

from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from jurybox.models.wire.faults import BrokenOff, Cut, NotHttp, TooLarge, WireFault
from jurybox.models.wire.unpacking import Unpacking, unpacking

# A parser joins the pieces of one header, however long, so somebody has to count; and of one that
# follows the body too.
LARGEST_HEAD: Final = 65_536
_FIRST_INTERIM: Final = 100
_SWITCHING: Final = 101
_FIRST_FINAL: Final = 200

# The names of headers are the same in every answer; to know them saves a third of reading a head.
_MOST_NAMES: Final = 1000
_names: dict[bytes, str] = {}


class _Surplus(Exception):  # noqa: N818 - it stops the parser, and nobody sees it
    """Another answer begins, which nobody asked for."""


class AnswerReader:
    """Reads the answers of one connection, one at a time.

    Attributes:
        status: of the final answer, once its head is whole.
        headers: of that answer, their names in lower case.
        has_head: whether the final head is whole.
        is_whole: whether the answer is.
        keeps_alive: whether another request may follow, once the answer is whole.

    """

    __slots__ = (
        "_fault",
        "_largest",
        "_parser",
        "_pieces",
        "_size",
        "_unpacking",
        "_without_body",
        "buffered",
        "has_head",
        "headers",
        "is_whole",
        "keeps_alive",
        "status",
    )

    def __init__(self, largest: int | None) -> None:
        """Permit bodies of so many bytes, unpacked; without a limit they are left as they come."""
        self._largest = largest
        self._parser = HttpResponseParser(self)
        # Servers in the wild do both, and neither makes the end of an answer ambiguous.
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self.begin()

    def begin(self) -> None:
        """Be ready for the next answer."""
        self.status = 0
        self.headers: dict[str, str] = {}
        self.has_head = self.is_whole = self.keeps_alive = False
        self.buffered = 0
        self._pieces: list[bytes] = []
        self._size = self._without_body = 0
        self._unpacking: Unpacking | None = None
        self._fault: WireFault | None = None

    def feed(self, data: bytes | memoryview) -> None:
        """Take bytes.

        Raises:
            WireFault: they are no answer, or more of one than is permitted.

        """
        self._without_body += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._fault = NotHttp("it changes the protocol")
        except HttpParserError as error:
            # Whatever follows a whole answer spoils the connection, and not the answer.
            self.keeps_alive = False
            if not self.is_whole and self._fault is None:
                self._fault = NotHttp(str(error))
        if self._fault is not None:
            raise self._fault
        if self._without_body > LARGEST_HEAD and not self.is_whole:
            raise NotHttp(
                "too much comes around its body" if self.has_head else "its head is too large"
            )

    def finish(self) -> None:
        """Take note that nothing more comes; for some answers that is the end.

        Raises:
            WireFault: this one isn't whole.

        """
        if self.is_whole:
            return
        if not self.has_head:
            raise Cut
        coding = self.headers.get("transfer-encoding", "").lower()
        if "content-length" in self.headers or coding.endswith("chunked"):
            raise BrokenOff
        self.on_message_complete()
        self.keeps_alive = False
        if self._fault is not None:
            raise self._fault

    def take(self) -> bytes:
        """Return what has come of the body since the last time."""
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._pieces, self.buffered = [], 0
        return body

    # ---- what the parser calls

    def on_message_begin(self) -> None:
        """Refuse an answer that nobody asked for."""
        if self.is_whole:
            raise _Surplus

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header."""
        # What follows a body in chunks are no headers of ours.
        if not self.has_head:
            known = _names.get(name) or _learn(name)
            self.headers[known] = value.decode("utf-8", "replace").strip()

    def on_headers_complete(self) -> None:
        """End the head."""
        status = self._parser.get_status_code()
        if status < _FIRST_FINAL:
            if status == _SWITCHING:
                self._fault = NotHttp("it changes the protocol")
            elif status < _FIRST_INTERIM:
                self._fault = NotHttp("its status is none")
            return
        self.status = status
        self.has_head = True
        self._without_body = 0
        encoding = self.headers.get("content-encoding")
        if encoding is not None and self._largest is not None:
            try:
                self._unpacking = unpacking(encoding, self._largest)
            except WireFault as fault:
                self._fault = fault

    def on_body(self, piece: bytes) -> None:
        """Take a piece of the body."""
        self._without_body = 0
        if self._fault is not None:
            return
        if self._unpacking is not None:
            try:
                piece = self._unpacking.unpack(piece)
            except WireFault as fault:
                self._fault = fault
                return
        self._size += len(piece)
        # Counted as it comes: what an answer announces may be untrue.
        if self._largest is not None and self._size > self._largest:
            self._fault = TooLarge()
            return
        self.buffered += len(piece)
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        """End the answer, or an interim one before it."""
        if not self.has_head:
            # An interim answer, such as `100 Continue`: the real one is still to come.
            self.headers = {}
            return
        self.is_whole = True
        self.keeps_alive = self._parser.should_keep_alive()
        if self._unpacking is not None and not self._unpacking.is_whole and self._fault is None:
            self._fault = BrokenOff()


def _learn(name: bytes) -> str:
    known = name.decode("latin-1").lower()
    # A server that makes names up fills no memory.
    if len(_names) < _MOST_NAMES:
        _names[name] = known
    return known
