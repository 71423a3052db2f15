"""A model that is asked in batches: the requests and replies of its provider, in files of lines."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from http import HTTPStatus
from typing import IO, Final, Protocol, TypeVar

import msgspec

from jurybox.judging.exchange import ModelReply, ModelRequest
from jurybox.models.concessions import Accepted
from jurybox.models.http import HttpAnswer, HttpCall, HttpClient, read_json
from jurybox.models.negotiation import Negotiation
from jurybox.models.trouble import StatusTrouble, quoted
from jurybox.running.batch_model import Look, Result, Results
from jurybox.running.ports import ModelTrouble

T = TypeVar("T")

# No reply is longer; what is can't be read anyway, and must not fill the memory.
_LONGEST_LINE: Final = 32_000_000
_ABSENT: Final = {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED}
_TERMS: Final = msgspec.json.Encoder(order="deterministic")
_ACCEPTED: Final = msgspec.json.Decoder(Accepted)


class Chat(Protocol):
    """A model that takes one request at a time, and may be asked in batches as well."""

    negotiation: Negotiation
    client: HttpClient

    def payload(self, request: ModelRequest, accepted: Accepted) -> dict[str, object]:
        """Return what is sent, as far as it is accepted."""
        ...

    def reply(self, answer: HttpAnswer, payload: Mapping[str, object]) -> ModelReply:
        """Return the reply that an answer to a payload holds."""
        ...


class Wire(Protocol):
    """How a provider wants batches; every call raises `ModelTrouble` where it comes to nothing."""

    def line(self, name: str, payload: Mapping[str, object]) -> bytes:
        """Return a request as it stands in a batch."""
        ...

    async def submit(self, client: HttpClient, lines: Sequence[bytes], mark: str) -> str:
        """Hand over a batch; return its name."""
        ...

    async def find(self, client: HttpClient, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the names of batches that may be the one with that mark."""
        ...

    async def look(self, client: HttpClient, batch_id: str) -> Look:
        """Return how far a batch is, and at which paths its results are."""
        ...

    def answer(self, line: bytes) -> bytes:
        """Return the body of the answer in a line of the results."""
        ...


class BatchedModel:
    """One model of a provider that has batches."""

    def __init__(self, model: Chat, wire: Wire) -> None:
        self._model = model
        self._wire = wire

    @property
    def endpoint(self) -> str:
        """The address."""
        return self._model.client.address

    def terms(self) -> str:
        """Return what the endpoint is known to take."""
        return _TERMS.encode(self._model.negotiation.accepted).decode()

    def line(self, name: str, request: ModelRequest, terms: str) -> bytes:
        """Return a request as it stands in a batch."""
        return self._wire.line(name, self._payload(request, terms))

    def _payload(self, request: ModelRequest, terms: str) -> dict[str, object]:
        return self._model.payload(request, _ACCEPTED.decode(terms))

    async def submit(self, lines: Sequence[bytes], mark: str) -> str:
        """Hand over a batch; return its name."""
        try:
            return await self._wire.submit(self._model.client, lines, mark)
        except StatusTrouble as trouble:
            if trouble.status in _ABSENT:
                said = f"it takes no batches (HTTP {trouble.status}); ask directly with --no-batch"
                raise ModelTrouble("refused", said, retry=False, everybody=True) from None
            raise

    async def find(self, mark: str, since: str, requests: int) -> Sequence[str]:
        """Return the names of batches that may be the one with that mark."""
        return await self._wire.find(self._model.client, mark, since, requests)

    async def look(self, batch_id: str) -> Look:
        """Return how far a batch is."""
        return await self._wire.look(self._model.client, batch_id)

    async def fetch(self, look: Look) -> Results:
        """Get what a batch came to, into files that go away with it."""
        with ExitStack() as stack:
            files: list[IO[bytes]] = []
            for path in look.places:
                file = stack.enter_context(tempfile.TemporaryFile(prefix="jurybox-"))
                await self._model.client.send(HttpCall(path=path, into=file))
                files.append(file)
            return _Lines(files, stack.pop_all())

    def read(self, line: bytes, request: ModelRequest, terms: str) -> ModelReply:
        """Return the reply that a line holds."""
        answer = HttpAnswer(body=self._wire.answer(line), headers={}, elapsed_ms=0.0)
        reply = self._model.reply(answer, self._payload(request, terms))
        # Nobody knows how long it took: most of the time it waited.
        return msgspec.structs.replace(reply, latency_ms=None)

    def concede(self, trouble: ModelTrouble, request: ModelRequest, terms: str) -> bool:
        """Learn from a refusal; tell whether the request may be taken in another form."""
        if not isinstance(trouble, StatusTrouble):
            return False
        accepted = _ACCEPTED.decode(terms)
        sent = self._model.payload(request, accepted).keys()
        return self._model.negotiation.learn(trouble, accepted, sent)


class _Named(msgspec.Struct):
    custom_id: str


class _Lines:
    """The lines of some files, which are gone once they are closed."""

    def __init__(self, files: Sequence[IO[bytes]], stack: ExitStack) -> None:
        self._files = files
        self._stack = stack

    def __iter__(self) -> Iterator[Result]:
        for file in self._files:
            file.seek(0)
            while line := file.readline(_LONGEST_LINE):
                if line.strip():
                    yield Result(name=_name(line), line=line)

    def close(self) -> None:
        self._stack.close()


def _name(line: bytes) -> str:
    try:
        return read_json(line, _Named).custom_id
    except (ValueError, RecursionError):
        return ""


def read_listed(rows: Sequence[msgspec.Raw], kind: type[T]) -> list[T]:
    """Read a page of a list of batches, and leave out what isn't of this kind.

    Other programs have batches there as well, and one of theirs must not hide ours.

    Raises:
        ModelTrouble: nothing in it is of this kind, so nobody can say what comes behind it.

    """
    listed: list[T] = []
    for row in rows:
        with suppress(ValueError, RecursionError):
            listed.append(read_json(bytes(row), kind))
    if rows and not listed:
        raise ModelTrouble("unreadable", "the list of batches can't be read", retry=True)
    return listed


def read_line(line: bytes, kind: type[T]) -> T:
    """Read one line of the results.

    Raises:
        ModelTrouble: it isn't of this kind.

    """
    try:
        return read_json(line, kind)
    except (ValueError, RecursionError) as error:
        what = f"the answer can't be read: {quoted(str(error))}"
        raise ModelTrouble("unreadable", what, retry=True) from None
