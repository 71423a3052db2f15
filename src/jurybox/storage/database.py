"""What a store needs from a database, whichever it is."""

import logging
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from jurybox.storage.trouble import Trouble, error_of

WRITING: Final = "jurybox_writing"
_LONGEST: Final = 200

# What goes wrong while a broken connection is put away is logged with a traceback. Python would
# print that where nobody has set up a log, though the error itself is told in a line of its own.
logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())


class Database(Protocol):
    """An engine, and what its kind of database does in its own way.

    Attributes:
        name: how the store is called in messages; never with a password.
        patience: the seconds to wait for somebody who has locked it.
        placeholder: what stands for a value in a statement of its driver.
        text_type: how its columns are declared whose texts are compared byte by byte.
        engine: the pool of connections.

    """

    name: str
    patience: float
    placeholder: str
    text_type: str
    engine: Engine

    def refuse_strangers(self, tables: set[str]) -> None:
        """Raise `InputError` if something else's tables are there that jurybox must not touch."""
        ...

    def prepare(self) -> None:
        """See to what a store needs before there are tables in it."""
        ...

    def lock_schema(self, connection: Connection) -> None:
        """Let nobody else change the tables until the transaction ends."""
        ...

    def claim(self, run_id: str) -> AbstractContextManager[bool]:
        """Hold a run until the block, or the process, ends; False where somebody else has it."""
        ...

    def trouble(self, error: Exception) -> Trouble | None:
        """Return what an error of its driver means; None where it is none of its driver."""
        ...


@contextmanager
def reading(database: Database) -> Generator[Connection]:
    """Give a connection for statements that only read."""
    with telling(database), database.engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def writing(database: Database) -> Generator[Connection]:
    """Give a connection with a transaction that may write from its beginning.

    It is committed at the end of the block; after an error nothing of it is left.
    """
    with telling(database), database.engine.connect() as connection:
        connection.execution_options(**{WRITING: True})
        with connection.begin():
            yield connection


@contextmanager
def telling(database: Database) -> Generator[None]:
    """Turn every error of the database into one for a person."""
    try:
        yield
    except Exception as error:
        trouble = _trouble(database, error)
        if trouble is None:
            raise
        told = error_of(trouble, database.name, database.patience)
        try:
            raise told from None
        finally:
            # The driver's error knows the password, and whoever keeps this one would keep that.
            told.__context__ = None


def _trouble(database: Database, error: Exception) -> Trouble | None:
    if isinstance(error, UnicodeEncodeError):
        return Trouble(kind="unstorable")
    if isinstance(error, UnicodeDecodeError):  # so garbled that not even the complaint is text
        return Trouble(kind="damaged")
    cause = error.orig if isinstance(error, DBAPIError) else None
    known = database.trouble(cause if isinstance(cause, Exception) else error)
    if known is None and isinstance(error, SQLAlchemyError):
        return Trouble(kind="other", said=one_line(str(error)))
    return known


def one_line(text: str) -> str:
    """Return what a database said, as much of it as fits in a line."""
    words = "".join(each if each.isprintable() else " " for each in text)
    line = " ".join(words.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."
