"""The exchanges of one sample with models, in the order of its flow."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from jurybox.engine.caller import SampleState
from jurybox.engine.limiter import UnwrittenReplies
from jurybox.engine.records import (
    ENCODER,
    ExchangeHashes,
    ExchangeRow,
    exchange_seal,
    framed,
    hashes_of,
    outcome_text,
    read_outcome,
    request_hash,
    request_key,
    text_hash,
)
from jurybox.judging.flow import Failure, ModelReply, ModelRequest, Outcome
from jurybox.judging.model_versions import contradiction
from jurybox.sample import Row
from jurybox.scoring.sample_result import Role


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One row in one repeat, and its number in the plan."""

    number: int
    repeat: int
    row: Row


class ModelSession(msgspec.Struct, frozen=True, kw_only=True):
    """The models of a run.

    Attributes:
        call: calls a model and waits for its reply.
        endpoint: returns the address of a role's model; equal names elsewhere are other models.
        lookup: returns a model's reply to an equal request of an earlier run; None where the run
            uses no cache.
        window: how many samples may be in flight at once.
        outages: returns the endpoints that don't answer now, each with its error.
        unwritten: counts the replies that aren't stored yet; None where nothing waits for them.
        allow_version_drift: whether another version of a model than the plan names may answer.

    """

    call: Callable[[Role, ModelRequest, SampleState], Awaitable[Outcome]]
    endpoint: Callable[[Role, str], str]
    lookup: Callable[[str, str], Awaitable[ModelReply | None]] | None = None
    window: int = 1
    outages: Callable[[], Sequence[str]] = tuple
    unwritten: UnwrittenReplies | None = None
    allow_version_drift: bool = False


class FinishedExchange(NamedTuple):
    """An exchange, its row, and whether the row has been handed to the store."""

    row: ExchangeRow
    hashes: ExchangeHashes
    is_stored: bool


class HaltedError(Exception):
    """A fatal failure: no request can succeed, so the sample is left for `jurybox resume`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Transcript:
    """Answers the requests of one sample's flow, and keeps them in the flow's order.

    A reply that an earlier, stopped process has stored is used again instead of paid for again.
    """

    def __init__(
        self,
        session: ModelSession,
        run_id: str,
        work: Work,
        *,
        target: bool,
        known: Sequence[ExchangeRow],
        on_reply: Callable[[ExchangeRow], None],
    ) -> None:
        self._session = session
        self._run_id = run_id
        self._work = work
        self._target = target
        self._known = _by_key(known)
        self._arrivals = 1 + max([row.position for row in known], default=-1)
        self._on_reply = on_reply
        self._exchanges: list[FinishedExchange | None] = []
        self._drift: Failure | None = None
        self.started = self.cancelled = False

    def __call__(self, request: ModelRequest) -> Awaitable[Outcome]:
        """Take the next position at once, and return what waits for the answer.

        Raises:
            HaltedError: another version of a model answered than was asked for.

        """
        self.check_versions()
        position = len(self._exchanges)
        self._exchanges.append(None)
        return self._answer(position, request)

    async def _answer(self, position: int, request: ModelRequest) -> Outcome:
        role: Role = "target" if self._target and position == 0 else "judge"
        frame, material = framed(request)
        sha256 = request_hash(frame, material)
        key = request_key(sha256, self._session.endpoint(role, request.model), self._work.repeat)
        stored = self._known.get(key)
        if stored:
            row = stored.popleft()
            outcome = read_outcome(row)
            self._exchanges[position] = FinishedExchange(row, hashes_of(row), is_stored=True)
            self._check_version(request, outcome)
            return outcome
        await asyncio.sleep(0)  # samples take turns, see `Runner`
        lookup = self._session.lookup
        found = None if lookup is None else await lookup(request.model, key)
        if found is None:
            outcome = await self._session.call(role, request, self)
        else:
            outcome = msgspec.structs.replace(found, cached=True)
        if isinstance(outcome, Failure) and outcome.fatal:
            raise HaltedError(outcome)
        text, notes = _stored_form(role, outcome)
        is_reply = isinstance(outcome, ModelReply)
        # Only a fresh reply may answer the request again later.
        key = key if is_reply and not outcome.cached else ""
        arrival, self._arrivals = self._arrivals, self._arrivals + 1
        hashes = ExchangeHashes(role, sha256, text_hash(text))
        row = ExchangeRow(
            run_id=self._run_id,
            number=self._work.number,
            position=arrival,
            role=role,
            key=key,
            frame=frame,
            material=material,
            outcome=text,
            notes=notes,
        )
        row = msgspec.structs.replace(row, seal=exchange_seal(row, hashes))
        self._exchanges[position] = FinishedExchange(row, hashes, is_stored=is_reply)
        if is_reply:
            self._on_reply(row)
        self._check_version(request, outcome)
        return outcome

    def _check_version(self, request: ModelRequest, outcome: Outcome) -> None:
        if isinstance(outcome, Failure) or self._session.allow_version_drift:
            return
        what = contradiction(request.model, outcome.model)
        if what is not None:
            self._drift = Failure(kind="refused", message=what, fatal=True)

    def check_versions(self) -> None:
        """Halt the sample where another version of a model answered than was asked for (A10).

        Not before the replies in flight have come: they are paid for.

        Raises:
            HaltedError: one did.

        """
        if self._drift is not None:
            raise HaltedError(self._drift)

    def exchanges(self) -> list[FinishedExchange]:
        """Return the exchanges in the flow's order."""
        return [each for each in self._exchanges if each is not None]

    def unused(self) -> list[ExchangeRow]:
        """Return the stored replies that no request asked for."""
        return [row for rows in self._known.values() for row in rows]


def _by_key(rows: Iterable[ExchangeRow]) -> Mapping[str, deque[ExchangeRow]]:
    """Group stored replies by request; equal requests are answered in their order."""
    known: dict[str, deque[ExchangeRow]] = {}
    for row in rows:
        known.setdefault(row.key, deque()).append(row)
    return known


def _stored_form(role: Role, outcome: Outcome) -> tuple[str, str]:
    """Return the text of an outcome, and apart from it what differs between equal runs."""
    notes: dict[str, object] = {"at": time.time_ns() // 1_000_000}
    if role == "judge":
        notes["latency_ms"] = outcome.latency_ms
        usual: dict[str, object] = {"latency_ms": None}
        if outcome.attempts > 1:
            notes["attempts"], usual["attempts"] = outcome.attempts, 1
            if isinstance(outcome, ModelReply):
                notes["attempt_ms"], usual["attempt_ms"] = outcome.attempt_ms, None
        outcome = msgspec.structs.replace(outcome, **usual)
    if isinstance(outcome, ModelReply) and outcome.reference is not None:
        notes["reference"] = outcome.reference
        outcome = msgspec.structs.replace(outcome, reference=None)
    return outcome_text(outcome), ENCODER.encode(notes).decode()
