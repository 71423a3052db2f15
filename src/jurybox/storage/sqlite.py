"""A store in an SQLite file, with a write-ahead log: readers never wait, writers take turns."""

import fcntl
import hashlib
import os
import re
import sqlite3
import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

from jurybox.errors import IncompleteError, InputError
from jurybox.storage.database import (
    LOSSES,
    BaseDatabase,
    BaseSession,
    Fault,
    FaultKind,
    Found,
    Values,
    one_line,
)

_KINDS: Final[dict[int, FaultKind]] = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_NOTADB: "damaged",
    # Our statements are valid, so errors in them mean that the tables are wrong.
    sqlite3.SQLITE_ERROR: "damaged",
    sqlite3.SQLITE_SCHEMA: "damaged",
    sqlite3.SQLITE_READONLY: "read-only",
    sqlite3.SQLITE_PERM: "read-only",
    sqlite3.SQLITE_CANTOPEN: "unopenable",
    sqlite3.SQLITE_IOERR: "input-output",
    sqlite3.SQLITE_CONSTRAINT: "stored already",
}
_PRIMARY: Final = 0xFF  # the low byte of an extended code
_PAUSE: Final = 0.02
_AT_ONCE: Final = 500
# SQLite releases the GIL during a statement, and a busy event loop takes 5 ms to give it back. So
# all rows of a table are inserted by one statement, within SQLite's limit of 32,766 values.
_MOST_ROWS: Final = 1000
_TABLES: Final = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
# The log is synced to disk at each commit, so stored rows survive a power failure. Other settings
# are SQLite's defaults. A longer log or a larger cache gained nothing with 24,000 rows. With
# memory-mapped files, rows of 9 KB are read in half the time, about 10 us each, but a disk error
# then ends the process without a message. With pages of 16 KB instead of 4, rows of a few KB take
# less space (113 MB instead of 162) and the same time to write, and searching 100,000 samples takes
# 157 ms instead of 292.
_SETTINGS: Final = (
    "PRAGMA page_size = 16384",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
)


class SqliteSession(BaseSession):
    """A connection to a file."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    @contextmanager
    def stream(self, statement: str, values: Values = ()) -> Generator[Iterator[Found]]:
        """Return the rows in pages; until the block ends, the log can't be truncated."""
        cursor = self._raw.execute(statement, values)
        try:
            yield iter(partial(cursor.fetchmany, _AT_ONCE), [])
        finally:
            cursor.close()

    def query(self, statement: str, values: Values = ()) -> sqlite3.Cursor:
        """Execute a statement; return the cursor over its rows."""
        return self._raw.execute(statement, values)

    def insert(self, statement: str, rows: Sequence[Values]) -> None:
        """Execute a statement for many rows at a time."""
        head, row, rest = re.split(r"(\(\?[ ,?]*\))", statement)
        for at in range(0, len(rows), _MOST_ROWS):
            some = rows[at : at + _MOST_ROWS]
            values = tuple(chain.from_iterable(some))
            self._raw.execute(f"{head}{', '.join([row] * len(some))}{rest}", values)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Begin an exclusive write transaction.

        It is one from the start: if a transaction begins by reading, and another one writes
        meanwhile, SQLite refuses its first write at once instead of waiting.
        """
        self._raw.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._raw.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite may have rolled it back by itself
                self._raw.execute("ROLLBACK")
            raise

    def lock(self, what: str) -> None:
        """Do nothing, because write transactions are exclusive."""

    def is_clean(self) -> bool:
        """Return whether no transaction is open."""
        return not self._raw.in_transaction

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


class SqliteDatabase(BaseDatabase[SqliteSession]):
    """An SQLite file."""

    text_type = "TEXT"
    clustered = "WITHOUT ROWID"
    metric = """json_extract(metrics, '$."{name}"')"""
    # An index for the default order, worst first; any other order reads the whole run.
    overall = metric.format(name="overall")
    worst = f"{overall}, urgency DESC, {LOSSES}, number"
    indexes = (f"CREATE INDEX facets_by_overall ON facets (run_id, {worst})",)
    like = "LIKE"
    numbers = "json_group_array(number)"
    # The `+` keeps it from looking up one row after another, which takes longer if all match.
    among = "+number IN (SELECT value FROM json_each(?))"
    tables = _TABLES
    is_shared = False  # a file with other tables belongs to another program
    elsewhere = "name another file with --store"

    def __init__(self, path: str, *, create: bool, patience: float) -> None:
        """Open the file; its contents are checked later."""
        self.name = os.fsencode(path).decode(errors="replace")
        self.patience = patience
        # Absolute, because the working directory may change while the store is open.
        self._file = _absolute(path)
        self.address = str(self._file)
        _require_file(self._file, self.name, create=create)
        self._mode = "rwc" if create else "rw"
        if not create and not _is_writable(self._file):
            # Without a log file, the database is complete and isn't being changed.
            log = self._file.with_name(f"{self._file.name}-wal")
            whole = not log.exists() or not log.stat().st_size
            self._mode = "ro&immutable=1" if whole else "ro"
        self._idle = deque[SqliteSession]()
        self._closed = False

    @contextmanager
    def lend(self) -> Generator[SqliteSession]:
        """Lend the connection that was used last, or a new one."""
        try:
            session = self._idle.pop()
        except IndexError:
            session = self._connect()
        try:
            yield session
        finally:
            if session.is_clean() and not self._closed:
                self._idle.append(session)
            else:
                session.close()

    def close(self) -> None:
        """Close idle connections; lent ones are closed when they are returned."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _connect(self) -> SqliteSession:
        connection = sqlite3.connect(
            f"{self._file.as_uri()}?mode={self._mode}",
            uri=True,
            timeout=self.patience,
            isolation_level=None,  # transactions begin explicitly, not implicitly by Python
            cached_statements=16,  # those that insert many rows are large
            check_same_thread=False,  # a connection is lent to one thread at a time
        )
        try:
            for setting in _SETTINGS:
                connection.execute(setting)
        except BaseException:
            connection.close()
            raise
        return SqliteSession(connection)

    def prepare(self) -> None:
        """Turn on the write-ahead log, a setting that the file keeps."""
        if self._mode.startswith("ro"):
            return
        self._mode = "rw"  # a file that disappears later isn't silently recreated
        deadline = time.monotonic() + self.patience
        with self.reading() as session:
            while session.rows("PRAGMA journal_mode") != [("wal",)]:
                try:
                    session.rows("PRAGMA journal_mode = WAL")
                except sqlite3.OperationalError as error:
                    # Here SQLite itself doesn't wait for another process that does the same.
                    busy = error.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_BUSY
                    if not busy or time.monotonic() > deadline:
                        raise
                    time.sleep(_PAUSE)
                else:
                    break  # some file systems don't support it, and keep the rollback journal

    @contextmanager
    def claim(self, run_id: str) -> Generator[bool]:
        """Claim a run by locking a file next to the store; the lock ends with the process."""
        digest = hashlib.sha256(run_id.encode(errors="surrogatepass")).hexdigest()
        file = self._file.with_name(f"{self._file.name}-claim-{digest[:16]}")
        try:
            descriptor = _lock(file)
        except OSError as error:
            raise IncompleteError(
                f"store {self.name}: {file.name} can't be locked ({error.strerror}); "
                "check that you have write access to the store's folder"
            ) from None
        if descriptor is None:
            yield False
            return
        try:
            yield True
        finally:
            # Removed while locked; a process that has opened it notices this and creates a new one.
            file.unlink(missing_ok=True)
            os.close(descriptor)

    def classify(self, error: Exception) -> Fault | None:
        """Classify errors of SQLite by their codes."""
        if not isinstance(error, sqlite3.Error):
            return None
        detail = one_line(str(error))
        code: int | None = getattr(error, "sqlite_errorcode", None)
        if code is None:  # raised by Python; text that it can't decode doesn't help the user
            return (
                Fault(kind="damaged") if "decode" in detail else Fault(kind="other", detail=detail)
            )
        if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
            return Fault(kind="no run")
        kind = _KINDS.get(code & _PRIMARY, "other")
        if kind in {"full", "locked", "stored already"}:
            return Fault(kind=kind)
        if kind == "input-output":
            detail = f"{detail}, {error.sqlite_errorname}"
        return Fault(kind=kind, detail=detail)


def _absolute(path: str) -> Path:
    # Only the user's own home, because `~x` may be a file's name.
    home = Path(path).expanduser() if path.startswith("~/") else Path(path)
    return home.absolute()


def _require_file(file: Path, name: str, *, create: bool) -> None:
    where = f"store {name}"
    try:
        if file.is_dir():
            raise InputError("it is a folder", "name a file", where)
        if create:
            file.parent.mkdir(parents=True, exist_ok=True)
            return
        there = file.exists()
    except OSError as error:
        raise InputError(
            f"its folder can't be used ({error.strerror})", "check the path", where
        ) from None
    if not there:
        first = "run a suite first (`jurybox init` writes one, `jurybox run suite.yaml` runs it)"
        raise InputError(f"no store at {name}", f"{first}, or name one with --store")


def _is_writable(file: Path) -> bool:
    """Return whether SQLite can write the file and its log."""
    places = (file, file.parent)
    return all(os.access(place, os.W_OK, effective_ids=True) for place in places)


def _lock(file: Path) -> int | None:
    """Return a locked descriptor of the file; None if another process has the lock."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(file, descriptor):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # it was removed between opening and locking


def _is_still(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(file.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
