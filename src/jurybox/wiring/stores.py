"""Opening the store, and finding a run in it."""

from typing import TYPE_CHECKING

from jurybox.errors import InputError
from jurybox.wiring import read_settings

if TYPE_CHECKING:
    from jurybox.running.records import RunRow
    from jurybox.running.storing import Store

DEFAULT = ".jurybox/jurybox.db"
LAST = "last"
_MANY = 5


def open_run_store(url: str | None = None, *, create: bool = False) -> "Store":
    """Open the store that is named, set in the environment, or usual.

    Raises:
        InputError: there is none.
        IncompleteError: it can't be opened.

    """
    from jurybox.storage import open_store

    return open_store(url or read_settings().store or DEFAULT, create=create)


def find_run(store: "Store", name: str) -> "RunRow":
    """Return a run by its id, by the beginning of its id, or the ``last`` one.

    Raises:
        InputError: there is no such run, or there are several.

    """
    if name == LAST:
        newest = store.runs(limit=1)
        if not newest:
            raise InputError("the store has no runs", "run a suite first", LAST)
        return newest[0]
    exact = store.run(name)
    if exact is not None:
        return exact
    found = store.find_runs(name) if name else ()
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(run.id for run in found[:_MANY])
        raise InputError(f"several runs begin so: {ids}", "give more of the id", name)
    raise InputError("no such run", "`jurybox runs` lists them", name)
