"""Reads the bytes of a file once, in pieces, and hashes them."""

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from jurybox.documents.findings import Findings, Place
from jurybox.errors import IncompleteError, InputError
from jurybox.text_format import printable

Digest = Any  # hashlib's type is private

MAX_LINE: Final = 64_000_000
"""The maximum bytes per line; a longer one suggests another kind of file, and fills memory."""

_PIECE = 1 << 18
_BOM = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
SAVE_AS_UTF8: Final = "save the file as UTF-8"


class Source:
    """One pass over the bytes of a file."""

    def __init__(
        self,
        file: IO[bytes],
        origin: str,
        *,
        size: int,
        most: int = MAX_LINE,
        digest: Digest = None,
    ) -> None:
        """Read from the beginning of ``file``; a line may have at most ``most`` bytes.

        The bytes are added to ``digest``, a hash that several files may share.
        """
        self.file = file
        self.origin = origin
        self.size = size
        self.most = most
        self.bytes = 0
        self._digest = digest or hashlib.sha256()

    @property
    def sha256(self) -> str:
        """The hash of all bytes read so far."""
        return self._digest.hexdigest()

    def lines(self, findings: Findings) -> Iterator[tuple[int, bytes]]:
        """Yield every line with its number, without its line feed; note lines that are too long."""
        number = 0
        # Two more bytes: the line feed, and one that shows that the line is too long.
        while line := self._read(self.file.readline, self.most + 2):
            number += 1
            if number == 1:
                if line.startswith(_UTF16_MARKS):
                    findings.add(Place(1), "encoding", "the file is UTF-16", SAVE_AS_UTF8)
                    return
                line = line.removeprefix(_BOM)
            if len(line.removesuffix(b"\n")) > self.most:
                problem = f"the line is longer than {self.most / 1_000_000:g} MB"
                findings.add(Place(number), "too-long", problem, "give each row a line")
                while line and not line.endswith(b"\n"):
                    line = self._read(self.file.readline, _PIECE)
                continue
            yield number, line.removesuffix(b"\n")

    def read_whole(self) -> None:
        """Read the file from its beginning, only to hash it."""
        self.file.seek(0)
        while self._read(self.file.read, _PIECE):
            pass

    def _read(self, read: Callable[[int], bytes], most: int) -> bytes:
        try:
            data = read(most)
        except OSError as error:
            reason = str(error.strerror or error).lower()
            problem = f"{self.origin}: reading failed ({reason}); check the disk"
            raise IncompleteError(problem) from None
        self._digest.update(data)
        self.bytes += len(data)
        return data


@contextmanager
def open_source(path: Path, digest: Digest = None) -> Generator[Source]:
    """Open a file for a single pass; its bytes are added to ``digest``, if there is one."""
    origin = printable(str(path))
    try:
        # Checked before opening, which blocks for a pipe.
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise InputError("is a folder", "name a file in it", origin)
        if not stat.S_ISREG(kind):
            problem = "not a file that can be read twice, but a pipe or a device"
            raise InputError(problem, "save the rows to a file first", origin)
        file = path.open("rb", buffering=_PIECE)
    except FileNotFoundError:
        raise InputError("no such file", "check the path", origin) from None
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        raise InputError(f"can't be read ({reason})", "check the file", origin) from None
    with file:
        yield Source(file, origin, size=os.fstat(file.fileno()).st_size, digest=digest)


@contextmanager
def open_or_stdin(path: Path, what: str) -> Generator[Source]:
    """Open a file or standard input; ``what`` names the expected contents."""
    if str(path) != "-":
        with open_source(path) as source:
            yield source
    elif sys.stdin is None:
        raise InputError("standard input is closed", f"pipe the {what} in", "-")
    else:
        yield Source(sys.stdin.buffer, "standard input", size=0)
