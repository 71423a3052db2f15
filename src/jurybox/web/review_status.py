"""How judges agree with people, computed once for every new review, next to the pages."""

from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Final

from jurybox.app.review_desk import ReviewDesk
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow

if TYPE_CHECKING:
    from jurybox.reporting.review_text import ReviewAgreement

_MAX_KEPT: Final = 64
PATIENCE: Final = 0.15
"""The seconds that a page of a run waits for figures that all its samples have to be read for."""


class StatusPending:
    """The figures are being worked out."""


class Standings:
    """Remembers the newest standing of each run; any thread may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._found: OrderedDict[tuple[str, str, int], Future[ReviewAgreement | None]] = (
            OrderedDict()
        )
        # One at a time: two that read all samples in parallel would take as long, and more memory.
        self._worker = ThreadPoolExecutor(1, "jurybox-standing")

    def of(self, run: RunRow) -> "ReviewAgreement | None":
        """Return how judges agree with people in a run; None where there are no reviews.

        Raises:
            IncompleteError: the run can't be read.

        """
        asked = self._asked(run)
        return None if asked is None else asked.result()

    def soon(
        self, run: RunRow, patience: float = PATIENCE
    ) -> "ReviewAgreement | StatusPending | None":
        """Return it if it takes no longer than this; a later request may find it done.

        While a run goes on it is never begun, since it would be out of date at once.

        Raises:
            IncompleteError: the run can't be read.

        """
        if run.status != "finished":
            return StatusPending() if self._store.reviews(run.id) else None
        asked = self._asked(run)
        try:
            return None if asked is None else asked.result(patience)
        except TimeoutError:
            return StatusPending()

    def _asked(self, run: RunRow) -> "Future[ReviewAgreement | None] | None":
        rows = self._store.reviews(run.id)
        if not rows:
            return None
        desk = ReviewDesk(self._store, run)
        # While a run goes on, its figures change without a review.
        if run.status != "finished":
            return self._worker.submit(desk.standing)
        key = (run.id, rows[-1].id, len(rows))
        with self._lock:
            found = self._found.get(key)
            if found is None or (found.done() and found.exception() is not None):
                found = self._found[key] = self._worker.submit(desk.standing)
            while len(self._found) > _MAX_KEPT:
                self._found.popitem(last=False)
            return found
