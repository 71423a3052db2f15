"""The rows of a run in its store, and the hashes that show whether any of them was changed.

A row has a *seal*, the SHA-256 of all its other columns. A sample also has the hash of its
*record*: its requests, replies and result, without values that differ between equal runs (the run's
id, times). The run's *digest* is the hash of its sorted record hashes, so it doesn't depend on the
order in which samples finished.

Requests and outcomes are long, and three hashes cover each of them. So each text is hashed only
once, and the three hashes are computed from its hash. Most of a request is the same for all
samples; that part, its *frame*, is stored and hashed once per run.
"""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.flow import Failure, Frame, ModelReply, ModelRequest, Outcome
from jurybox.review.reviews import ReviewRow
from jurybox.sample import Row
from jurybox.scoring.evaluate_sample import SampleOutcome
from jurybox.scoring.sample_result import JUDGE_SCORE, KINDS, MARKS, SampleResult, vote_metrics
from jurybox.scoring.summary import Acceptance, Conclusion

_SEAL: Final = "jurybox seal 2"
_RECORD: Final = "jurybox record 2"
_KEY: Final = "jurybox request 2"
_DIGEST: Final = "jurybox digest 1"

ENCODER: Final = msgspec.json.Encoder(order="deterministic")


_MOST_FRAMES: Final = 64

# Every value is packed with its type and length, so different columns never give equal bytes.
_PACK: Final = msgspec.msgpack.Encoder().encode


def text_hash(text: str) -> str:
    """Return the hash of a string."""
    return hashlib.sha256(encoded(text)).hexdigest()


frame_hash: Final = lru_cache(_MOST_FRAMES)(text_hash)
"""Return the hash of a frame, which most requests share."""


def columns_hash(tag: str, columns: Sequence[str | int | None]) -> str:
    """Return the hash of columns; ``tag`` names the kind of row."""
    try:
        packed = _PACK((tag, *columns))
    except (UnicodeEncodeError, OverflowError):
        # A lone surrogate or a huge number; values of different types must still stay distinct.
        bare = (encoded(each) if isinstance(each, str) else (str(each),) for each in columns)
        packed = _PACK((tag, *bare))
    return hashlib.sha256(packed).hexdigest()


def encoded(text: str) -> bytes:
    """Return the bytes of a string for hashing."""
    # A damaged store may contain values that aren't text; verify reports them, so don't raise.
    return str(text).encode("utf-8", "surrogatepass")


class RunRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A run; ``plan``, ``metadata`` and ``outcome`` are JSON.

    ``outcome`` and ``digest`` are set when the run is finished.
    """

    id: str
    suite: str
    status: str
    created_at: str
    finished_at: str | None
    plan: str
    metadata: str
    outcome: str | None
    digest: str | None
    seal: str = ""


class SampleRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One sample in one repeat; all columns except the first four and the hashes are JSON.

    ``number`` is the sample's position in the plan. ``notes`` holds what may differ between equal
    runs: the positions of the exchanges in the ``order`` of their requests, and of ``unused`` ones,
    which a resumed run didn't ask for again.
    """

    run_id: str
    number: int
    sample_id: str
    repeat: int
    inputs: str
    responses: str
    report: str | None
    automated: str | None
    result: str
    notes: str
    record_sha256: str
    seal: str = ""


_LONGEST_LABEL: Final = 300
_METRICS: Final = msgspec.json.Decoder(dict[str, float])


class Facets(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The index entry of one sample."""

    run_id: str
    number: int
    sample_id: str
    repeat: int
    flags: int  # the sum of its bits in `FLAGS`
    urgency: int  # the review priority: higher means sooner, 0 means never
    scenario: str | None  # shortened by `label`, like the demographic
    demographic: str | None
    winner: str | None
    # JSON: its metrics by name, the judge's opinion as ``judge_score``, and its `vote_metrics`
    metrics: str

    def values(self) -> dict[str, float]:
        """Return its metrics by name; those without a value are left out."""
        return _METRICS.decode(self.metrics)


def facets_of(row: SampleRow) -> Facets:
    """Return the index entry of a stored sample; nearly empty if its result is unreadable."""
    try:
        result = read_result(row.result)
    except msgspec.DecodeError:
        result = SampleResult(
            metrics={}
        )  # an audit reports it; the sample itself must not get lost
    flags, urgency = _flags(result)
    metrics = {**result.metrics, JUDGE_SCORE: result.judge_opinion}
    # One vote has no majority, and only pairs that were judged in both orders have preferences.
    if row.report and (result.votes_valid > 1 or result.stable is not None):
        with suppress(msgspec.DecodeError):
            metrics |= vote_metrics(_REPORT.decode(row.report))
    known = {name: value for name, value in metrics.items() if value is not None}
    return Facets(
        run_id=row.run_id,
        number=row.number,
        sample_id=row.sample_id,
        repeat=row.repeat,
        flags=flags,
        urgency=urgency,
        scenario=label(result.scenario),
        demographic=label(result.demographic),
        winner=result.winner,
        metrics=ENCODER.encode(known).decode(),
    )


def label(text: str | None) -> str | None:
    """Return a scenario or demographic as it is stored in the index.

    NUL can't be stored, and long text doesn't fit in a menu.
    """
    return None if text is None else text[:_LONGEST_LABEL].replace("\0", "\ufffd")


def _flags(result: SampleResult) -> tuple[int, int]:
    flags = urgency = 0
    for kind in (*KINDS.values(), *MARKS.values()):
        if kind.concerns(result):
            flags |= 1 << kind.bit
            urgency = max(urgency, kind.urgency)
    return flags, urgency


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One row in one repeat, and its number in the plan."""

    number: int
    repeat: int
    row: Row


def sample_row(run_id: str, work: Work, outcome: SampleOutcome, notes: str) -> SampleRow:
    """Return the stored form of a sample, without its hashes."""
    inputs = msgspec.structs.replace(work.row, response=None, response_b=None)
    responses = {"response": outcome.response, "response_b": work.row.response_b}
    return SampleRow(
        run_id=run_id,
        number=work.number,
        sample_id=work.row.id,
        repeat=work.repeat,
        inputs=_json_of(inputs),
        responses=_json_of(responses),
        report=None if outcome.report is None else _json_of(outcome.report),
        automated=None if outcome.automated is None else _json_of(outcome.automated),
        result=_json_of(outcome.result),
        notes=notes,
        record_sha256="",
    )


class ExchangeRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One request and its outcome; equal requests have the same ``key``.

    ``number`` is the sample's number; ``position`` counts the sample's exchanges in the order in
    which their replies arrived. The sample's notes have the order of the requests.

    ``frame`` and ``material`` make up the request, see `Framed`.
    """

    run_id: str
    number: int
    position: int
    role: str
    key: str
    frame: str
    material: str
    outcome: str
    notes: str
    seal: str = ""

    @property
    def request(self) -> str:
        """The full request, as JSON."""
        begin, _, end = self.frame.partition("\n")
        return f"{begin}{self.material}{end}"


class BatchRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Requests sent to a provider as one batch, to be answered later.

    It is stored before it is submitted, so that no paid request is lost.
    """

    run_id: str
    number: int  # counts the batches of the run
    model: str
    endpoint: str
    # ``submitting`` until the provider confirms it, ``submitted`` until all its replies are stored,
    # then ``read``; ``gone`` if it was abandoned.
    state: str
    batch_id: str  # the provider's name for it; empty while it is being submitted
    requests: int  # the number of requests in it
    terms: str  # the format of the requests, as the provider's adapter recorded it
    submitted_at: str
    seal: str = ""


class CalibrationRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A calibration: how well judges agree with people; ``record`` is all of it, as JSON."""

    id: str
    rubric_id: str
    created_at: str
    record: str
    seal: str = ""


class OutboxRow(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A part of a run that is delivered to another system, and the state of its delivery."""

    run_id: str
    number: int  # the sample's number; negative for a repeat, counted down from -1
    part: str  # the kind of part
    version: str  # changes with the content, so that a changed sample is sent again
    detail: str = ""  # further data for the sender
    state: str = "pending"  # ``pending``, ``sent``, or ``rejected`` by the other system
    error: str = ""  # why the last attempt failed


AnyRow = RunRow | SampleRow | ExchangeRow | BatchRow | CalibrationRow | ReviewRow


R = TypeVar("R", bound=AnyRow)


class Framed(NamedTuple):
    """A stored request, in two parts.

    ``frame`` has two lines, the beginning and the end of the request's JSON; ``material`` is
    between them. If no part of the request is known to be shared, the frame is empty.
    """

    frame: str
    material: str


def framed(request: ModelRequest) -> Framed:
    """Return a request in its stored form."""
    frame = request.frame
    if frame is None:
        return Framed("", ENCODER.encode(request).decode())
    (message,) = request.messages
    end = len(message.content) - len(frame.after)
    material = message.content[len(frame.before) : end]
    empty = msgspec.structs.replace(message, content="")
    shared = msgspec.structs.replace(request, frame=None, messages=(empty,))
    return Framed(_frame_text(ENCODER.encode(shared), frame), _in_json(material))


@lru_cache(maxsize=64)
def _frame_text(shared: bytes, frame: Frame) -> str:
    """Return the beginning and the end of a request's JSON around its material.

    ``shared`` is that JSON without the material. The request itself can't be the cache key, because
    a request with 0 and one with 0.0 compare as equal.
    """
    begin, _, end = shared.decode().rpartition('""')
    return f'{begin}"{_in_json(frame.before)}\n{_in_json(frame.after)}"{end}'


def _in_json(text: str) -> str:
    return ENCODER.encode(text).decode()[1:-1]


class ExchangeHashes(NamedTuple):
    """The columns that represent an exchange in its sample's record."""

    role: str
    frame: str
    material: str
    outcome: str


def hashes_of(row: ExchangeRow) -> ExchangeHashes:
    """Return the hashes of an exchange's texts, from which other hashes are computed."""
    return ExchangeHashes(
        row.role, frame_hash(row.frame), text_hash(row.material), text_hash(row.outcome)
    )


def seal_of(row: AnyRow) -> str:
    """Return a row's seal: the hash of its other columns, long ones replaced by their hashes."""
    match row:
        case SampleRow():
            return _sample_seal(row, row.record_sha256)
        case ExchangeRow():
            return exchange_seal(row, hashes_of(row))
        case RunRow() | BatchRow() | CalibrationRow() | ReviewRow():
            return columns_hash(_SEAL, msgspec.structs.astuple(row)[:-1])


def exchange_seal(row: ExchangeRow, hashes: ExchangeHashes) -> str:
    """Return the seal of an exchange whose texts have these hashes."""
    own = (row.run_id, row.number, row.position, row.key, row.notes)
    return columns_hash(_SEAL, (*own, *hashes))


def _sample_seal(row: SampleRow, record_sha256: str) -> str:
    own = (row.run_id, row.number, row.sample_id, row.repeat, row.notes, record_sha256)
    return columns_hash(_SEAL, own)


def sealed(row: R) -> R:
    """Return the row with its seal."""
    return msgspec.structs.replace(row, seal=seal_of(row))


def hashed_sample(row: SampleRow, exchanges: Iterable[ExchangeHashes]) -> SampleRow:
    """Return the row with the hash of its record and its seal."""
    record = record_hash(row, exchanges)
    return msgspec.structs.replace(row, record_sha256=record, seal=_sample_seal(row, record))


def record_hash(row: SampleRow, exchanges: Iterable[ExchangeHashes]) -> str:
    """Return the hash of a sample's record; ``exchanges`` are in the order of their requests."""
    asked = [part for each in exchanges for part in each]
    mine = (row.number, row.sample_id, row.repeat, row.inputs, row.responses)
    return columns_hash(_RECORD, (*mine, row.report, row.automated, row.result, *asked))


def in_order(row: SampleRow, exchanges: Sequence[ExchangeRow]) -> list[ExchangeRow]:
    """Return a sample's exchanges in the order of their requests.

    Raises:
        LookupError: an exchange is missing, or the sample's notes don't list it.

    """
    notes = _NOTES.decode(row.notes)
    by_position = {each.position: each for each in exchanges}
    for position in (*notes.order, *notes.unused):
        if position not in by_position:
            raise LookupError(f"exchange {position} is missing")
    strange = by_position.keys() - {*notes.order, *notes.unused}
    if strange:
        raise LookupError(f"exchange {min(strange)} isn't one of the sample's")
    return [by_position[position] for position in notes.order]


def notes_of(exchanges: Iterable[ExchangeRow], unused: Iterable[ExchangeRow] = ()) -> str:
    """Return a sample's notes."""
    return _notes(
        tuple([each.position for each in exchanges]), tuple([each.position for each in unused])
    )


@lru_cache(maxsize=64)
def _notes(order: tuple[int, ...], unused: tuple[int, ...]) -> str:
    # Cached, because it is the same for nearly all samples of a run.
    return ENCODER.encode(_Notes(order=order, unused=unused)).decode()


class _Notes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    order: tuple[int, ...] = ()
    unused: tuple[int, ...] = ()


_NOTES: Final = msgspec.json.Decoder(_Notes)


def _json_of(value: object) -> str:
    return ENCODER.encode(value).decode()


def request_key(frame_sha256: str, material_sha256: str, endpoint: str, repeat: int) -> str:
    """Return the key of a request: the hash of its parts, its endpoint and the repeat."""
    return columns_hash(_KEY, (frame_sha256, material_sha256, endpoint, repeat))


def run_digest(hashes: Iterable[str]) -> str:
    """Return the digest of a run from its sorted record hashes."""
    digest = hashlib.sha256(_DIGEST.encode())
    for each in hashes:
        digest.update(b"\n" + each.encode())
    return digest.hexdigest()


class StoredOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a finished run, stored next to its samples.

    ``accepted`` records that samples were accepted without required reviews.
    """

    conclusion: Conclusion
    cost: dict[str, Any]
    elapsed_s: float | None = None
    accepted: Acceptance | None = None


_RESULT: Final = msgspec.json.Decoder(SampleResult)
_REPORT: Final = msgspec.json.Decoder(EvaluationReport)


def read_result(text: str) -> SampleResult:
    """Read the result of a sample."""
    return _RESULT.decode(text)


class _StoredExchange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reply: ModelReply | None = None
    failure: Failure | None = None


_EXCHANGE: Final = msgspec.json.Decoder(_StoredExchange)
_REQUEST: Final = msgspec.json.Decoder(ModelRequest)


def outcome_text(outcome: Outcome) -> str:
    """Return the JSON in which the outcome of a request is stored."""
    kind = "failure" if isinstance(outcome, Failure) else "reply"
    return ENCODER.encode({kind: outcome}).decode()


def read_outcome(row: ExchangeRow) -> Outcome:
    """Read the outcome of a stored request."""
    stored = _EXCHANGE.decode(row.outcome)
    outcome = stored.reply if stored.reply is not None else stored.failure
    if outcome is None:
        raise msgspec.ValidationError("neither a reply nor a failure")
    return outcome


def read_request(row: ExchangeRow) -> ModelRequest:
    """Read a stored request."""
    return _REQUEST.decode(row.request)
