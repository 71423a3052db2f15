"""Re-deriving a run from its stored replies, without a model (A13).

Every row's seal is checked, every sample's flow is driven again over the stored replies, and what
comes of it is held against what is stored: reports, scores, results, hashes, what each is found by,
then the reviews, the summary, the gates and the digest of the whole run.

Samples don't depend on each other, so others may look through slices of them at the same time. They
only ever vouch for a slice; what they don't vouch for is looked through here, in order. So what is
found, and what is said of it, doesn't depend on who looked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec

from jurybox.engine.plan import Plan, planned_metadata, read_plan
from jurybox.engine.ports import EVERY, Store
from jurybox.engine.records import (
    ENCODER,
    ExchangeHashes,
    ExchangeRow,
    ReviewRow,
    RunRow,
    SampleRow,
    StoredOutcome,
    exchange_seal,
    hashes_of,
    in_order,
    read_result,
    record_hash,
    run_digest,
    seal_of,
)
from jurybox.engine.replay import DifferentError, StoredResponses, derive, grouped, named
from jurybox.errors import JuryboxError
from jurybox.review.review_input import fault_of
from jurybox.review.reviews import REVIEW, read_review
from jurybox.rubric import parse_rubric
from jurybox.rubric.scale import Scale
from jurybox.scoring.evaluate_sample import Procedure
from jurybox.scoring.sample_index import Facets, facets_of
from jurybox.scoring.summary import RunTally

_RESPONSES: Final = msgspec.json.Decoder(StoredResponses)
_INDEX_CHANGED: Final = "the row was changed after it was written"


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
            yield Fault(where, _INDEX_CHANGED)
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


_LONGEST: Final = 80
_MISSING: Final = "nothing"


def first_difference(
    column: str, kept: str | None, again: str | None, witness: str = "the replies say"
) -> str:
    """Say where two JSON texts differ first, in words."""
    try:
        one = None if kept is None else msgspec.json.decode(kept)
        other = None if again is None else msgspec.json.decode(again)
    except msgspec.DecodeError as error:
        return f"{column} can't be read ({error})"
    found = next(_differences(column, one, other), None)
    if found is None:
        return f"{column} is written otherwise"
    path, left, right = found
    return f"{path} is {_short(left)}, and {witness} {_short(right)}"


def _differences(path: str, one: object, other: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        for key in dict.fromkeys((*left, *right)):
            yield from _differences(
                f"{path}.{key}", left.get(key, _MISSING), right.get(key, _MISSING)
            )
    elif isinstance(one, list) and isinstance(other, list):
        mine, theirs = cast("list[Any]", one), cast("list[Any]", other)
        if len(mine) != len(theirs):
            yield path, mine, theirs
        for index, pair in enumerate(zip(mine, theirs, strict=False)):
            yield from _differences(f"{path}[{index}]", *pair)
    elif one != other:
        yield path, one, other


def _short(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"`{text}`" if len(text) <= _LONGEST else f"`{text[: _LONGEST - 3]}...`"


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
    """Audits slices of a run's samples."""

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
    """Return where slices of ``size`` samples begin, 0 included."""
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
        """Count samples as checked that another process has checked."""
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
        reported = [hashes[each.position] for each in asked]
        if record_hash(sample, reported) != sample.record_sha256:
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
