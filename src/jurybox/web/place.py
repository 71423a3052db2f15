"""What every page is made from: the store, what is known of runs, and who is served."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar, cast

import msgspec
from starlette.requests import HTTPConnection

from jurybox.running.records import RunRow
from jurybox.running.storing import Store
from jurybox.web.comparisons import Comparisons
from jurybox.web.standings import Standings
from jurybox.wiring.live import LiveRuns

T = TypeVar("T")
_MOST: Final = 64
"""So many things are kept that would take all samples of a run to make again."""


def _silent(line: str) -> None:
    del line


class ServeSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the pages are served.

    Attributes:
        store: where the runs are.
        store_name: how the store is called on the page, without a password.
        names: the hosts by which the server is known; a request under another name is refused.
        addresses: whether every address stands for the server too, where it listens on all.
        token: what has to be shown to get in; None where only this machine gets this far.
        say: takes a line for whoever started the server.

    """

    store: Store
    store_name: str = "the store"
    names: frozenset[str] = frozenset({"127.0.0.1", "localhost", "[::1]"})
    addresses: bool = False
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


class Place:
    """The store and what was learned from it; any thread may use it."""

    def __init__(self, settings: ServeSettings) -> None:
        self.store = settings.store
        self.store_name = settings.store_name
        self.say = settings.say
        self.guarded = settings.token is not None
        self.live = LiveRuns(settings.store)
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str, str], _Kept] = OrderedDict()
        self.comparisons = Comparisons(settings.store, self.live)
        self.standings = Standings(settings.store)

    def kept(self, run: RunRow, what: str, make: Callable[[], T]) -> T:
        """Return what follows from a run's samples, made once for a run that is finished."""
        if run.digest is None:
            return make()
        key = (run.id, run.digest, what)
        with self._lock:
            kept = self._kept.setdefault(key, _Kept())
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        # Whoever comes while it is being made waits for it, and doesn't make it twice.
        with kept.lock:
            if not kept.made:
                kept.value = make()
                kept.made = True
            return cast("T", kept.value)

    def run(self, run_id: str) -> RunRow | None:
        """Return a run by its whole id.

        Raises:
            IncompleteError: the store is in trouble.

        """
        return self.store.run(run_id)


def place_of(connection: HTTPConnection) -> Place:
    """Return the place that a request is made to."""
    return cast("Place", connection.app.state.place)
