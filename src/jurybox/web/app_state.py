"""The state behind every page: the store, and a cache of results computed from it."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

import msgspec
from starlette.requests import HTTPConnection

from jurybox.app.estimate_run import review_agreement
from jurybox.app.gold_sets import labels_for_diff
from jurybox.app.review_desk import ReviewDesk
from jurybox.app.view_run import view_run
from jurybox.engine.records import RunRow
from jurybox.errors import JuryboxError
from jurybox.reporting.compare_runs import CompareOptions, compare_runs
from jurybox.reporting.run_diff import RunDiff
from jurybox.reporting.run_verdict import Verdict, VerdictReason, verdict_of
from jurybox.reporting.view import RunView
from jurybox.storage.store import Store

if TYPE_CHECKING:
    from jurybox.reporting.review_text import ReviewAgreement

T = TypeVar("T")
_MAX_KEPT: Final = 64
_FRESH: Final = 5.0
"""How many seconds a page may show what was computed from an unfinished run."""
_CHANGED_SAMPLES: Final = 1000  # of each kind; a page shows some of them
"""How many changed samples a comparison lists."""


def _silent(line: str) -> None:
    del line


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the pages are served."""

    store: Store  # where the runs are
    store_name: str = "the store"  # the name of the store on the page, without a password
    at_store: str = ""  # what a command on a page ends with, if the store isn't the default one
    # The allowed host names; requests for other hosts are refused.
    names: frozenset[str] = frozenset({"127.0.0.1", "localhost", "[::1]"})
    # Whether any IP address is allowed as a host, because the server listens on all of them.
    addresses: bool = False
    port: int = 0  # the port, which is part of cookie names
    overlap: int = 1  # how many reviewers each sample is given to
    # The reviewers to whom samples are assigned; if empty, any reviewer may take a sample.
    reviewers: tuple[str, ...] = ()
    reveal: bool = True  # whether reviewers see the judges' verdict once they have scored a sample
    # The required token; None if only this machine can connect.
    token: str | None = None
    say: Callable[[str], None] = _silent  # prints a line to the server's terminal

    def __repr__(self) -> str:
        """Show nothing, because the settings contain a token."""
        return "ServeSettings(...)"


PATIENCE: Final = 0.15
"""How many seconds a page waits for results that need all samples of a run."""


class Pending:
    """A value that is being computed."""


def soon(made: "Future[T]", patience: float | None = PATIENCE) -> T | Pending:
    """Return a value if it is ready within ``patience`` seconds, else `Pending`."""
    try:
        return made.result(patience)
    except TimeoutError:
        return Pending()


class AppState:
    """The store and cached results; thread-safe."""

    def __init__(self, settings: ServeSettings) -> None:
        self.store = settings.store
        self.store_name, self.at_store = settings.store_name, settings.at_store
        self.overlap, self.reviewers = settings.overlap, settings.reviewers
        self.reveal = settings.reveal
        self.say = settings.say
        self.guarded = settings.token is not None
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Future[Any]] = OrderedDict()
        self._ended: WeakKeyDictionary[Future[Any], float] = WeakKeyDictionary()
        # One computation at a time: two in parallel would take just as long and use more memory.
        self._worker = ThreadPoolExecutor(1, "jurybox-samples")
        # A search waits for none of these; the database does most of its work.
        self._searcher = ThreadPoolExecutor(1, "jurybox-search")
        # No page waits for a download, and a large one takes its time.
        self.downloads = ThreadPoolExecutor(1, "jurybox-downloads")

    def kept(
        self,
        what: str,
        make: Callable[[], T],
        *runs: RunRow,
        reviews: bool = True,
        worker: ThreadPoolExecutor | None = None,
    ) -> "Future[T]":
        """Compute a value from all samples of runs, and cache it.

        A new review makes it obsolete, unless ``reviews`` is false. Errors aren't cached, and
        values of unfinished runs only for a few seconds after they are computed: long enough for
        the page that waits for one.
        """

        def ended(done: Future[T]) -> None:
            self._ended[done] = monotonic()

        finished = all(run.status == "finished" for run in runs)
        key = self._key(what, *runs, reviews=reviews)
        with self._lock:
            made = self._kept.get(key)
            if made is None or self._is_obsolete(made, finished=finished):
                made = self._kept[key] = (worker or self._worker).submit(make)
                made.add_done_callback(ended)
            self._kept.move_to_end(key)
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return made

    def _key(self, what: str, *runs: RunRow, reviews: bool = True) -> Hashable:
        states = [self.store.review_state(run.id) if reviews else None for run in runs]
        return what, *((run.id, run.seal, state) for run, state in zip(runs, states, strict=True))

    def _is_obsolete(self, made: "Future[Any]", *, finished: bool) -> bool:
        if not made.done():
            return False
        now = monotonic()
        late = now - self._ended.get(made, now) > _FRESH
        return made.exception() is not None or (late and not finished)

    def agreement(self, run: RunRow) -> "Future[ReviewAgreement | None]":
        """Compute the judges' agreement with people in a run; None if there are no reviews."""
        return self.kept("agreement", lambda: review_agreement(ReviewDesk(self.store, run)), run)

    def matching(self, run: RunRow, text: str) -> "Future[str]":
        """Find a run's samples that contain a text."""

        def search() -> str:
            return self.store.matching(run.id, text)

        return self.kept(f"search {text}", search, run, worker=self._searcher)

    def verdict(self, view: RunView, patience: float = PATIENCE) -> Verdict:
        """Return the verdict on a run, with what its reviews say.

        If a run doesn't pass, those not yet compared are only while there is patience left, so that
        a list doesn't start more than one long comparison for them.
        """
        verdict, run = verdict_of(view), view.row
        if view.status != "finished" or not self.store.review_state(run.id):
            return verdict
        if verdict.tone != "passes":
            if patience <= 0 and self._key("agreement", run) not in self._kept:
                return verdict_of(view, pending=True)
            patience = min(patience, PATIENCE)
        try:
            people = soon(self.agreement(run), patience)
        except JuryboxError as error:
            return msgspec.structs.replace(
                verdict,
                word=f"{verdict.word}, reviews can't be compared",
                tone=verdict.tone.replace("passes", "waits"),
                optional=(
                    VerdictReason(f"The reviews can't be compared: {error}"),
                    *verdict.optional,
                ),
            )
        late = isinstance(people, Pending)
        return verdict_of(view, None if late else people, pending=late)

    def comparison(self, one: RunRow, other: RunRow) -> "Future[RunDiff]":
        """Compare two runs."""

        def make() -> RunDiff:
            gold = labels_for_diff(self.store, one, other, None)
            options = CompareOptions(limit=_CHANGED_SAMPLES, gold=gold)
            a, b = (view_run(row, self.store) for row in (one, other))
            return compare_runs(self.store, a, b, options)

        return self.kept("comparison", make, one, other)


def app_state_of(connection: HTTPConnection) -> AppState:
    """Return the state of a request's application."""
    return cast("AppState", connection.app.state.place)
