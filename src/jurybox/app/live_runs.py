"""Runs that somebody is at work on, looked at again and again: each sample is read once.

A run's figures need every sample. Whoever watches a run asks for them every few seconds, so they
are kept here as they come in, and only what is new is read.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

import msgspec

from jurybox.app.view_run import is_worked_on, with_cost
from jurybox.engine.plan import Plan, read_plan
from jurybox.engine.ports import EVERY, Store
from jurybox.engine.records import RunRow, read_result
from jurybox.errors import JuryboxError
from jurybox.reporting.stored import damaged
from jurybox.reporting.view import RunView, finished_view, partial_view
from jurybox.scoring.summary import RunTally

_MOST: Final = 8
"""So many runs are kept; a run of a hundred thousand samples takes a few megabytes."""
_MOST_GAPS: Final = 64


class LiveProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a run has come; ``version`` changes when anything does."""

    status: str
    samples: int
    planned: int
    version: str


class LiveRuns:
    """Views of runs, finished or not; any thread may ask."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._live: OrderedDict[str, _LiveRun] = OrderedDict()

    def view(self, row: RunRow) -> RunView:
        """Return the view of a run as it is now.

        Raises:
            IncompleteError: what is stored can't be read.

        """
        if row.status == "finished":
            self._forget(row)
            return finished_view(row)
        working = is_worked_on(row, self._store)
        current = self._store.run(row.id) or row
        if current.status == "finished":
            return self.view(current)
        return with_cost(self._of(current).view(current, working=working), current)

    def progress(self, row: RunRow) -> LiveProgress:
        """Return how far a run has come.

        Raises:
            IncompleteError: what is stored can't be read.

        """
        try:
            planned = read_plan(row.plan).samples
        except msgspec.DecodeError as error:
            raise damaged(row, error) from None
        if row.status == "finished":
            self._forget(row)
            return _progress("finished", planned, planned)
        status = "running" if is_worked_on(row, self._store) else "stopped"
        return _progress(status, self._of(row).count(row), planned)

    def _of(self, row: RunRow) -> "_LiveRun":
        with self._lock:
            live = self._live.get(row.id)
            if live is None:
                live = self._live[row.id] = _LiveRun(row, self._store)
            self._live.move_to_end(row.id)
            while len(self._live) > _MOST:
                self._live.popitem(last=False)
            return live

    def _forget(self, row: RunRow) -> None:
        with self._lock:
            self._live.pop(row.id, None)


def _progress(status: str, samples: int, planned: int) -> LiveProgress:
    version = f"{status}-{samples}"
    return LiveProgress(status=status, samples=samples, planned=planned, version=version)


class _LiveRun:
    """What follows from the samples of one run so far."""

    def __init__(self, row: RunRow, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        try:
            self._plan: Plan = read_plan(row.plan)
            rubric = self._plan.procedure().judging.rubric
        except (msgspec.DecodeError, JuryboxError) as error:
            raise damaged(row, error) from None
        self._tally = RunTally(rubric, self._plan.repeats)
        # A byte for each sample, 1 once it was read: samples aren't finished in their order.
        self._seen = bytearray(self._plan.samples)

    def view(self, row: RunRow, *, working: bool) -> RunView:
        with self._lock:
            self._read(row)
            conclusion = self._tally.conclude()
        return partial_view(row, self._plan, conclusion, working=working)

    def count(self, row: RunRow) -> int:
        with self._lock:
            self._read(row)
            return self._tally.samples

    def _read(self, row: RunRow) -> None:
        """Take in the samples that weren't there before."""
        try:
            for gap in self._gaps():
                for number, repeat, _, result in self._store.results(row.id, gap):
                    if 0 <= number < len(self._seen) and not self._seen[number]:
                        self._tally.add(read_result(result), repeat, number)
                        self._seen[number] = 1
        except msgspec.DecodeError as error:
            raise damaged(row, error) from None

    def _gaps(self) -> Iterator[range]:
        """Yield the numbers that weren't read yet, in a few ranges."""
        begin = self._seen.find(0)
        gaps = 0
        while begin != -1:
            end = self._seen.find(1, begin)
            gaps += 1
            # The last reaches to the end, whatever was read in between.
            if end == -1 or gaps == _MOST_GAPS:
                yield range(begin, EVERY.stop)
                return
            yield range(begin, end)
            begin = self._seen.find(0, end)
