"""A store in a PostgreSQL database."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from jurybox.errors import InputError
from jurybox.storage.database import one_line, telling
from jurybox.storage.pool import Pool, Session
from jurybox.storage.postgres_session import PostgresSession
from jurybox.storage.tables import NAMES
from jurybox.storage.trouble import Trouble, TroubleKind

if TYPE_CHECKING:
    import psycopg

_CONNECT_TIMEOUT: Final = 10
# The beginnings of SQLSTATE, the longest first.
_KINDS: Final[dict[str, TroubleKind]] = {
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
    "42": "damaged",  # our statements are right, so the tables aren't
    "53": "unreachable",
    "57": "unreachable",
    "XX": "damaged",
}
# The server notices within a minute that a machine is gone, and frees what it claimed.
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


class PostgresDatabase:
    """A PostgreSQL database; the tables are in the schema that its search path begins with."""

    text_type = 'TEXT COLLATE "C"'  # one order of ids and hashes, wherever the server stands
    figure = "CAST(CAST(figures AS json) ->> ? AS double precision)"
    like = "ILIKE"

    def __init__(self, url: str, *, patience: float) -> None:
        """Read the address; nothing is connected yet.

        Raises:
            InputError: it can't be read, or there is no driver.

        """
        self.patience = patience
        self._parameters = _parameters(url)
        self.name = _name(self._parameters)
        self.pool = Pool(self._connect)

    def _connect(self) -> PostgresSession:
        import psycopg

        # Transactions begin where we say; what only reads needs none, and no turn to end it.
        session = PostgresSession(psycopg.connect(**self._parameters, autocommit=True))
        try:
            # 0 would be for ever
            session.rows(_SETTINGS, (f"{max(self.patience * 1000, 1):.0f}ms",))
        except BaseException:
            session.close()
            raise
        return session

    def table_names(self, session: Session) -> set[str]:
        """Return the names of all tables on the search path but the server's own."""
        return {str(name) for (name,) in session.rows(_TABLES)}

    def refuse_strangers(self, tables: set[str]) -> None:
        """Refuse only what is in the way: several programs may share a database."""
        taken = tables & NAMES
        if taken:
            raise InputError(
                f"it has a table `{min(taken)}` of another program",
                "give jurybox a database of its own, or a schema by `options=-csearch_path=NAME`",
                f"store {self.name}",
            )

    def prepare(self) -> None:
        """Refuse an encoding that can't hold every text."""
        with telling(self), self.pool.lend() as session:
            ((encoding,),) = session.rows("SHOW server_encoding")
        if encoding != "UTF8":
            raise InputError(
                f"its encoding is {encoding}",
                "give jurybox a database with `ENCODING 'UTF8'`",
                f"store {self.name}",
            )

    def lock_schema(self, session: Session) -> None:
        """Wait for the right to change the tables."""
        session.rows(_LOCK, ("schema",))

    @contextmanager
    def claim(self, run_id: str) -> Generator[bool]:
        """Hold a run by a lock of the session, which ends with the connection."""
        what = (f"run {run_id}",)
        with telling(self):
            session = self.pool.take()
        try:
            with telling(self):
                held = session.rows(_TRY, what) == [(True,)]
            try:
                yield held
            finally:
                if held:
                    _release(session, what)
        finally:
            self.pool.give_back(session)

    def trouble(self, error: Exception) -> Trouble | None:
        """Tell errors of PostgreSQL by their states."""
        import psycopg

        if not isinstance(error, psycopg.Error):
            return None
        kind = _kind(error)
        silent = kind in {"full", "locked", "stored already", "no run", "unstorable"}
        return Trouble(kind=kind, said="" if silent else self._without_secrets(str(error)))

    def _without_secrets(self, said: str) -> str:
        for name in ("password", "sslpassword"):
            secret = str(self._parameters.get(name) or "")
            for form in {secret, quote(secret, safe="")} - {""}:
                said = said.replace(form, "***")
        return one_line(said)


def _kind(error: "psycopg.Error") -> TroubleKind:
    import psycopg

    if error.sqlstate is None:
        if isinstance(error, psycopg.DataError):
            return "unstorable"  # the driver refuses NUL before the server can
        return "unreachable" if isinstance(error, psycopg.OperationalError) else "other"
    state = error.sqlstate
    known: list[TroubleKind] = [kind for start, kind in _KINDS.items() if state.startswith(start)]
    return known[0] if known else "other"


def _release(session: Session, what: tuple[str]) -> None:
    import psycopg

    try:
        session.rows(_RELEASE, what)
    except psycopg.Error:
        # Without its connection the lock is gone, too; what the block did is what counts.
        session.close()


def _parameters(url: str) -> dict[str, Any]:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise InputError(
            "PostgreSQL needs a driver that isn't installed", "pip install 'jurybox[postgres]'"
        ) from None
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error:
        given = None
    if given is None:  # what the driver says about it would show the password
        raise InputError(
            "the address of the store can't be read",
            "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %-escapes in each part",
        )
    defaults = {"connect_timeout": _CONNECT_TIMEOUT, "application_name": "jurybox"}
    return {**defaults, **given, "client_encoding": "UTF8"}


def _name(parameters: dict[str, Any]) -> str:
    user = f"{parameters['user']}@" if "user" in parameters else ""
    port = f":{parameters['port']}" if "port" in parameters else ""
    return f"postgresql://{user}{parameters.get('host', '')}{port}/{parameters.get('dbname', '')}"
