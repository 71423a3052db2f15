"""The state behind every page: the store, and a cache of results computed from it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import msgspec
from starlette.requests import HTTPConnection

from jurybox.app.labels import labels_for_diff
from jurybox.app.review_agreement import review_agreement
from jurybox.app.review_desk import ReviewDesk, UnrevealedReviews
from jurybox.app.view_run import LiveRuns
from jurybox.engine.records import RunRow
from jurybox.reporting.compare_runs import ComparedRun, CompareOptions, compare_runs
from jurybox.reporting.run_diff import RunDiff
from jurybox.storage.store import Store

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
        overlap: how many reviewers the queues give each sample to.
        token: what has to be shown to get in; None where only this machine gets this far.
        say: takes a line for the user who started the server.

    """

    store: Store
    store_name: str = "the store"
    names: frozenset[str] = frozenset({"127.0.0.1", "localhost", "[::1]"})
    addresses: bool = False
    port: int = 0
    overlap: int = 1
    token: str | None = None
    say: Callable[[str], None] = _silent

    def __repr__(self) -> str:
        """Show nothing: there is a token in it."""
        return "ServeSettings(...)"


PATIENCE: Final = 0.15
"""The seconds that a page of a run waits for metrics that all its samples have to be read for."""


class StatusPending:
    """The metrics are being worked out."""


def _settle(made: "Future[Any]", make: Callable[[], object]) -> None:
    try:
        made.set_result(make())
    except BaseException as error:  # noqa: BLE001 - every caller that waits gets it
        made.set_exception(error)


class AppState:
    """The store and what was computed from it; any thread may use it."""

    def __init__(self, settings: ServeSettings) -> None:
        self.store = settings.store
        self.store_name = settings.store_name
        self.overlap = settings.overlap
        self.say = settings.say
        self.guarded = settings.token is not None
        self.live = LiveRuns(settings.store)
        self.unrevealed = UnrevealedReviews()
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        # One at a time: two that read all samples in parallel would take as long, and more memory.
        self._worker = ThreadPoolExecutor(1, "jurybox-standing")

    def kept(self, what: str, make: Callable[[], T], *runs: RunRow) -> T:
        """Return a value computed from all samples of runs; cached for finished runs."""
        digests = [run.digest for run in runs if run.digest is not None]
        if len(digests) < len(runs):
            return make()
        key = (what, *(run.id for run in runs), *digests)
        return self._once(key, lambda made: _settle(made, make)).result()

    def _once(self, key: Hashable, start: Callable[["Future[Any]"], object]) -> "Future[Any]":
        """Return the value for a key, computed once, or again after an error.

        A second request waits for the first.
        """
        with self._lock:
            made = self._kept.get(key)
            fresh = made is None or (made.done() and made.exception() is not None)
            if made is None or fresh:
                made = self._kept[key] = Future[Any]()
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        if fresh:
            start(made)
        return made

    def standing(self, run: RunRow) -> "ReviewAgreement | None":
        """Return the judges' agreement with people in a run; None if there are no reviews."""
        made = self._standing(run)
        return None if made is None else made.result()

    def standing_soon(
        self, run: RunRow, patience: float = PATIENCE
    ) -> "ReviewAgreement | StatusPending | None":
        """Return it if it takes no longer than this; a later request may find it done.

        It is not started while a run is in progress, since it would be outdated immediately.
        """
        if run.status != "finished":
            return StatusPending() if self.store.reviews(run.id) else None
        made = self._standing(run)
        try:
            return None if made is None else made.result(patience)
        except TimeoutError:
            return StatusPending()

    def _standing(self, run: RunRow) -> "Future[ReviewAgreement | None] | None":
        rows = self.store.reviews(run.id)
        if not rows:
            return None
        desk = ReviewDesk(self.store, run)
        # While a run is in progress, its metrics change without a review.
        if run.status != "finished":
            return self._worker.submit(review_agreement, desk)
        key = ("standing", run.id, rows[-1].id, len(rows))
        make = partial(review_agreement, desk)
        return self._once(key, lambda made: self._worker.submit(_settle, made, make))

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
