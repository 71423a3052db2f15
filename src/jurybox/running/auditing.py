"""Re-deriving a run from its stored replies, without a model (A13).

Every row's seal is checked, every sample's flow is driven again over the stored replies, and what
comes of it is held against what is stored: reports, scores, results, hashes, then the summary, the
gates and the digest of the whole run.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from jurybox.errors import JuryboxError
from jurybox.running.deriving import StoredOutcome, derive, grouped, named, read_result
from jurybox.running.differences import first_difference
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
from jurybox.running.storing import Store
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


class _Foundation(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan
    procedure: Procedure


def audit(store: Store, run: RunRow, on_sample: Callable[[int], None] | None = None) -> Audit:
    """Check a run from its foundations up, as far as the first difference."""
    auditor = _Auditor(run)
    difference = None
    try:
        auditor.check_run()
        for sample, exchanges in grouped(store, run.id):
            auditor.check_sample(sample, exchanges)
            if on_sample is not None:
                on_sample(auditor.samples)
        auditor.check_batches(store)
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


class _FoundError(Exception):
    def __init__(self, where: str, what: str) -> None:
        super().__init__(what)
        self.difference = Difference(where=where, what=what)


def _require(holds: bool, where: str, what: str) -> None:  # noqa: FBT001 - it reads as a sentence
    if not holds:
        raise _FoundError(where, what)


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
        base, tally = self._known()
        asked = in_order(sample, exchanges)
        told = [hashes[each.position] for each in asked]
        if record_hash(sample, told) != sample.record_sha256:
            raise DifferentError("the record isn't the one that its hash is of")
        if not 0 <= sample.number < base.plan.samples:
            raise DifferentError("the plan has no such sample")
        if sample.repeat != sample.number // base.plan.dataset.used:
            raise DifferentError("it is of another repeat than the plan says")
        derived = derive(base.plan, base.procedure, sample, asked, told)
        for column in ("inputs", "responses", "report", "automated", "result"):
            kept, again = getattr(sample, column), getattr(derived, column)
            if kept != again:
                raise DifferentError(first_difference(column, kept, again))
        tally.add(read_result(sample.result), sample.repeat)

    def check_batches(self, store: Store) -> None:
        for batch in store.batches(self._run.id):
            where = f"run {self._run.id}, batch {batch.number}"
            _require(seal_of(batch) == batch.seal, where, _CHANGED)

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
        if ENCODER.encode(kept.conclusion) != ENCODER.encode(again):
            one, other = ENCODER.encode(kept.conclusion), ENCODER.encode(again)
            raise _FoundError(where, first_difference("outcome", one.decode(), other.decode()))

    def _known(self) -> tuple[_Foundation, RunTally]:
        if self._base is None or self._tally is None:
            raise AssertionError("the run is checked before its samples")
        return self._base, self._tally
