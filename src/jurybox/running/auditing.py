"""Re-deriving a run from its stored replies, without a model (A13).

Every row's seal is checked, every sample's flow is driven again over the stored replies, and what
comes of it is held against what is stored: reports, scores, results, hashes, what each is found by,
then the reviews, the summary, the gates and the digest of the whole run.

Samples don't depend on each other, so others may look through slices of them at the same time. They
only ever vouch for a slice; what they don't vouch for is looked through here, in order. So what is
found, and what is said of it, doesn't depend on who looked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from jurybox.errors import JuryboxError
from jurybox.running.beside import FacetAudit, Fault, review_faults
from jurybox.running.deriving import derive, grouped, named
from jurybox.running.differences import first_difference
from jurybox.running.outcomes import StoredOutcome, read_result
from jurybox.running.plan import Plan, planned_metadata, read_plan
from jurybox.running.records import (
    ENCODER,
    ExchangeHashes,
    ExchangeRow,
    RunRow,
    SampleRow,
    exchange_seal,
    hashes_of,
    in_order,
    record_hash,
    run_digest,
    seal_of,
)
from jurybox.running.retelling import DifferentError
from jurybox.running.storing import EVERY, Store
from jurybox.scoring.conduct import Procedure
from jurybox.scoring.summary import RunTally

_CHANGED: Final = "the row was changed after it was written"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Where what is stored isn't what it should be, and how."""

    where: str
    what: str

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.where}: {self.what}"


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit found; without a difference all is as it should be.

    ``complete`` is False where the run isn't finished, so that only its records could be checked.
    ``digest`` is that of the records as they are, where there are no others.
    """

    run_id: str
    samples: int
    exchanges: int
    digest: str
    complete: bool
    difference: Difference | None = None


class Vouched(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A slice of a run's samples, all there and as they should be; each with repeat and result."""

    exchanges: int
    results: tuple[tuple[int, str], ...]


class _Foundation(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan
    procedure: Procedure


def audit(
    store: Store,
    run: RunRow,
    on_sample: Callable[[int], None] | None = None,
    vouched: Iterable[Vouched] = (),
) -> Audit:
    """Check a run from its foundations up, as far as the first difference.

    ``vouched`` are slices from the run's beginning, in order; what comes after them is checked
    here.
    """
    auditor = _Auditor(run)
    difference = None
    on_sample = on_sample or (lambda _: None)
    try:
        auditor.check_run()
        for each in vouched:
            auditor.trust(each)
            on_sample(auditor.samples)
        for sample in auditor.checked(store, _after(auditor.samples)):
            auditor.add_up(sample.number, sample.repeat, sample.result)
            on_sample(auditor.samples)
        auditor.check_batches(store)
        auditor.check_reviews(store)
        auditor.check_whole(store)
    except _FoundError as found:
        difference = found.difference
    return Audit(
        run_id=run.id,
        samples=auditor.samples,
        exchanges=auditor.exchanges,
        digest=auditor.digest,
        complete=run.status == "finished",
        difference=difference,
    )


class Voucher:
    """Looks through slices of a run's samples for somebody who audits it."""

    def __init__(self, store: Store, run: RunRow) -> None:
        self._store = store
        self._run = run
        self._auditor = _Auditor(run)
        self._auditor.check_run()

    def __call__(self, numbers: range) -> Vouched | None:
        """Vouch for the samples with these numbers; None where anything is the matter."""
        auditor = self._auditor
        auditor.samples, auditor.exchanges = numbers.start, 0
        results: list[tuple[int, str]] = []
        every = range(_after(numbers.start).start, numbers.stop)
        try:
            samples = auditor.checked(self._store, every)
            results.extend((sample.repeat, sample.result) for sample in samples)
        except (_FoundError, JuryboxError):
            return None
        if len(results) != len(numbers):
            return None
        return Vouched(exchanges=auditor.exchanges, results=tuple(results))


def _after(samples: int) -> range:
    """Return the numbers of all samples but so many; what is before the first is there, too."""
    return range(samples, EVERY.stop) if samples else EVERY


class _FoundError(Exception):
    def __init__(self, where: str, what: str) -> None:
        super().__init__(what)
        self.difference = Difference(where=where, what=what)


def _require(holds: bool, where: str, what: str) -> None:  # noqa: FBT001 - it reads as a sentence
    if not holds:
        raise _FoundError(where, what)


def _refuse(fault: Fault | None) -> None:
    if fault is not None:
        raise _FoundError(fault.where, fault.what)


class _Auditor:
    def __init__(self, run: RunRow) -> None:
        self._run = run
        self._base: _Foundation | None = None
        self._tally: RunTally | None = None
        self.samples = 0
        self.exchanges = 0
        self.digest = ""

    def check_run(self) -> None:
        where = f"run {self._run.id}"
        if seal_of(self._run) != self._run.seal:
            raise _FoundError(where, _CHANGED)
        try:
            plan = read_plan(self._run.plan)
            procedure = plan.procedure()
        except (msgspec.DecodeError, JuryboxError) as error:
            raise _FoundError(where, f"its plan can't be read ({error})") from None
        self._check_metadata(plan, procedure, where)
        if self._run.status != "finished":
            _require(self._run.outcome is None, where, "it isn't finished, and has an outcome")
            _require(self._run.digest is None, where, "it isn't finished, and has a digest")
            _require(self._run.finished_at is None, where, "it isn't finished, and has an end")
        self._base = _Foundation(plan=plan, procedure=procedure)
        self._tally = RunTally(procedure.judging.rubric, plan.repeats)

    def trust(self, vouched: Vouched) -> None:
        """Take samples for checked that somebody else has checked."""
        for number, (repeat, result) in enumerate(vouched.results, start=self.samples):
            self.add_up(number, repeat, result)
        self.samples += len(vouched.results)
        self.exchanges += vouched.exchanges

    def add_up(self, number: int, repeat: int, result: str) -> None:
        """Let a sample that was checked count."""
        _, tally = self._known()
        tally.add(read_result(result), repeat, number)

    def _check_metadata(self, plan: Plan, procedure: Procedure, where: str) -> None:
        """See that what is said of the run is what was planned."""
        try:
            said = msgspec.json.decode(self._run.metadata, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise _FoundError(where, f"its metadata can't be read ({error})") from None
        names = {"run_id": self._run.id, "timestamp_utc": self._run.created_at}
        planned = planned_metadata(plan, procedure) | names
        mine = ENCODER.encode({name: said.get(name) for name in planned}).decode()
        again = ENCODER.encode(planned).decode()
        if mine != again:
            raise _FoundError(where, first_difference("metadata", mine, again, "the plan says"))
        _require(self._run.suite == plan.suite, where, "its suite isn't that of its plan")

    def checked(self, store: Store, numbers: range) -> Iterator[SampleRow]:
        """Check these samples with all that is stored of each, and yield them."""
        facets = FacetAudit(store, self._run.id, numbers)
        for sample, exchanges in grouped(store, self._run.id, numbers):
            self.check_sample(sample, exchanges)
            if sample is not None:
                _refuse(facets.fault(sample))
                yield sample
        _refuse(facets.rest())

    def check_sample(self, sample: SampleRow | None, exchanges: list[ExchangeRow]) -> None:
        self.exchanges += len(exchanges)
        hashes = {exchange.position: hashes_of(exchange) for exchange in exchanges}
        for exchange in exchanges:
            if exchange_seal(exchange, hashes[exchange.position]) != exchange.seal:
                name = f"record {exchange.number}" if sample is None else named(sample)
                where = f"{name}, exchange {exchange.position}"
                raise _FoundError(where, _CHANGED)
        if sample is None:
            what = "the sample isn't there, only its exchanges are"
            _require(self._run.status != "finished", f"record {exchanges[0].number}", what)
        else:
            self._check_gap(sample)
            self.samples += 1
            try:
                self._check_record(sample, exchanges, hashes)
            except DifferentError as error:
                raise _FoundError(named(sample), str(error)) from None
            except (msgspec.DecodeError, JuryboxError, LookupError) as error:
                what = f"the record can't be read: {error}"
                raise _FoundError(named(sample), what) from None

    def _check_gap(self, sample: SampleRow) -> None:
        """See that no record of a finished run is missing before this one."""
        if self._run.status == "finished" and sample.number > self.samples:
            raise _FoundError(f"record {self.samples}", "it isn't there")

    def _check_record(
        self,
        sample: SampleRow,
        exchanges: list[ExchangeRow],
        hashes: Mapping[int, ExchangeHashes],
    ) -> None:
        if seal_of(sample) != sample.seal:
            raise DifferentError(_CHANGED)
        base, _ = self._known()
        asked = in_order(sample, exchanges)
        told = [hashes[each.position] for each in asked]
        if record_hash(sample, told) != sample.record_sha256:
            raise DifferentError("the record isn't the one that its hash is of")
        if not 0 <= sample.number < base.plan.samples:
            raise DifferentError("the plan has no such sample")
        if sample.repeat != sample.number // base.plan.dataset.used:
            raise DifferentError("it is of another repeat than the plan says")
        derived = derive(base.plan, base.procedure, sample, asked)
        for column in ("inputs", "responses", "report", "automated", "result"):
            kept, again = getattr(sample, column), getattr(derived, column)
            if kept != again:
                raise DifferentError(first_difference(column, kept, again))

    def check_batches(self, store: Store) -> None:
        for batch in store.batches(self._run.id):
            where = f"run {self._run.id}, batch {batch.number}"
            _require(seal_of(batch) == batch.seal, where, _CHANGED)

    def check_reviews(self, store: Store) -> None:
        _refuse(next(review_faults(store, self._run.id), None))

    def check_whole(self, store: Store) -> None:
        if self._run.status != "finished":
            return
        where = f"run {self._run.id}"
        base, tally = self._known()
        if self.samples != base.plan.samples:
            raise _FoundError(f"record {self.samples}", "it isn't there")
        self.digest = run_digest(store.hashes(self._run.id))
        if self.digest != self._run.digest:
            raise _FoundError(where, "its digest isn't that of its records")
        try:
            kept = msgspec.json.decode(self._run.outcome or "null", type=StoredOutcome)
        except msgspec.DecodeError as error:
            raise _FoundError(where, f"its outcome can't be read ({error})") from None
        again = tally.conclude()
        if kept.conclusion.attention is None:  # an older jurybox didn't note it
            again = msgspec.structs.replace(again, attention=None)
        if kept.conclusion.spreads is None:
            again = msgspec.structs.replace(again, spreads=None)
        if ENCODER.encode(kept.conclusion) != ENCODER.encode(again):
            one, other = ENCODER.encode(kept.conclusion), ENCODER.encode(again)
            raise _FoundError(where, first_difference("outcome", one.decode(), other.decode()))

    def _known(self) -> tuple[_Foundation, RunTally]:
        if self._base is None or self._tally is None:
            raise AssertionError("the run is checked before its samples")
        return self._base, self._tally
