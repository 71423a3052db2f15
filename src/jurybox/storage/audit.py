"""Derives a run again from its stored replies, and finds the first difference.

No model is called. Every row's seal is checked. Each sample is judged again from its stored
replies, and the outcome is compared with the stored one: reports, scores, results, hashes and index
entries, then the reviews, the summary, the gates and the digest of the whole run.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from jurybox.engine import records
from jurybox.engine.plan import Plan, planned_metadata, read_plan
from jurybox.engine.records import Facets, facets_of
from jurybox.engine.replay import DifferentError, StoredResponses, derive
from jurybox.errors import JuryboxError
from jurybox.review.review_input import fault_of
from jurybox.review.reviews import REVIEW, read_review
from jurybox.rubric import parse_rubric
from jurybox.rubric.scale import Scale
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.summary import RunTally
from jurybox.storage.store import Store, StoredRows

_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)
_CHANGED: Final = "the row was changed after it was written"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A stored value that differs from the derived one."""

    where: str
    what: str

    def __str__(self) -> str:
        """Return the difference as one line."""
        return f"{self.where}: {self.what}"


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an audit; the run is intact if there is no difference.

    ``complete`` is False if the run isn't finished, so that only its records were checked.
    ``digest`` is computed from the stored records; empty for an incomplete run.
    """

    run_id: str
    samples: int
    exchanges: int
    digest: str
    complete: bool
    difference: Difference | None = None


class _FoundError(Exception):
    def __init__(self, where: str, what: str) -> None:
        super().__init__(what)
        self.difference = Difference(where=where, what=what)


def _require(holds: bool, where: str, what: str) -> None:  # noqa: FBT001 - it reads as a sentence
    if not holds:
        raise _FoundError(where, what)


def audit(store: Store, run: records.RunRow) -> Audit:
    """Check a run from its stored rows up to its summary, until the first difference."""
    auditor = _Auditor(store, run)
    difference = None
    try:
        auditor.check_all()
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


class _Auditor:
    def __init__(self, store: Store, run: records.RunRow) -> None:
        self._store = store
        self._run = run
        self._finished = run.status == "finished"
        self._where = f"run {run.id}"
        self.samples = 0
        self.exchanges = 0
        self.digest = ""

    def check_all(self) -> None:
        plan, procedure = self._checked_plan()
        tally = RunTally(procedure.judging.rubric, plan.repeats)
        for rows in self._store.stored_rows(self._run.id):
            self._check_seals(rows)
            if rows.sample is None:
                _require(
                    not self._finished, rows.name, "the sample is missing; only rows about it exist"
                )
                continue
            # In a finished run, no record before this one may be missing.
            is_next = not self._finished or rows.number <= self.samples
            _require(is_next, f"record {self.samples}", "it is missing")
            self.samples += 1
            self._check_sample(plan, procedure, rows, rows.sample)
            tally.add(records.read_result(rows.sample.result), rows.sample.repeat)
        for batch in self._store.batches(self._run.id):
            where = f"{self._where}, batch {batch.number}"
            _require(records.seal_of(batch) == batch.seal, where, _CHANGED)
        self._check_reviews(plan)
        if self._finished:
            self._check_whole(plan, tally)

    def _checked_plan(self) -> tuple[Plan, Procedure]:
        run, where = self._run, self._where
        _require(records.seal_of(run) == run.seal, where, _CHANGED)
        try:
            plan = read_plan(run.plan)
            procedure = plan.procedure()
        except (msgspec.DecodeError, JuryboxError) as error:
            raise _FoundError(where, f"its plan can't be read ({error})") from None
        self._check_metadata(plan, procedure)
        if not self._finished:
            _require(run.outcome is None, where, "it isn't finished, but has an outcome")
            _require(run.digest is None, where, "it isn't finished, but has a digest")
            _require(run.finished_at is None, where, "it isn't finished, but has an end time")
        return plan, procedure

    def _check_metadata(self, plan: Plan, procedure: Procedure) -> None:
        """Check that the run's metadata matches its plan."""
        try:
            stored = msgspec.json.decode(self._run.metadata, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise _FoundError(self._where, f"its metadata can't be read ({error})") from None
        names = {"run_id": self._run.id, "timestamp_utc": self._run.created_at}
        for name, planned in (planned_metadata(plan, procedure) | names).items():
            same = records.ENCODER.encode(stored.get(name)) == records.ENCODER.encode(planned)
            _require(same, self._where, f"its {name} differs from what its plan says")
        _require(self._run.suite == plan.suite, self._where, "its suite differs from its plan")

    def _check_seals(self, rows: StoredRows) -> None:
        self.exchanges += len(rows.exchanges)
        for row in rows.exchanges:
            unchanged = records.exchange_seal(row, records.hashes_of(row)) == row.seal
            _require(unchanged, f"{rows.name}, exchange {row.position}", _CHANGED)

    def _check_sample(
        self, plan: Plan, procedure: Procedure, rows: StoredRows, sample: records.SampleRow
    ) -> None:
        try:
            _check_record(plan, procedure, rows, sample)
            if rows.facets is not None or self._finished:
                _check_facets(rows.facets, facets_of(sample), rows.name)
        except DifferentError as error:
            raise _FoundError(rows.name, str(error)) from None
        except (msgspec.DecodeError, JuryboxError, LookupError) as error:
            raise _FoundError(rows.name, f"the record can't be read: {error}") from None

    def _check_reviews(self, plan: Plan) -> None:
        rows = self._store.reviews(self._run.id)
        # Clocks may be set back, so a withdrawal may seem older than its review.
        made = {row.id: row.number for row in rows if row.action == REVIEW}
        criteria = parse_rubric(plan.rubric.text, plan.rubric.origin).criteria
        scales = {each.id: each.scale for each in criteria}
        for row in rows:
            where = f"{self._where}, review {row.id}"
            _require(records.seal_of(row) == row.seal, where, _CHANGED)
            sample = self._store.sample(self._run.id, row.number)
            what = _review_problem(row, sample, scales)
            if what is not None:
                raise _FoundError(where, what)
            withdraws = row.of is None or made.get(row.of) == row.number
            _require(withdraws, where, "the review that it withdraws is missing")

    def _check_whole(self, plan: Plan, tally: RunTally) -> None:
        whole = self.samples == plan.samples
        _require(whole, f"record {self.samples}", "it is missing")
        self.digest = records.run_digest(self._store.hashes(self._run.id))
        same = self.digest == self._run.digest
        _require(same, self._where, "its digest doesn't match its records")
        try:
            kept = msgspec.json.decode(
                self._run.outcome or "null", type=records.StoredOutcome
            ).conclusion
        except msgspec.DecodeError as error:
            raise _FoundError(self._where, f"its outcome can't be read ({error})") from None
        same = records.ENCODER.encode(kept) == records.ENCODER.encode(tally.conclude())
        _require(same, self._where, "its outcome differs from what its records say")


def _check_record(
    plan: Plan, procedure: Procedure, rows: StoredRows, sample: records.SampleRow
) -> None:
    where, columns = rows.name, ("inputs", "responses", "report", "automated", "result")
    _require(records.seal_of(sample) == sample.seal, where, _CHANGED)
    asked = records.in_order(sample, rows.exchanges)
    record = records.record_hash(sample, [records.hashes_of(each) for each in asked])
    same = record == sample.record_sha256
    _require(same, where, "the record was changed: its hash doesn't match")
    _require(0 <= sample.number < plan.samples, where, "the plan has no such sample")
    repeat = sample.number // plan.dataset.used
    _require(sample.repeat == repeat, where, "its repeat differs from the plan")
    derived = derive(plan, procedure, sample, asked)
    for name in columns:
        same = getattr(sample, name) == getattr(derived, name)
        _require(same, where, f"its {name} differs from what the replies say")


def _check_facets(stored: Facets | None, again: Facets, where: str) -> None:
    _require(stored is not None, where, "its index entry is missing")
    for name in Facets.__struct_fields__:
        same = getattr(stored, name) == getattr(again, name)
        _require(same, where, f"its index entry and its result differ in {name}")


def _review_problem(
    row: records.ReviewRow, sample: records.SampleRow | None, scales: Mapping[str, Scale]
) -> str | None:
    """Return why a review doesn't fit its sample or the rubric's scales; None if it fits."""
    if sample is None:
        return "its sample is missing"
    if sample.record_sha256 != row.record_sha256:
        return "the sample isn't the one that was reviewed"
    if row.action != REVIEW:
        return None
    try:
        verdict = read_review(row).verdict
    except msgspec.DecodeError as error:
        return f"its verdict can't be read ({error})"
    if verdict.is_pair != (_RESPONSES.decode(sample.responses).response_b is not None):
        return "its verdict is for a different number of responses than the sample has"
    return fault_of(verdict, scales)
