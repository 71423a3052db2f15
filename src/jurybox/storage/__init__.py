"""The store: runs, samples and exchanges in SQLite or PostgreSQL, behind the engine's `Store`."""

from jurybox.engine.ports import Store

PATIENCE = 30.0


def open_store(url: str, *, create: bool = True, patience: float = PATIENCE) -> Store:
    """Open a store; a new one gets its tables.

    Args:
        url: the path of an SQLite file, ``sqlite:///PATH`` or ``postgresql://...``.
        create: make the store where there is none yet; a command that only reads says no.
        patience: how many seconds to wait for a lock.

    Raises:
        InputError: that is no address of a store, or what is there is none that can be used.
        IncompleteError: it is damaged, locked, read-only, out of space or out of reach.

    """
    from jurybox.storage.store import SqlStore
    from jurybox.storage.store_url import open_database

    return SqlStore(open_database(url, create=create, patience=patience))
