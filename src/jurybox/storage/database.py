"""The interface between a store and its database."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol, TypeVar

from jurybox.storage.store_errors import StoreUnreachableError, Trouble, error_of

Values = Sequence[str | float | None]
Found = list[tuple[Any, ...]]

T = TypeVar("T")
_LONGEST: Final = 200
_PAUSE: Final = 0.1


class DatabaseSession(Protocol):
    """One connection to a database; ``?`` in a statement stands for a value.

    Errors are the driver's own. Outside of a transaction each statement is one by itself.
    """

    def rows(self, statement: str, values: Values = ()) -> Found:
        """Return all that is found."""
        ...

    def stream(
        self, statement: str, values: Values = ()
    ) -> AbstractContextManager[Iterator[Found]]:
        """Give what is found in pages, from one state of the database, never all at once."""
        ...

    def execute(self, statement: str, values: Values = ()) -> int:
        """Do something; return how many rows it changed."""
        ...

    def insert(self, statement: str, rows: Sequence[Values]) -> None:
        """Do it once for each row."""
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """Begin a transaction that may write; commit it, or after an error roll it back."""
        ...


class Database(Protocol):
    """Connections, and what their kind of database does in its own way.

    Attributes:
        name: how the store is called in messages; never with a password.
        address: what opens it again, also from another folder.
        patience: the seconds to wait for a lock.
        text_type: how its columns are declared whose texts are compared byte by byte.
        metric: what it takes for the number of a sample's metric, by its name; NULL without one.
        like: its operator that compares a text with a pattern, and knows no case of ASCII letters.

    """

    name: str
    address: str
    patience: float
    text_type: str
    metric: str
    like: str

    def lend(self) -> AbstractContextManager[DatabaseSession]:
        """Lend a connection, which no other thread has until the block ends."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...

    def table_names(self, session: DatabaseSession) -> set[str]:
        """Return the names of all tables that a statement would find."""
        ...

    def refuse_strangers(self, tables: set[str]) -> None:
        """Raise `InputError` if something else's tables are there that jurybox must not touch."""
        ...

    def prepare(self) -> None:
        """See to what a store needs before there are tables in it."""
        ...

    def lock(self, session: DatabaseSession, what: str) -> None:
        """Let no other transaction go on that locks the same, until this one ends."""
        ...

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Hold a run until the block, or the process, ends; False where another process has it."""
        ...

    def trouble(self, error: Exception) -> Trouble | None:
        """Classify an error of its driver; None for any other error."""
        ...


@contextmanager
def reading(database: Database) -> Generator[DatabaseSession]:
    """Give a connection for statements that only read; each sees one state of the store."""
    with telling(database), database.lend() as session:
        yield session


@contextmanager
def writing(database: Database) -> Generator[DatabaseSession]:
    """Give a connection with a transaction that may write from its beginning.

    It is committed at the end of the block; after an error nothing of it is left.
    """
    with telling(database), database.lend() as session, session.transaction():
        yield session


@contextmanager
def telling(database: Database) -> Generator[None]:
    """Turn every error of the database into one for a person."""
    try:
        yield
    except Exception as error:
        trouble = _trouble(database, error)
        if trouble is None:
            raise
        reported = error_of(trouble, database.name, database.patience)
        try:
            raise reported from None
        finally:
            # The driver's error holds the password; chaining it would keep that.
            reported.__context__ = None


def _trouble(database: Database, error: Exception) -> Trouble | None:
    if isinstance(error, UnicodeEncodeError):
        return Trouble(kind="unstorable")
    if isinstance(error, UnicodeDecodeError):  # so garbled that not even the complaint is text
        return Trouble(kind="damaged")
    return database.trouble(error)


def retried(database: Database, work: Callable[[bool], T]) -> T:
    """Return what work returns; it is done again where a server was lost, and may have done it.

    Work is called with whether it is done again.

    Raises:
        IncompleteError: the database is at fault, or the server is still away after the patience.

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
