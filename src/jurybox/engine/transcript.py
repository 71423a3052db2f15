"""The conversation about one sample: who was asked what, in the order of the flow."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from jurybox.engine.caller import Asker
from jurybox.engine.records import (
    ENCODER,
    ExchangeHashes,
    ExchangeRow,
    Framed,
    exchange_seal,
    framed,
    hashes_of,
    request_key,
)
from jurybox.engine.request_hash import request_hash, text_hash
from jurybox.judging.exchange import Failure, ModelReply, ModelRequest, Outcome
from jurybox.scoring.sample_result import Role
from jurybox.scoring.uses import Exchanged


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers in a run.

    Attributes:
        ask: calls a model and waits for it, who may have to queue before it is begun.
        endpoint: says where a model is; equal names elsewhere are other models.
        find: looks for a model's reply to an equal request in earlier runs, where the run may
            use one.

    """

    ask: Callable[[Role, ModelRequest, Asker], Awaitable[Outcome]]
    endpoint: Callable[[str], str]
    find: Callable[[str, str], Awaitable[ModelReply | None]] | None = None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Which sample of which run is talked about."""

    run_id: str
    number: int
    repeat: int


class Entry(NamedTuple):
    """One exchange of the conversation, once it is over.

    ``hashes`` stand for it in the sample's record; ``is_stored`` where somebody was given the row.
    """

    exchanged: Exchanged
    row: ExchangeRow
    hashes: ExchangeHashes
    is_stored: bool


class _Asked(NamedTuple):
    """A request as it is stored, and what it is known by."""

    role: Role
    request: ModelRequest
    framed: Framed
    sha256: str
    key: str


class HaltedError(Exception):
    """Asking on is of no use for anybody; the sample is left for when it is."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Transcript:
    """Answers the requests of one sample's flow, and keeps them in the flow's order.

    What a stopped run had been told already is told again instead of being paid for again.
    """

    def __init__(
        self,
        stage: Stage,
        place: Place,
        *,
        target: bool,
        known: Sequence[ExchangeRow],
        on_reply: Callable[[ExchangeRow], None],
    ) -> None:
        self._stage = stage
        self._place = place
        self._target = target
        self._known = _by_key(known)
        self._arrivals = 1 + max([row.position for row in known], default=-1)
        self._on_reply = on_reply
        self._entries: list[Entry | None] = []
        self.begun = self.called_off = False

    def __call__(self, request: ModelRequest) -> Awaitable[Outcome]:
        """Take the next place in the conversation at once, and answer in due time."""
        position = len(self._entries)
        self._entries.append(None)
        return self._answer(position, request)

    async def _answer(self, position: int, request: ModelRequest) -> Outcome:
        role: Role = "target" if self._target and position == 0 else "judge"
        parts = framed(request)
        sha256 = request_hash(*parts)
        key = request_key(sha256, self._stage.endpoint(request.model), self._place.repeat)
        stored = self._known.get(key)
        if stored:
            row = stored.popleft()
            reply = read_outcome(row)
            exchanged = Exchanged(role=role, request=request, outcome=reply)
            self._entries[position] = Entry(exchanged, row, hashes_of(row), is_stored=True)
            return reply
        await asyncio.sleep(0)  # samples take turns, see `Runner`
        outcome = await self._find_or_ask(role, request, key)
        if isinstance(outcome, Failure) and outcome.everybody:
            raise HaltedError(outcome)
        self._keep(position, _Asked(role, request, parts, sha256, key), outcome)
        await asyncio.sleep(0)
        return outcome

    def _keep(self, position: int, asked: _Asked, outcome: Outcome) -> None:
        row = self._row(asked, outcome)
        hashes = ExchangeHashes(asked.role, asked.sha256, text_hash(row.outcome))
        row = msgspec.structs.replace(row, seal=exchange_seal(row, hashes))
        told = isinstance(outcome, ModelReply)
        exchanged = Exchanged(role=asked.role, request=asked.request, outcome=outcome)
        self._entries[position] = Entry(exchanged, row, hashes, is_stored=told)
        if told:
            self._on_reply(row)

    async def _find_or_ask(self, role: Role, request: ModelRequest, key: str) -> Outcome:
        """Return the reply of an earlier run, or ask."""
        if self._stage.find is not None:
            found = await self._stage.find(request.model, key)
            if found is not None:
                return msgspec.structs.replace(found, cached=True)
        return await self._stage.ask(role, request, self)

    def _row(self, asked: _Asked, outcome: Outcome) -> ExchangeRow:
        arrival, self._arrivals = self._arrivals, self._arrivals + 1
        notes: dict[str, object] = {}
        if asked.role == "judge":
            # How long a judge took is no part of what it said: two equal runs have equal records.
            notes["latency_ms"] = outcome.latency_ms
            outcome = msgspec.structs.replace(outcome, latency_ms=None)
        if isinstance(outcome, ModelReply) and outcome.reference is not None:
            notes["reference"] = outcome.reference
            outcome = msgspec.structs.replace(outcome, reference=None)
        # Only what was really said now may be told again later.
        fresh = isinstance(outcome, ModelReply) and not outcome.cached
        return ExchangeRow(
            run_id=self._place.run_id,
            number=self._place.number,
            position=arrival,
            role=asked.role,
            key=asked.key if fresh else "",
            frame=asked.framed.frame,
            material=asked.framed.material,
            outcome=outcome_text(outcome),
            notes=ENCODER.encode(notes).decode(),
        )

    def entries(self) -> list[Entry]:
        """Return the whole conversation, in the flow's order."""
        return [each for each in self._entries if each is not None]

    def unused(self) -> list[ExchangeRow]:
        """Return what was known and never asked for."""
        return [row for rows in self._known.values() for row in rows]


def _by_key(rows: Iterable[ExchangeRow]) -> Mapping[str, deque[ExchangeRow]]:
    """Sort what is known by request; equal requests are answered in their order."""
    known: dict[str, deque[ExchangeRow]] = {}
    for row in rows:
        known.setdefault(row.key, deque()).append(row)
    return known


def outcome_text(outcome: Outcome) -> str:
    """Return an outcome as it is stored: under the name of what it is."""
    kind = "failure" if isinstance(outcome, Failure) else "reply"
    return ENCODER.encode({kind: outcome}).decode()


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reply: ModelReply | None = None
    failure: Failure | None = None


_STORED = msgspec.json.Decoder(_Stored)
_REQUEST = msgspec.json.Decoder(ModelRequest)


def read_outcome(row: ExchangeRow) -> Outcome:
    """Read a stored outcome.

    Raises:
        msgspec.DecodeError: it isn't one.

    """
    stored = _STORED.decode(row.outcome)
    outcome = stored.reply if stored.reply is not None else stored.failure
    if outcome is None:
        raise msgspec.ValidationError("neither a reply nor a failure")
    return outcome


def read_request(row: ExchangeRow) -> ModelRequest:
    """Read a stored request.

    Raises:
        msgspec.DecodeError: it isn't one.

    """
    return _REQUEST.decode(row.request)
