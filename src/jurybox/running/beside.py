"""Auditing what is stored beside a run's samples: what they are found by, and their reviews."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from jurybox.calibration.review_input import fault_of
from jurybox.calibration.reviews import REVIEW, read_review
from jurybox.rubric import parse_rubric
from jurybox.rubric.scale import Scale
from jurybox.running.deriving import StoredResponses, named
from jurybox.running.plan import read_plan
from jurybox.running.records import ReviewRow, SampleRow, seal_of
from jurybox.running.storing import EVERY, Store
from jurybox.scoring.facets import Facets, facets_of

_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)
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
    rows = store.reviews(run_id)
    # Clocks are put back, so that a withdrawal may seem to be older than what it withdraws.
    made = {row.id: row.number for row in rows if row.action == REVIEW}
    audit = _ReviewAudit(store, run_id) if rows else None
    for row in rows:
        where = f"run {run_id}, review {row.id}"
        if seal_of(row) != row.seal:
            yield Fault(where, _CHANGED)
        what = None if audit is None else audit.problem_with(row)
        if what is not None:
            yield Fault(where, what)
        if row.of is not None and made.get(row.of) != row.number:
            yield Fault(where, "the review that it withdraws isn't there")


class _Reviewed(NamedTuple):
    record_sha256: str
    is_pair: bool


class _ReviewAudit:
    """Holds reviews against what they are of: a record, and the rubric that it was scored by."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        run = store.run(run_id)
        self._scales: dict[str, Scale] = {}
        if run is not None:
            document = read_plan(run.plan).rubric
            criteria = parse_rubric(document.text, document.origin).criteria
            self._scales = {each.id: each.scale for each in criteria}
        self._known: dict[int, _Reviewed | None] = {}

    def problem_with(self, row: ReviewRow) -> str | None:
        if row.number not in self._known:
            self._known[row.number] = self._read(row.number)
        reviewed = self._known[row.number]
        if reviewed is None:
            return "the sample that it is of isn't there"
        if reviewed.record_sha256 != row.record_sha256:
            return "the sample isn't the one that was reviewed"
        if row.action != REVIEW:
            return None
        try:
            verdict = read_review(row).verdict
        except msgspec.DecodeError as error:
            return f"its verdict can't be read ({error})"
        if verdict.is_pair != reviewed.is_pair:
            return "its verdict isn't of as many responses as the sample has"
        return fault_of(verdict, self._scales)

    def _read(self, number: int) -> _Reviewed | None:
        sample = self._store.sample(self._run_id, number)
        if sample is None:
            return None
        responses = _RESPONSES.decode(sample.responses)
        return _Reviewed(sample.record_sha256, responses.response_b is not None)
