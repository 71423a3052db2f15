"""How judges and people stand, computed once for every new review, beside the pages."""

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from jurybox.running.records import RunRow
from jurybox.running.storing import Store
from jurybox.wiring.reviewing import ReviewDesk

if TYPE_CHECKING:
    from jurybox.wiring.review_figures import Standing

_MOST: Final = 64
PATIENCE: Final = 0.15
"""The seconds that a page of a run waits for figures that all its samples have to be read for."""

_Key = tuple[str, str, int]


class Pending:
    """The figures are being worked out."""


class Standings:
    """Remembers the newest standing of each run; any thread may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: OrderedDict[_Key, Future[Standing | None]] = OrderedDict()
        self._lock = Lock()
        # One at a time: two that read all samples side by side would take as long, and more memory.
        self._turn = Lock()

    def of(self, run: RunRow) -> "Standing | None":
        """Return how judges stand with people in a run; None where nobody has reviewed.

        Raises:
            IncompleteError: the run can't be read.

        """
        asked = self._asked(run)
        return None if asked is None else asked.result()

    def soon(self, run: RunRow, patience: float = PATIENCE) -> "Standing | Pending | None":
        """Return it if it takes no longer than this; else the next who asks may find it done.

        While a run goes on it is never begun, since it would be out of date at once.

        Raises:
            IncompleteError: the run can't be read.

        """
        if run.status != "finished":
            return Pending() if self._store.reviews(run.id) else None
        asked = self._asked(run)
        if asked is None:
            return None
        try:
            return asked.result(patience)
        except TimeoutError:
            return Pending()

    def _asked(self, run: RunRow) -> "Future[Standing | None] | None":
        rows = self._store.reviews(run.id)
        if not rows:
            return None
        make: Callable[[], Standing | None] = ReviewDesk(self._store, run).standing
        # While a run goes on, its figures change without a review.
        if run.status != "finished":
            return self._begun(make)
        key = (run.id, rows[-1].id, len(rows))
        with self._lock:
            if key not in self._found or _failed(self._found[key]):
                self._found[key] = self._begun(make)
            while len(self._found) > _MOST:
                self._found.popitem(last=False)
            return self._found[key]

    def _begun(self, make: "Callable[[], Standing | None]") -> "Future[Standing | None]":
        found: Future[Standing | None] = Future()

        def work() -> None:
            with self._turn:
                try:
                    found.set_result(make())
                except BaseException as error:  # noqa: BLE001 - it is for whoever asked
                    found.set_exception(error)

        # A server that is to stop doesn't wait for it.
        Thread(target=work, name="jurybox-standing", daemon=True).start()
        return found


def _failed(future: "Future[Standing | None]") -> bool:
    return future.done() and future.exception() is not None
