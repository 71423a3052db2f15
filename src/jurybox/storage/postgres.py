"""A store in a PostgreSQL database."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from jurybox.errors import InputError
from jurybox.storage.database import one_line, reading, telling
from jurybox.storage.tables import metadata
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
_SESSION: Final = "SELECT " + ", ".join(
    f"set_config('{name}', %({name})s, false)"
    for name in (
        "lock_timeout",
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
        "tcp_keepalives_count",
    )
)
_KEY: Final = "hashtextextended(coalesce(current_schema(), '') || ' jurybox ' || :what, 0)"
_TRY: Final = text(f"SELECT pg_try_advisory_lock({_KEY})")
_RELEASE: Final = text(f"SELECT pg_advisory_unlock({_KEY})")
_LOCK: Final = text(f"SELECT pg_advisory_xact_lock({_KEY})")


class PostgresDatabase:
    """A PostgreSQL database; the tables are in the schema that its search path begins with."""

    placeholder = "%s"
    text_type = 'TEXT COLLATE "C"'  # one order of ids and hashes, wherever the server stands

    def __init__(self, url: str, *, patience: float) -> None:
        """Read the address; nothing is connected yet.

        Raises:
            InputError: it can't be read, or there is no driver.

        """
        self.patience = patience
        self._parameters = _parameters(url)
        self.name = _name(self._parameters)
        # The address stays out of the engine, which would show it to whoever prints the engine.
        self.engine = create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            pool_pre_ping=True,  # a run may think for minutes, and a server be restarted meanwhile
            hide_parameters=True,
            use_native_hstore=False,  # one question less for each connection
        )

    def _connect(self) -> "psycopg.Connection":
        import psycopg

        connection = psycopg.connect(**self._parameters, autocommit=True)
        try:
            # The server notices within a minute that a machine is gone, and frees what it claimed.
            connection.execute(
                _SESSION,
                {
                    "lock_timeout": f"{max(self.patience * 1000, 1):.0f}ms",  # 0 would be for ever
                    "tcp_keepalives_idle": "30",
                    "tcp_keepalives_interval": "10",
                    "tcp_keepalives_count": "3",
                },
            )
            connection.autocommit = False
        except BaseException:
            connection.close()
            raise
        return connection

    def refuse_strangers(self, tables: set[str]) -> None:
        """Refuse only what is in the way: several programs may share a database."""
        taken = tables & metadata.tables.keys()
        if taken:
            raise InputError(
                f"it has a table `{min(taken)}` of another program",
                "give jurybox a database of its own, or a schema by `options=-csearch_path=NAME`",
                f"store {self.name}",
            )

    def prepare(self) -> None:
        """Refuse an encoding that can't hold every text."""
        with reading(self) as connection:
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise InputError(
                f"its encoding is {encoding}",
                "give jurybox a database with `ENCODING 'UTF8'`",
                f"store {self.name}",
            )

    def lock_schema(self, connection: Connection) -> None:
        """Wait for the right to change the tables."""
        connection.execute(_LOCK, {"what": "schema"})

    @contextmanager
    def claim(self, run_id: str) -> Generator[bool]:
        """Hold a run by a lock of the session, which ends with the connection."""
        what = {"what": f"run {run_id}"}
        with telling(self):
            connection = self.engine.connect()
        with connection:
            with telling(self):
                connection.execution_options(isolation_level="AUTOCOMMIT")
                held = bool(connection.execute(_TRY, what).scalar_one())
            try:
                yield held
            finally:
                if held:
                    _release(connection, what)

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


def _release(connection: Connection, what: dict[str, str]) -> None:
    # Without its connection the lock is gone already; what the block did is what counts.
    with suppress(SQLAlchemyError):
        connection.execute(_RELEASE, what)
        return
    connection.invalidate()


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
