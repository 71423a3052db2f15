"""Connections that are lent to one thread at a time, and kept for the next one."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from time import monotonic
from typing import Any, Final, Protocol

Values = Sequence[str | float | None]
Found = list[tuple[Any, ...]]

_MOST_IDLE: Final = 5


class Session(Protocol):
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

    def begin(self) -> None:
        """Begin a transaction that may write."""
        ...

    def commit(self) -> None:
        """End the transaction and keep what it did."""
        ...

    def roll_back(self) -> None:
        """End the transaction and keep nothing; where not even that can be done, say nothing."""
        ...

    def is_alive(self, idle: float) -> bool:
        """Tell whether it can still be used, after so many seconds in which nobody did."""
        ...

    def is_clean(self) -> bool:
        """Tell whether somebody else may use it next."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class Pool:
    """Takes connections from a stack, and makes one where there is none.

    There are as many as are in use at once; only some are kept. It may be used again after it was
    closed, and what was lent before that is closed when it comes back.
    """

    def __init__(self, connect: Callable[[], Session]) -> None:
        self._connect = connect
        self._lock = Lock()
        self._idle: list[tuple[Session, float]] = []
        self._lent: set[Session] = set()

    @contextmanager
    def lend(self) -> Generator[Session]:
        """Lend a connection for a block."""
        session = self.take()
        try:
            yield session
        finally:
            self.give_back(session)

    def take(self) -> Session:
        """Lend a connection until it is given back."""
        session = self._left() or self._connect()
        with self._lock:
            self._lent.add(session)
        return session

    def give_back(self, session: Session) -> None:
        """Keep it for the next one; what is broken or amid something is closed instead."""
        clean = session.is_clean()
        with self._lock:
            keep = clean and session in self._lent and len(self._idle) < _MOST_IDLE
            self._lent.discard(session)
            if keep:
                self._idle.append((session, monotonic()))
        if not keep:
            session.close()

    def close(self) -> None:
        """Close what nobody uses, and forget what is lent."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._lent.clear()
        for session, _ in idle:
            session.close()

    def _left(self) -> Session | None:
        """Return one that is left; those that were lost meanwhile are closed."""
        while True:
            try:
                session, since = self._idle.pop()
            except IndexError:
                return None
            if session.is_alive(monotonic() - since):
                return session
            session.close()
