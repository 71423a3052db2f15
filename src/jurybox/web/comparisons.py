"""Comparisons of two runs: each takes all samples of both, so the last few are kept."""

import threading
from collections import OrderedDict
from typing import Final

from jurybox.reporting.comparing import Side, Wish, compare
from jurybox.reporting.run_diff import RunDiff
from jurybox.running.records import RunRow
from jurybox.running.storing import Store
from jurybox.wiring.live import LiveRuns

LISTED: Final = 50
"""So many changed samples are told."""
_KEPT: Final = 4


class Comparisons:
    """Holds runs against each other; any thread may ask."""

    def __init__(self, store: Store, live: LiveRuns) -> None:
        self._store = store
        self._live = live
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[str, ...], RunDiff] = OrderedDict()

    def of(self, one: RunRow, other: RunRow) -> RunDiff:
        """Hold two runs against each other.

        Raises:
            IncompleteError: what is stored can't be read.

        """
        rows = (one, other)
        key = tuple(f"{row.id}\n{row.digest}" for row in rows)
        # One at a time: two of them would only make both slower.
        with self._lock:
            made = self._made.get(key)
            if made is None:
                a, b = (Side(row=row, view=self._live.view(row)) for row in rows)
                made = compare(self._store, a, b, Wish(limit=LISTED))
                if None not in {row.digest for row in rows}:
                    self._made[key] = made
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)
            return made
