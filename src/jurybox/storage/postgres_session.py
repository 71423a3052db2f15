"""A connection to a PostgreSQL server."""

import select
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from jurybox.storage.pool import Found, Values

if TYPE_CHECKING:
    import psycopg

_AT_ONCE: Final = 5000
_FRESH: Final = 1.0


class PostgresSession:
    """A connection in which each statement is a transaction unless one was begun."""

    def __init__(self, raw: "psycopg.Connection[tuple[Any, ...]]") -> None:
        self._raw = raw

    def rows(self, statement: str, values: Values = ()) -> Found:
        """Return all that is found."""
        return self._raw.execute(_in_its_words(statement), values or None).fetchall()

    @contextmanager
    def stream(self, statement: str, values: Values = ()) -> Generator[Iterator[Found]]:
        """Give what is found in pages, which the server keeps until they are asked for."""
        with self._raw.transaction(), self._raw.cursor("jurybox") as cursor:
            cursor.execute(_in_its_words(statement), values)
            yield iter(partial(cursor.fetchmany, _AT_ONCE), [])

    def execute(self, statement: str, values: Values = ()) -> int:
        """Do something; return how many rows it changed."""
        return self._raw.execute(_in_its_words(statement), values or None).rowcount

    def insert(self, statement: str, rows: Sequence[Values]) -> None:
        """Do it once for each row, without a turn to the server for each."""
        with self._raw.cursor() as cursor:
            cursor.executemany(_in_its_words(statement), rows)

    def begin(self) -> None:
        """Begin a transaction."""
        self._raw.execute(b"BEGIN")

    def commit(self) -> None:
        """End the transaction and keep what it did."""
        self._raw.commit()

    def roll_back(self) -> None:
        """End the transaction and keep nothing; a lost connection has ended it by itself."""
        import psycopg

        with suppress(psycopg.Error):
            self._raw.rollback()

    def is_alive(self, idle: float) -> bool:
        """Tell whether the server is still there.

        A run may think for minutes, and a server be restarted meanwhile. What the server sends
        without being asked is a farewell; after a while it is asked, for it may have sent nothing.
        """
        import psycopg

        try:
            if idle > _FRESH or self._has_mail():
                self._raw.execute(b"")
        except psycopg.Error:
            return False
        return True

    def _has_mail(self) -> bool:
        mail = select.poll()
        mail.register(self._raw.fileno(), select.POLLIN)
        return bool(mail.poll(0))

    def is_clean(self) -> bool:
        """Tell whether no transaction is open, and the connection neither closed nor lost."""
        from psycopg.pq import TransactionStatus

        return self._raw.info.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        """Let go of the connection."""
        self._raw.close()


def _in_its_words(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()
