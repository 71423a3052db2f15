"""From what a database finds to rows.

Many rows are read in pages, each in a transaction of its own that goes on where the last one ended.
So nothing is held between two pages: not the rows, not a connection, and not a snapshot that would
keep SQLite's write-ahead log from being emptied.
"""

from collections.abc import Generator, Iterator
from operator import lt
from typing import TypeVar

import msgspec

from jurybox.engine.ports import EVERY
from jurybox.storage.database import Database, Found, Values, reading, retried
from jurybox.storage.statements import Paged
from jurybox.storage.store_errors import Trouble, TroubleKind, error_of

T = TypeVar("T")


class PagedReader:
    """Reads rows of a database; any thread may call it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, kind: type[list[T]], statement: str, values: Values) -> list[T]:
        """Return all that is found."""
        if not all(map(storable, values)):
            return []  # no row has it, and the databases wouldn't agree about the question
        with reading(self._database) as session:
            found = session.rows(statement, values)
        return self.read(kind, found)

    def pages(self, paged: Paged[T], run_id: str, numbers: range = EVERY) -> Iterator[T]:
        """Yield what is found of these samples of a run, in order."""
        last, end = paged.before(numbers.start), numbers.stop - 1
        while True:
            values = (run_id, *last, end, paged.size)
            page = self._page(paged, values)
            keys = [last, *map(paged.key, page)]
            if not all(map(lt, keys, keys[1:])):
                # An index is out of order, and would lead in circles.
                raise self.error("damaged")
            last = keys[-1]
            yield from page
            if len(page) < paged.size:
                return

    def _page(self, paged: Paged[T], values: Values) -> list[T]:
        return retried(self._database, lambda _: self.rows(paged.kind, paged.statement, values))

    def stream(self, kind: type[list[T]], statement: str, values: Values) -> Generator[T]:
        """Yield all that is found, from one state of the database, never all at once."""
        if not all(map(storable, values)):
            return
        with (
            reading(self._database) as session,
            session.stream(statement, values) as pages,
        ):
            for page in pages:
                yield from self.read(kind, page)

    def read(self, kind: type[list[T]], found: Found) -> list[T]:
        """Make rows of what was found; a whole page at once costs a tenth of one by one."""
        try:
            return msgspec.convert(found, kind)
        except msgspec.ValidationError:
            pass
        raise self.error("damaged")

    def error(self, kind: TroubleKind) -> Exception:
        """Return an error about the database."""
        return error_of(Trouble(kind=kind), self._database.name, self._database.patience)


def storable(value: str | float | None) -> bool:
    """Tell whether a value can be in a row at all."""
    if not isinstance(value, str):
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
