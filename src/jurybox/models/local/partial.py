"""A model's file while it is being pulled: a prefix of the whole, held by one process at a time.

Whatever source they come from, the bytes are those of one file in their order. So the length of the
partial file is all that has to be known to go on, and nothing else can disagree with it.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Generator
from io import FileIO
from pathlib import Path
from typing import Final

from jurybox.errors import IncompleteError, InputError
from jurybox.models.local.catalogue import Entry, shown_bytes
from jurybox.settings import MODELS

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What a system says when something can't grow any more."""


def wheels_of(partial: Path) -> Path:
    """Return the folder beside a partial file for wheels that it is made from."""
    return partial.with_suffix(".wheels")


class Busy(Exception):  # noqa: N818 - it says what the file is
    """Another process is pulling the model."""


class Partial:
    """A partial file that is open and locked."""

    def __init__(self, entry: Entry, path: Path, file: FileIO) -> None:
        self.entry = entry
        self.path = path
        self._file = file

    @property
    def size(self) -> int:
        """How many bytes are there."""
        return os.fstat(self._file.fileno()).st_size

    @property
    def is_whole(self) -> bool:
        """Whether as many bytes are there as the model has."""
        return self.size == self.entry.bytes

    def cut(self, size: int) -> None:
        """Forget what comes after so many bytes."""
        os.truncate(self._file.fileno(), size)

    def append(self, data: bytes) -> None:
        """Write more bytes behind those that are there.

        Raises:
            IncompleteError: there is no room for them, or the disk fails.

        """
        try:
            self._file.seek(0, os.SEEK_END)
            rest = memoryview(data)
            # Unbuffered: a disk that is nearly full takes a piece of what it is given.
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            if error.errno in FULL:
                raise no_room(self.entry, self.path.parent, self.entry.bytes - self.size) from None
            reason = (error.strerror or str(error)).lower()
            problem = f"{self.path}: can't be written ({reason}); check the disk and pull again"
            raise IncompleteError(problem) from None

    def has_digest(self) -> bool:
        """Tell whether the bytes are those of the model, to the last bit."""
        self._file.seek(0)
        return hashlib.file_digest(self._file, "sha256").hexdigest() == self.entry.sha256

    def publish(self, path: Path) -> None:
        """Have the file take its place."""
        os.fsync(self._file.fileno())
        self.path.replace(path)

    def discard(self) -> None:
        """Remove the file; this is the last thing to do with it."""
        self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def held(entry: Entry, path: Path) -> Generator[Partial]:
    """Open and lock a partial file; where it is empty in the end, it is removed.

    Raises:
        Busy: another process holds it.
        InputError: it can't be written.

    """
    with _locked(path) as file:
        partial = Partial(entry, path, file)
        try:
            yield partial
        finally:
            # Only this very file: once it is gone, another process may have begun one of its own.
            if partial.size == 0 and _is_at(file, path):
                partial.discard()


@contextlib.contextmanager
def _locked(path: Path) -> Generator[FileIO]:
    while True:
        # Unbuffered, so that what was written is there even if this process is killed.
        file = _opened(path)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise Busy from None
        # Whoever held it may have finished in between; then this is another file by now.
        if _is_at(file, path):
            break
        file.close()
    with file:
        yield file


def _opened(path: Path) -> FileIO:
    try:
        return FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b")
    except OSError as error:
        problem = f"can't be written ({(error.strerror or str(error)).lower()})"
        mend = f"check who may write there, or name another folder in {MODELS}"
        raise InputError(problem, mend, str(path)) from None


def _is_at(file: FileIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def ensure_room(partial: Partial, beside: int) -> None:
    """See that what is missing fits onto the disk, and ``beside`` bytes that are needed meanwhile.

    Raises:
        IncompleteError: it doesn't.

    """
    needed = partial.entry.bytes - partial.size + beside
    if shutil.disk_usage(partial.path.parent).free < needed:
        raise no_room(partial.entry, partial.path.parent, needed)


def no_room(entry: Entry, folder: Path, needed: int) -> IncompleteError:
    """Say that a disk is full; what was pulled stays, and the next pull goes on from there."""
    free = _free(folder)
    left = "" if free is None else f" and {shown_bytes(free)} are free"
    return IncompleteError(
        f"{entry.name}: no room in {folder}: {shown_bytes(needed)} more are needed{left}; make "
        f"room and pull again, or name another folder in {MODELS}"
    )


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
