"""Whether somebody is at work on a run: found out by trying to take it, for a moment."""

import threading
import time
from collections import OrderedDict
from typing import Final
from weakref import WeakKeyDictionary

from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.errors import IncompleteError

_KEPT: Final = 1.0
_MOST: Final = 256
_lock: Final = threading.Lock()
# When each run was last found to be nobody's.
_free: Final[WeakKeyDictionary[Store, OrderedDict[str, float]]] = WeakKeyDictionary()


def is_at_work(row: RunRow, store: Store) -> bool | None:
    """Say whether a process is at work on a run; None where a store doesn't let it be found out."""
    # One looks after the other: two at once would each take the other for somebody at work. And
    # whoever wants to go on with a run must not be kept from it by those who look all the time.
    with _lock:
        free = _free.setdefault(store, OrderedDict())
        if time.monotonic() - free.get(row.id, -_KEPT) < _KEPT:
            return False
        try:
            with store.claim(row.id) as mine:
                found = not mine
        except IncompleteError:
            return None
        free.pop(row.id, None)
        if not found:
            free[row.id] = time.monotonic()
        while len(free) > _MOST:
            free.popitem(last=False)
        return found
