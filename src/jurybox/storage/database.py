"""What the databases of a store share, and the messages for their errors."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Generic, Literal, TypeVar

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


def _error_of(fault: Fault, store: str, patience: float) -> JuryboxError:
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

EVERY: Final = range(-(2**63), 2**63)
"""The range of all possible sample numbers."""
ALL: Final = 2**63 - 1
"""A limit without effect, valid in both databases."""
_LONGEST: Final = 200
_PAUSE: Final = 0.1
T = TypeVar("T")


LOSSES: Final = "CASE winner WHEN 'B' THEN 0 WHEN 'tie' THEN 1 ELSE 2 END"
"""Sorts pairs: those that response A lost, then ties, then all others."""


class BaseSession(ABC):
    """A connection; ``?`` in a statement is replaced by a value."""

    @abstractmethod
    def query(self, statement: str, values: Values = ()) -> Any:  # noqa: ANN401 - the driver's
        """Execute a statement; return the cursor over its rows."""

    def rows(self, statement: str, values: Values = ()) -> Found:
        """Return all rows found."""
        return self.query(statement, values).fetchall()

    def execute(self, statement: str, values: Values = ()) -> int:
        """Execute a statement; return how many rows it changed."""
        return self.query(statement, values).rowcount

    @abstractmethod
    def transaction(self) -> AbstractContextManager[object]:
        """Begin a transaction that may write; commit it, or roll it back after an error."""


S = TypeVar("S", bound=BaseSession)


class BaseDatabase(ABC, Generic[S]):
    """What both databases share: they lend connections, and explain the errors of their driver."""

    name: str  # the name of the store in messages, without a password
    address: str  # the address that opens it again, even from a different folder
    patience: float  # the seconds to wait for a lock

    @abstractmethod
    def lend(self) -> AbstractContextManager[S]:
        """Lend a connection to one thread until the block ends."""

    @contextmanager
    def reading(self) -> Generator[S]:
        """Lend a connection for reading; each statement sees one state of the store."""
        with self.explained_errors(), self.lend() as session:
            yield session

    @contextmanager
    def writing(self) -> Generator[S]:
        """Lend a connection with a write transaction.

        It is committed at the end of the block, or rolled back after an error.
        """
        with self.explained_errors(), self.lend() as session, session.transaction():
            yield session

    def retried(self, work: Callable[[bool], T]) -> T:
        """Return the result of ``work``; repeat it if the connection to the server was lost.

        ``work`` gets True when it is repeated, since the first attempt may have succeeded.
        """
        deadline = time.monotonic() + self.patience
        again = False
        while True:
            try:
                return work(again)
            except StoreUnreachableError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_PAUSE)
            again = True

    @abstractmethod
    def classify(self, error: Exception) -> Fault | None:
        """Classify an error of the driver; None for any other error."""

    def error(self, kind: FaultKind) -> JuryboxError:
        """Return the error for the user."""
        return _error_of(Fault(kind=kind), self.name, self.patience)

    @contextmanager
    def explained_errors(self) -> Generator[None]:
        """Turn every database error into an error with a hint for the user."""
        try:
            yield
        except Exception as error:
            fault = self._fault(error)
            if fault is None:
                raise
            reported = _error_of(fault, self.name, self.patience)
            try:
                raise reported from None
            finally:
                # The driver's error may contain the password, so it isn't chained.
                reported.__context__ = None

    def _fault(self, error: Exception) -> Fault | None:
        if isinstance(error, UnicodeEncodeError):
            return Fault(kind="unstorable")
        if isinstance(error, UnicodeDecodeError):  # the message itself can't be decoded
            return Fault(kind="damaged")
        return self.classify(error)


def one_line(text: str) -> str:
    """Return a database's error message, shortened to one line."""
    words = "".join(each if each.isprintable() else " " for each in text)
    line = " ".join(words.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
