"""The store: runs, samples and exchanges in SQLite or PostgreSQL."""

import re
from typing import Final

from jurybox.errors import InputError
from jurybox.storage.schema import Database, require_tables
from jurybox.storage.store import Store

PATIENCE: Final = 30.0
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_SERVERS: Final = {"postgres", "postgresql", "postgresql+psycopg"}
_FORMS: Final = "give the path of a file, sqlite:///PATH or postgresql://..."


def open_store(url: str, *, create: bool = True, patience: float = PATIENCE) -> Store:
    """Open a store; a new one gets its tables.

    Args:
        url: the path of an SQLite file, ``sqlite:///PATH`` or ``postgresql://...``.
        create: whether to create a missing store.
        patience: how many seconds to wait for a lock.
    """
    database = _database(url, create=create, patience=patience)
    try:
        require_tables(database, create=create)
    except BaseException:
        database.close()
        raise
    return Store(database)


def _database(url: str, *, create: bool, patience: float) -> Database:
    # Messages quote only the scheme of the URL, because the rest may contain a password.
    match = _SCHEME.match(url)
    scheme, rest = (match[1].lower(), url[match.end() :]) if match else ("", "")
    if scheme in _SERVERS and rest.startswith("//"):
        try:
            from jurybox.storage.postgres import PostgresDatabase
        except ImportError:
            raise InputError(
                "PostgreSQL needs a driver that isn't installed", "pip install 'jurybox[postgres]'"
            ) from None
        return PostgresDatabase(f"postgresql:{rest}", patience=patience)
    from jurybox.storage.sqlite import SqliteDatabase

    return SqliteDatabase(_path(url, scheme, rest), create=create, patience=patience)


def _path(url: str, scheme: str, rest: str) -> str:
    path = url
    if scheme == "sqlite":
        if not rest.startswith("///") or "?" in rest:
            raise InputError("that isn't the address of an SQLite file", "write sqlite:///PATH")
        path = rest.removeprefix("///")
    elif rest.startswith("//") or scheme in _SERVERS:
        raise InputError(f"`{scheme}:` doesn't begin the address of a store", _FORMS)
    if path in {"", ":memory:"} or "\0" in path:
        raise InputError("a store needs a file", _FORMS)
    return path
