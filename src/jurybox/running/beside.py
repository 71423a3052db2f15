"""Auditing what is stored beside a run's samples: what they are found by, and their reviews."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from jurybox.running.deriving import named
from jurybox.running.records import SampleRow, seal_of
from jurybox.running.storing import EVERY, Store
from jurybox.scoring.facets import Facets, facets_of

_CHANGED: Final = "the row was changed after it was written"


class Fault(NamedTuple):
    """Where something isn't as it should be, and what."""

    where: str
    what: str


class FacetAudit:
    """Holds what samples are found by against the samples themselves, which come in order."""

    def __init__(self, store: Store, run_id: str, numbers: range = EVERY) -> None:
        self._store = store
        self._run_id = run_id
        self._stored = store.facets(run_id, numbers)
        self._next = next(self._stored, None)

    def fault(self, sample: SampleRow) -> Fault | None:
        """Return what is wrong with the facets up to a sample's own."""
        while self._next is not None and self._next.number < sample.number:
            extra = self._extra(self._next)
            if extra is not None:
                return extra
            self._next = next(self._stored, None)
        stored, again = self._next, facets_of(sample)
        if stored is not None and stored.number == sample.number:
            self._next = next(self._stored, None)
        else:
            # A run that goes on may have stored the sample after the others' were read.
            one = range(sample.number, sample.number + 1)
            stored = next(self._store.facets(self._run_id, one), None)
        if stored is None:
            return Fault(named(sample), "the facets that it is found by aren't there")
        return None if stored == again else Fault(named(sample), _difference(stored, again))

    def rest(self) -> Fault | None:
        """Return what is wrong after the last sample."""
        while self._next is not None:
            extra = self._extra(self._next)
            if extra is not None:
                return extra
            self._next = next(self._stored, None)
        return None

    def _extra(self, facets: Facets) -> Fault | None:
        if self._store.sample(self._run_id, facets.number) is not None:
            return None  # stored meanwhile, by a run that goes on
        return Fault(f"record {facets.number}", "the sample isn't there, only its facets are")


def _difference(stored: Facets, again: Facets) -> str:
    for name in Facets.__struct_fields__:
        kept, derived = getattr(stored, name), getattr(again, name)
        if kept != derived:
            return f"it is found by another {name} than its result has"
    raise AssertionError("they differ")


def review_faults(store: Store, run_id: str) -> Iterator[Fault]:
    """Yield what is wrong with the reviews of a run."""
    records: dict[int, str | None] = {}
    earlier: dict[str, int] = {}
    for row in store.reviews(run_id):
        where = f"run {run_id}, review {row.id}"
        if seal_of(row) != row.seal:
            yield Fault(where, _CHANGED)
        if row.number not in records:
            found = next(store.results(run_id, range(row.number, row.number + 1)), None)
            records[row.number] = None if found is None else found[2]
        if records[row.number] is None:
            yield Fault(where, "the sample that it is of isn't there")
        elif records[row.number] != row.record_sha256:
            yield Fault(where, "the sample isn't the one that was reviewed")
        if row.of is not None and earlier.get(row.of) != row.number:
            yield Fault(where, "the review that it withdraws isn't there")
        if row.action == "review":
            earlier[row.id] = row.number
