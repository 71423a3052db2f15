"""A store in a PostgreSQL database."""

import logging
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import ConnectionPool

from jurybox.errors import InputError
from jurybox.storage import database

_CONNECT_TIMEOUT: Final = 10
_MOST_CONNECTIONS: Final = 16
_AT_ONCE: Final = 500
# Prefixes of SQLSTATE, the longest first.
_KINDS: Final[dict[str, database.FaultKind]] = {
    "23503": "no run",
    "53100": "full",
    "55P03": "locked",
    "57014": "other",
    "3D000": "refused",
    "42501": "refused",
    "25006": "read-only",
    "22021": "unstorable",
    "08": "unreachable",
    "23": "stored already",
    "28": "refused",
    "42": "damaged",  # our statements are valid, so the tables must be wrong
    "53": "unreachable",
    "57": "unreachable",
    "XX": "damaged",
}
_PLAIN_INSERT: Final = re.compile(r"INSERT INTO (\w+ \([\w, ]+\)) VALUES \([?, ]+\)")
# With these, the server notices within a minute that a client is gone, and releases its locks.
_SETTINGS: Final = (
    "SELECT set_config('lock_timeout', ?, false), set_config('tcp_keepalives_idle', '30', false),"
    " set_config('tcp_keepalives_interval', '10', false),"
    " set_config('tcp_keepalives_count', '3', false)"
)
_TABLES: Final = (
    "SELECT relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace AS schemas"
    " ON schemas.oid = relnamespace WHERE relkind IN ('r', 'p') AND relpersistence <> 't'"
    " AND pg_catalog.pg_table_is_visible(pg_class.oid) AND schemas.nspname <> 'pg_catalog'"
)
_KEY: Final = "hashtextextended(coalesce(current_schema(), '') || ' jurybox ' || ?, 0)"
_TRY: Final = f"SELECT pg_try_advisory_lock({_KEY})"
_RELEASE: Final = f"SELECT pg_advisory_unlock({_KEY})"
_LOCK: Final = f"SELECT pg_advisory_xact_lock({_KEY})"


# Keep the pool's warnings on lost connections off standard error unless a user sets up logging.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


class PostgresSession(database.BaseSession):
    """A connection; each statement is its own transaction unless one was begun."""

    def __init__(self, raw: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._raw = raw

    @contextmanager
    def stream(
        self, statement: str, values: database.Values = ()
    ) -> Generator[Iterator[database.Found]]:
        """Return the rows in pages; the server keeps them until they are fetched."""
        with self._raw.transaction(), self._raw.cursor("jurybox") as cursor:
            cursor.execute(_in_its_words(statement), values)
            yield iter(partial(cursor.fetchmany, _AT_ONCE), [])

    def query(
        self, statement: str, values: database.Values = ()
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        """Execute a statement; return the cursor over its rows."""
        return self._raw.execute(_in_its_words(statement), values or None)

    def insert(self, statement: str, rows: Sequence[database.Values]) -> None:
        """Use COPY for a plain INSERT; otherwise execute the statement for each row, pipelined."""
        plain = _PLAIN_INSERT.fullmatch(statement)
        with self._raw.cursor() as cursor:
            if plain is None:
                cursor.executemany(_in_its_words(statement), rows)
                return
            with cursor.copy(f"COPY {plain[1]} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)

    def transaction(self) -> AbstractContextManager[object]:
        """Begin a transaction."""
        return self._raw.transaction()

    def lock(self, what: str) -> None:
        """Wait for an advisory lock, which is released when the transaction ends."""
        self.rows(_LOCK, (what,))


def _in_its_words(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


class PostgresDatabase(database.BaseDatabase[PostgresSession]):
    """A PostgreSQL database; the tables are in the first schema of its search path."""

    text_type = 'TEXT COLLATE "C"'  # the same order of ids and hashes in every locale
    clustered = ""
    metric = "CAST(CAST(metrics AS json) ->> '{name}' AS double precision)"
    indexes = ()  # expressions on JSON can't be indexed here, because they aren't immutable
    like = "ILIKE"
    numbers = "CAST(json_agg(number) AS text)"
    among = "number IN (SELECT CAST(json_array_elements_text(CAST(? AS json)) AS bigint))"
    tables = _TABLES
    is_shared = True
    elsewhere = "give jurybox a database of its own, or a schema by `options=-csearch_path=NAME`"

    def __init__(self, url: str, *, patience: float) -> None:
        """Connect once without the pool, because a pool would wait for an unreachable server."""
        self.patience = patience
        self.address = url
        self._parameters = _parameters(url)
        self.name = _name(self._parameters)
        with self.explained_errors(), psycopg.connect(**self._parameters) as connection:
            encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise InputError(
                f"its encoding is {encoding}",
                "give jurybox a database with `ENCODING 'UTF8'`",
                f"store {self.name}",
            )
        self._pool = ConnectionPool[psycopg.Connection[tuple[Any, ...]]](
            kwargs=lambda: self._parameters,  # a function, so that the pool doesn't show a password
            min_size=0,
            max_size=_MOST_CONNECTIONS,
            configure=self._configure,
            check=ConnectionPool.check_connection,
            num_workers=1,
            open=True,
        )

    def _configure(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        milliseconds = max(self.patience * 1000, 1)  # 0 would mean no limit
        PostgresSession(connection).rows(_SETTINGS, (f"{milliseconds:.0f}ms",))

    @contextmanager
    def lend(self) -> Generator[PostgresSession]:
        """Lend a connection that is known to work; a lost one is replaced."""
        with self._pool.connection() as connection:
            yield PostgresSession(connection)

    def close(self) -> None:
        """Close the pool."""
        self._pool.close()

    def prepare(self) -> None:
        """Do nothing: a server needs no preparation."""

    @contextmanager
    def claim(self, run_id: str) -> Generator[bool]:
        """Claim a run with a session lock, which is released when the connection ends."""
        what = (f"run {run_id}",)
        with ExitStack() as stack:
            with self.explained_errors():
                session = stack.enter_context(self.lend())
                held = session.rows(_TRY, what) == [(True,)]
            try:
                yield held
            finally:
                if held:
                    with suppress(psycopg.Error):  # the lock is lost with its connection
                        session.rows(_RELEASE, what)

    def classify(self, error: Exception) -> database.Fault | None:
        """Classify a PostgreSQL error by its SQLSTATE."""
        if not isinstance(error, psycopg.Error):
            return None
        kind = _kind(error)
        plain = kind in {"full", "locked", "stored already", "no run", "unstorable"}
        return database.Fault(kind=kind, detail="" if plain else self._without_secrets(str(error)))

    def _without_secrets(self, detail: str) -> str:
        for name in ("password", "sslpassword"):
            secret = str(self._parameters.get(name) or "")
            for form in {secret, quote(secret, safe="")} - {""}:
                detail = detail.replace(form, "***")
        return database.one_line(detail)


def _kind(error: psycopg.Error) -> database.FaultKind:
    if error.sqlstate is None:
        if isinstance(error, psycopg.DataError):
            return "unstorable"  # the driver refuses NUL before the server can
        return "unreachable" if isinstance(error, psycopg.OperationalError) else "other"
    state = error.sqlstate
    known: list[database.FaultKind] = [
        kind for start, kind in _KINDS.items() if state.startswith(start)
    ]
    return known[0] if known else "other"


def _parameters(url: str) -> dict[str, Any]:
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        given = None
    if given is None:  # the driver's message would show the password
        raise InputError(
            "the address of the store can't be read",
            "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %-escapes in each part",
        )
    defaults = {"connect_timeout": _CONNECT_TIMEOUT, "application_name": "jurybox"}
    return {**defaults, **given, "client_encoding": "UTF8", "autocommit": True}


def _name(parameters: dict[str, Any]) -> str:
    user = f"{parameters['user']}@" if "user" in parameters else ""
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"postgresql://{user}{parameters.get('host', '')}{port}/{parameters.get('dbname', '')}"
