"""How judges and people stand, computed once for every new review."""

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

from jurybox.running.records import RunRow
from jurybox.running.storing import Store
from jurybox.wiring.reviewing import ReviewDesk

if TYPE_CHECKING:
    from jurybox.wiring.review_figures import Standing

_MOST: Final = 64
_Key = tuple[str, str, int]


class Standings:
    """Remembers the newest standing of each run; any thread may ask."""

    def __init__(self) -> None:
        self._found: OrderedDict[_Key, Standing | None] = OrderedDict()
        self._lock = Lock()

    def of(self, store: Store, run: RunRow) -> "Standing | None":
        """Return how judges stand with people in a run; None where nobody has reviewed.

        Raises:
            IncompleteError: the run can't be read.

        """
        rows = store.reviews(run.id)
        if not rows:
            return None
        # While a run goes on, its figures change without a review.
        if run.status != "finished":
            return ReviewDesk(store, run).standing()
        key = (run.id, rows[-1].id, len(rows))
        with self._lock:
            if key in self._found:
                return self._found[key]
        found = ReviewDesk(store, run).standing()
        with self._lock:
            self._found[key] = found
            while len(self._found) > _MOST:
                self._found.popitem(last=False)
        return found


STANDINGS: Final = Standings()
"""One for the whole process: the name of a review is unique."""
