"""What every page is made from: the store, and what was computed from it before."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar, cast

import msgspec
from starlette.requests import HTTPConnection

from jurybox.app.labels import labels_for_diff
from jurybox.app.review_desk import ReviewDesk, UnrevealedReviews
from jurybox.app.view_run import LiveRuns
from jurybox.engine.ports import Store
from jurybox.engine.records import RunRow
from jurybox.reporting.compare_runs import ComparedRun, CompareOptions, compare_runs
from jurybox.reporting.run_diff import RunDiff

if TYPE_CHECKING:
    from jurybox.reporting.review_text import ReviewAgreement

T = TypeVar("T")
_MAX_KEPT: Final = 64
_CHANGED_SAMPLES: Final = 50
"""How many changed samples a comparison lists."""


def _silent(line: str) -> None:
    del line


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the pages are served.

    Attributes:
        store: where the runs are.
        store_name: how the store is called on the page, without a password.
        names: the hosts by which the server is known; a request under another name is refused.
        addresses: whether every IP address is one of its names too, where it listens on all.
        port: where it listens; cookies are named by it.
        token: what has to be shown to get in; None where only this machine gets this far.
        say: takes a line for the user who started the server.

    """

    store: Store
    store_name: str = "the store"
    names: frozenset[str] = frozenset({"127.0.0.1", "localhost", "[::1]"})
    addresses: bool = False
    port: int = 0
    token: str | None = None
    say: Callable[[str], None] = _silent

    def __repr__(self) -> str:
        """Show nothing: there is a token in it."""
        return "ServeSettings(...)"


class _Kept:
    """Something that is made once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.made = False
        self.value: object = None


PATIENCE: Final = 0.15
"""The seconds that a page of a run waits for figures that all its samples have to be read for."""


class StatusPending:
    """The figures are being worked out."""


class Standings:
    """Remembers the newest standing of each run; any thread may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._found: OrderedDict[tuple[str, str, int], Future[ReviewAgreement | None]] = (
            OrderedDict()
        )
        # One at a time: two that read all samples in parallel would take as long, and more memory.
        self._worker = ThreadPoolExecutor(1, "jurybox-standing")

    def of(self, run: RunRow) -> "ReviewAgreement | None":
        """Return how judges agree with people in a run; None where there are no reviews."""
        asked = self._asked(run)
        return None if asked is None else asked.result()

    def soon(
        self, run: RunRow, patience: float = PATIENCE
    ) -> "ReviewAgreement | StatusPending | None":
        """Return it if it takes no longer than this; a later request may find it done.

        While a run goes on it is never begun, since it would be out of date at once.
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


class AppState:
    """The store and what was computed from it; any thread may use it."""

    def __init__(self, settings: ServeSettings) -> None:
        self.store = settings.store
        self.store_name = settings.store_name
        self.say = settings.say
        self.guarded = settings.token is not None
        self.live = LiveRuns(settings.store)
        self.standings = Standings(settings.store)
        self.unrevealed = UnrevealedReviews()
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()

    def kept(self, what: str, make: Callable[[], T], *runs: RunRow) -> T:
        """Return what takes all samples of runs to make: once for runs that are finished."""
        digests = [run.digest for run in runs if run.digest is not None]
        if len(digests) < len(runs):
            return make()
        key = (what, *(run.id for run in runs), *digests)
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        # A second request waits for the first, and doesn't make it again.
        with kept.lock:
            if not kept.made:
                kept.value = make()
                kept.made = True
            return cast("T", kept.value)

    def comparison(self, one: RunRow, other: RunRow) -> RunDiff:
        """Compare two runs."""

        def make() -> RunDiff:
            a, b = (ComparedRun(row=row, view=self.live.view(row)) for row in (one, other))
            gold = labels_for_diff(self.store, one, other, None)
            return compare_runs(self.store, a, b, CompareOptions(limit=_CHANGED_SAMPLES, gold=gold))

        # A review or an acceptance changes what is decided, and not the digest.
        said = [len(self.store.reviews(row.id)) for row in (one, other)]
        return self.kept(f"comparison {one.seal} {other.seal} {said}", make, one, other)


def app_state_of(connection: HTTPConnection) -> AppState:
    """Return the place that a request is made to."""
    return cast("AppState", connection.app.state.place)
