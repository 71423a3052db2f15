"""The interface between a store and its database, and the messages for database errors."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Literal, Protocol, TypeVar

import msgspec

from jurybox.errors import IncompleteError, InputError, JuryboxError

FaultKind = Literal[
    "full",
    "locked",
    "damaged",
    "read-only",
    "unopenable",
    "unreachable",
    "refused",
    "input-output",
    "stored already",
    "no run",
    "unstorable",
    "other",
]


_RESUME: Final = "then continue with `jurybox resume`"
_WORDS: Final[dict[FaultKind, tuple[str, str]]] = {
    "full": ("the disk is full", f"free disk space, {_RESUME}"),
    "locked": (
        "it has been locked by another process",
        f"let that process finish, or end it, {_RESUME}",
    ),
    "damaged": ("it is damaged", "restore it from a copy, or name another store with --store"),
    "read-only": ("it can't be written", "make the file and its folder writable"),
    "unopenable": ("it can't be opened", "check the path, and that you may write in its folder"),
    "unreachable": (
        "it can't be reached",
        f"check the address, the password and the server, {_RESUME}",
    ),
    "refused": ("the server refuses it", "check the user's permissions on the database"),
    "input-output": (
        "it can't be read or written",
        f"check the disk and its free space, {_RESUME}",
    ),
    "stored already": (
        "the sample, exchange or run is already stored, as if two processes used one run",
        f"let the other process finish, {_RESUME}",
    ),
    "no run": ("the run isn't in it", "restore it from a copy, or run the suite again"),
    "unstorable": (
        "a string has a character that can't be stored, NUL or half of a surrogate pair",
        "remove it from the data",
    ),
    "other": ("it failed", f"fix that, {_RESUME}"),
}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of an error, and the database's own message."""

    kind: FaultKind
    detail: str = ""


class StoreUnreachableError(IncompleteError):
    """The server can't be reached; whether the last request succeeded is unknown."""


def error_of(fault: Fault, store: str, patience: float) -> JuryboxError:
    """Return the error for the user: what is wrong, and how to fix it."""
    where = f"store {store}"
    problem, hint = _WORDS[fault.kind]
    if fault.kind == "unstorable":
        return InputError(problem, hint, where)
    if fault.kind == "locked":
        problem = f"{problem} for more than {patience:g} s"
    detail = f" ({fault.detail})" if fault.detail else ""
    kind = StoreUnreachableError if fault.kind == "unreachable" else IncompleteError
    return kind(f"{where}: {problem}{detail}; {hint}")


Values = Sequence[str | float | None]
Found = list[tuple[Any, ...]]

T = TypeVar("T")
EVERY: Final = range(-(2**63), 2**63)
"""The range of all possible sample numbers."""
ALL: Final = 2**63 - 1
"""A limit without effect, valid in both databases."""
_LONGEST: Final = 200
_PAUSE: Final = 0.1


class DatabaseSession(Protocol):
    """One connection to a database; ``?`` in a statement is replaced by a value.

    Errors are the driver's own. Outside a transaction, each statement is its own transaction.
    """

    def rows(self, statement: str, values: Values = ()) -> Found:
        """Return all rows found."""
        ...

    def stream(
        self, statement: str, values: Values = ()
    ) -> AbstractContextManager[Iterator[Found]]:
        """Return the rows in pages, from one state of the database."""
        ...

    def execute(self, statement: str, values: Values = ()) -> int:
        """Execute a statement; return how many rows it changed."""
        ...

    def insert(self, statement: str, rows: Sequence[Values]) -> None:
        """Execute a statement for each row."""
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """Begin a transaction that may write; commit it, or roll it back after an error."""
        ...


LOSSES: Final = "CASE winner WHEN 'B' THEN 0 WHEN 'tie' THEN 1 ELSE 2 END"
"""Sorts pairs: those that response A lost, then ties, then all others."""


class Database(Protocol):
    """Connections, and everything that differs between databases."""

    name: str  # the name of the store in messages, without a password
    address: str  # the address that opens it again, even from a different folder
    patience: float  # the seconds to wait for a lock
    text_type: str  # the type of text columns that are compared byte by byte
    clustered: str  # the clause that stores rows in the order of their key; empty if unsupported
    metric: str  # the expression for a sample's metric `{name}`, NULL if missing
    indexes: tuple[str, ...]  # additional statements to create its own indexes
    # The operator that matches a pattern, ignoring the case of ASCII letters.
    like: str
    numbers: str  # the aggregate that returns the numbers of all rows as a JSON list
    among: str  # the condition that a number is in a JSON list

    def lend(self) -> AbstractContextManager[DatabaseSession]:
        """Lend a connection to one thread until the block ends."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...

    def table_names(self, session: DatabaseSession) -> set[str]:
        """Return the names of all tables that an unqualified name can refer to."""
        ...

    def refuse_strangers(self, tables: set[str]) -> None:
        """Raise `InputError` if another program's tables are in the way."""
        ...

    def prepare(self) -> None:
        """Prepare a new database for its tables."""
        ...

    def lock(self, session: DatabaseSession, what: str) -> None:
        """Block other transactions that take the same lock, until this transaction ends."""
        ...

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Lock a run until the block or the process ends; False if another process has it."""
        ...

    def classify(self, error: Exception) -> Fault | None:
        """Classify an error of the driver; None for any other error."""
        ...


@contextmanager
def reading(database: Database) -> Generator[DatabaseSession]:
    """Lend a connection for reading; each statement sees one state of the store."""
    with explained_errors(database), database.lend() as session:
        yield session


@contextmanager
def writing(database: Database) -> Generator[DatabaseSession]:
    """Lend a connection with a write transaction.

    It is committed at the end of the block, or rolled back after an error.
    """
    with explained_errors(database), database.lend() as session, session.transaction():
        yield session


@contextmanager
def explained_errors(database: Database) -> Generator[None]:
    """Turn every database error into an error with a hint for the user."""
    try:
        yield
    except Exception as error:
        fault = _classify(database, error)
        if fault is None:
            raise
        reported = error_of(fault, database.name, database.patience)
        try:
            raise reported from None
        finally:
            # The driver's error may contain the password, so it isn't chained.
            reported.__context__ = None


def _classify(database: Database, error: Exception) -> Fault | None:
    if isinstance(error, UnicodeEncodeError):
        return Fault(kind="unstorable")
    if isinstance(error, UnicodeDecodeError):  # the message itself can't be decoded
        return Fault(kind="damaged")
    return database.classify(error)


def retried(database: Database, work: Callable[[bool], T]) -> T:
    """Return the result of ``work``; repeat it if the connection to the server was lost.

    ``work`` gets True when it is repeated, since the first attempt may have succeeded.
    """
    deadline = time.monotonic() + database.patience
    again = False
    while True:
        try:
            return work(again)
        except StoreUnreachableError:
            if time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE)
        again = True


def one_line(text: str) -> str:
    """Return a database's error message, shortened to one line."""
    words = "".join(each if each.isprintable() else " " for each in text)
    line = " ".join(words.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
